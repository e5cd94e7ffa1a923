package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
)

// Options says how strict [Open] is. The zero value accepts only
// Qwen3.6-35B-A3B.
type Options struct {
	// AnyDimensions accepts other sizes of the same architecture and layout:
	// the small models of tests and of [Synth].
	AnyDimensions bool
}

// Checkpoint is an opened checkpoint. It is safe for concurrent use until it
// is closed.
type Checkpoint struct {
	dir     string
	config  Config
	files   []*File
	names   []string // of the files, in the order of Shards
	tensors map[string]Tensor
}

const (
	singleFile = "model.safetensors"
	indexFile  = "model.safetensors.index.json"
)

// Open maps the checkpoint in a folder and checks it completely. The error is
// a [*Problems] if it is not the model, a [*FormatError] if it is another one,
// and anything else if it could not be read.
func Open(dir string, o Options) (*Checkpoint, error) {
	if found := foreignFiles(dir); found != "" {
		return nil, &FormatError{Path: dir, Found: found}
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	p := &Problems{Dir: dir}
	config, err := readConfig(dir, o.AnyDimensions, p)
	if err != nil {
		return nil, err
	}
	configOK := len(p.List) == 0
	c := &Checkpoint{dir: dir, config: config, tensors: map[string]Tensor{}}
	if err := c.mapShards(dir, p); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	// Against a wrong configuration every tensor would be wrong as well.
	if configOK {
		checkTensors(config, c.tensors, p)
	}
	if err := p.err(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// mapShards opens every file that holds weights and joins their tensors.
func (c *Checkpoint) mapShards(dir string, p *Problems) error {
	index, err := readIndex(dir, p)
	if err != nil {
		return err
	}
	byFile := map[string]bool{}
	for _, file := range index {
		byFile[file] = true
	}
	if index == nil {
		byFile[singleFile] = true
	}
	for _, name := range sortedKeys(byFile) {
		f, err := OpenFile(filepath.Join(dir, name))
		var path *fs.PathError
		switch {
		case errors.Is(err, fs.ErrNotExist):
			p.addf("%s is missing", name)
			continue
		case errors.As(err, &path):
			return err
		case err != nil:
			p.addf("%s", trimDir(dir, err))
			continue
		}
		c.files, c.names = append(c.files, f), append(c.names, name)
		for t := range f.Tensors() {
			c.add(t, name, index, p)
		}
	}
	for _, name := range sortedKeys(index) {
		if _, ok := c.tensors[name]; !ok && slices.Contains(c.names, index[name]) {
			p.addf("%s is not in %s, where the index has it", name, index[name])
		}
	}
	return nil
}

func (c *Checkpoint) add(t Tensor, file string, index map[string]string, p *Problems) {
	if index != nil && index[t.Name] != file {
		where := cmp.Or(index[t.Name], "nowhere")
		p.addf("%s is in %s, the index has it in %s", t.Name, file, where)
	}
	if _, twice := c.tensors[t.Name]; twice {
		p.addf("%s is in more than one file", t.Name)
	}
	t.Shard = len(c.files) - 1
	c.tensors[t.Name] = t
}

// readIndex returns which file holds each tensor, or nil if the checkpoint is
// a single file.
func readIndex(dir string, p *Problems) (map[string]string, error) {
	raw, err := readSmall(filepath.Join(dir, indexFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(raw, &index); err != nil || index.WeightMap == nil {
		p.addf("%s has no readable weight_map", indexFile)
		return map[string]string{}, nil
	}
	if _, err := os.Lstat(filepath.Join(dir, singleFile)); err == nil {
		p.addf("%s and %s are both there: which of them counts cannot be known", singleFile, indexFile)
	}
	for _, name := range sortedKeys(index.WeightMap) {
		if file := index.WeightMap[name]; !plainName(file) {
			p.addf("%s places %s in %q, which is not a safetensors file of this folder", indexFile, name, file)
			delete(index.WeightMap, name)
		}
	}
	return index.WeightMap, nil
}

// plainName reports whether a name from an index stays in the folder.
func plainName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && filepath.Ext(name) == ".safetensors"
}

// trimDir shortens an error's path to the file's name: a list of problems is
// headed by the folder.
func trimDir(dir string, err error) string {
	s := err.Error()
	if prefix := dir + string(filepath.Separator); len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):]
	}
	return s
}

// Config returns the configuration.
func (c *Checkpoint) Config() Config { return c.config.Clone() }

// Tensor returns the tensor of that name. It is there if
// [Config.Tensors] has it.
func (c *Checkpoint) Tensor(name string) (Tensor, bool) {
	t, ok := c.tensors[name]
	return t, ok
}

// Matrix is a quantized matrix, or a stack of them, one for each expert.
type Matrix struct {
	Experts    int // 1 for a plain matrix
	Rows, Cols int // of one expert: outputs and inputs
	Bits       int
	// Codes has Cols x Bits / 8 bytes a row, lowest bits first; Scales and
	// Biases have Cols / GroupSize bfloat16 a row. Like all tensors they may
	// begin at any byte.
	Codes, Scales, Biases []byte
}

// Matrix returns the quantized matrix of a module, as "language_model.lm_head".
func (c *Checkpoint) Matrix(module string) (Matrix, bool) {
	w, ok1 := c.tensors[module+".weight"]
	s, ok2 := c.tensors[module+".scales"]
	b, ok3 := c.tensors[module+".biases"]
	if !ok1 || !ok2 || !ok3 {
		return Matrix{}, false
	}
	d := len(w.Shape)
	m := Matrix{Experts: 1, Rows: w.Shape[d-2], Cols: s.Shape[d-1] * GroupSize, Codes: w.Data, Scales: s.Data, Biases: b.Data}
	if d == 3 {
		m.Experts = w.Shape[0]
	}
	m.Bits = w.Shape[d-1] * 32 / m.Cols
	return m, true
}

// Shards returns the mappings of the files, each from its first byte and
// beginning at a page, for devices that read them in place. Like
// [Tensor.Data] they are read-only and end with Close.
func (c *Checkpoint) Shards() [][]byte {
	maps := make([][]byte, len(c.files))
	for i, f := range c.files {
		maps[i] = f.mapping
	}
	return maps
}

// Close ends the mappings. No tensor may be read afterwards. Closing again
// does nothing.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	c.files, c.tensors = nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("unmap checkpoint: %w", err)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
