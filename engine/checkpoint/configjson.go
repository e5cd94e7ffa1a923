package checkpoint

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxConfig bounds config.json and the other small files; the pinned ones have
// 24 kB, and an index 216 kB.
const maxConfig = 16 << 20

// object reads members of a JSON object and notes what is wrong with them. A
// member that is absent or of the wrong type reads as zero.
type object struct {
	path    string // "text_config." or empty
	members map[string]jsontext.Value
	known   map[string]bool
	p       *Problems
}

// frameworkKeys are what transformers writes into any configuration.
var frameworkKeys = []string{
	"_name_or_path", "architectures", "chunk_size_feed_forward", "dtype", "id2label", "is_encoder_decoder", "label2id",
	"output_attentions", "output_hidden_states", "problem_type", "return_dict", "torch_dtype", "transformers_version",
	"bos_token_id", "pad_token_id",
}

func newObject(path string, raw jsontext.Value, p *Problems) *object {
	o := &object{path: path, known: map[string]bool{}, p: p}
	o.inert(frameworkKeys...)
	if err := json.Unmarshal(raw, &o.members); err != nil || o.members == nil {
		p.addf("config.json: %s is not an object", orTop(path))
		o.members = map[string]jsontext.Value{}
	}
	return o
}

func orTop(path string) string {
	if path == "" {
		return "the whole"
	}
	return path[:len(path)-1]
}

// get decodes a member into v, and reports whether that went well.
func (o *object) get(key string, v any) bool {
	o.known[key] = true
	raw, ok := o.members[key]
	if !ok {
		o.p.addf("config.json: %s%s is missing", o.path, key)
		return false
	}
	if err := json.Unmarshal(raw, v); err != nil || raw.Kind() == 'n' {
		o.p.addf("config.json: %s%s is %s, not a %T", o.path, key, brief(raw), deref(v))
		return false
	}
	return true
}

// positive reads a dimension.
func (o *object) positive(key string) int {
	var n int
	if o.get(key, &n) && (n < 1 || n > math.MaxInt32) {
		o.p.addf("config.json: %s%s is %d, not a dimension", o.path, key, n)
		return 0
	}
	return n
}

func (o *object) number(key string) float64 {
	var f float64
	o.get(key, &f)
	return f
}

// fixed notes a member whose value, if it is there at all, would change the
// computation in a way that this engine does not follow.
func (o *object) fixed(key string, want ...string) {
	o.known[key] = true
	raw, ok := o.members[key]
	if ok && !slices.ContainsFunc(want, func(w string) bool { return sameJSON(raw, jsontext.Value(w)) }) {
		o.p.addf("config.json: %s%s is %s, this engine needs %s", o.path, key, brief(raw), want[0])
	}
}

// inert marks members that say nothing about the forward pass.
func (o *object) inert(keys ...string) {
	for _, k := range keys {
		o.known[k] = true
	}
}

// rest notes the members that nobody asked for: they may mean anything.
func (o *object) rest() {
	var keys []string
	for k := range o.members {
		if !o.known[k] {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		o.p.addf("config.json: %s%s is not known to this engine", o.path, k)
	}
}

// sameJSON compares two values regardless of spacing, member order and the
// spelling of numbers.
func sameJSON(a, b jsontext.Value) bool {
	a, b = a.Clone(), b.Clone()
	return a.Canonicalize() == nil && b.Canonicalize() == nil && string(a) == string(b)
}

func brief(raw jsontext.Value) string {
	if len(raw) > 40 {
		return fmt.Sprintf("a value of %d bytes", len(raw))
	}
	return string(raw)
}

func deref(v any) any {
	switch v := v.(type) {
	case *int:
		return *v
	case *float64:
		return *v
	case *string:
		return *v
	case *[]string:
		return *v
	}
	return v
}

// readSmall reads a file that must not be large.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxConfig {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxConfig)
	}
	return os.ReadFile(path)
}

// ReadConfig reads and checks config.json in a folder, without its weights.
// With anyDimensions false, the dimensions must be those of [Full].
func ReadConfig(dir string, anyDimensions bool) (Config, error) {
	p := &Problems{Dir: dir}
	c, err := readConfig(dir, anyDimensions, p)
	if err != nil {
		return Config{}, err
	}
	return c, p.err()
}

func readConfig(dir string, anyDimensions bool, p *Problems) (Config, error) {
	raw, err := readSmall(filepath.Join(dir, "config.json"))
	if errors.Is(err, os.ErrNotExist) {
		p.addf("config.json is missing")
		return Config{}, nil
	}
	if err != nil {
		return Config{}, err
	}
	if !jsontext.Value(raw).IsValid() {
		p.addf("config.json is not valid JSON (or a name stands twice in an object)")
		return Config{}, nil
	}
	if found := foreignConfig(raw); found != "" {
		return Config{}, &FormatError{Path: dir, Found: found}
	}
	c := parseConfig(raw, p)
	if len(p.List) == 0 {
		checkDimensions(c, p)
	}
	if !anyDimensions {
		checkPinned(c, p)
	}
	return c, nil
}
