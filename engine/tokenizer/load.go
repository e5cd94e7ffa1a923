package tokenizer

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// file is tokenizer.json, as far as it matters.
type file struct {
	Truncation    jsontext.Value `json:"truncation"`
	Padding       jsontext.Value `json:"padding"`
	Added         []addedToken   `json:"added_tokens"`
	Normalizer    step           `json:"normalizer"`
	PreTokenizer  step           `json:"pre_tokenizer"`
	PostProcessor step           `json:"post_processor"`
	Decoder       step           `json:"decoder"`
	Model         model          `json:"model"`
}

type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// step is one of the pipeline's, with the members that the kinds we know have.
type step struct {
	Type           string `json:"type"`
	PreTokenizers  []step `json:"pretokenizers"`
	Pattern        regex  `json:"pattern"`
	Behavior       string `json:"behavior"`
	Invert         bool   `json:"invert"`
	AddPrefixSpace bool   `json:"add_prefix_space"`
	UseRegex       *bool  `json:"use_regex"`
}

type regex struct {
	Regex string `json:"Regex"`
}

type model struct {
	Type         string           `json:"type"`
	Dropout      *float64         `json:"dropout"`
	Unknown      *string          `json:"unk_token"`
	Prefix       *string          `json:"continuing_subword_prefix"`
	Suffix       *string          `json:"end_of_word_suffix"`
	FuseUnknown  bool             `json:"fuse_unk"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       []pair           `json:"merges"`
}

// pair is a merge: ["a","b"], or "a b" in older files.
type pair [2]string

// UnmarshalJSONFrom reads either form. There are a quarter of a million, so
// that it pays to read tokens.
func (p *pair) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		left, right, ok := strings.Cut(t.String(), " ")
		if !ok {
			return errNoPair
		}
		*p = pair{left, right}
		return nil
	}
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return cmp.Or(err, errNoPair)
	}
	for i := range p {
		t, err := d.ReadToken()
		if err != nil || t.Kind() != '"' {
			return cmp.Or(err, errNoPair)
		}
		p[i] = t.String()
	}
	if t, err := d.ReadToken(); err != nil || t.Kind() != ']' {
		return cmp.Or(err, errNoPair)
	}
	return nil
}

var errNoPair = errors.New("a merge is not a pair")

// maxID bounds ids, so that a file cannot make us reserve memory at will.
const maxID = 1 << 22

// Load reads a tokenizer.json. It refuses one whose pipeline is not the one
// implemented here, naming every difference.
func Load(raw []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("tokenizer.json is not readable as a tokenizer: %w", where(err))
	}
	if errs := f.differences(); len(errs) > 0 {
		return nil, fmt.Errorf("tokenizer.json is not of this model: %w", errors.Join(errs...))
	}
	t := &Tokenizer{merges: newMerges(len(f.Model.Merges)), added: map[string]int32{}, cache: newCache()}
	if err := t.build(&f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return t, nil
}

// where keeps the place of a decoding error.
func where(err error) error {
	var syntax *jsontext.SyntacticError
	var meaning *json.SemanticError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("at byte %d", syntax.ByteOffset)
	case errors.As(err, &meaning):
		return fmt.Errorf("at byte %d", meaning.ByteOffset)
	}
	return err
}

// differences lists what would make other ids than ours.
func (f *file) differences() []error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	none := func(v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' }
	empty := func(s *string) bool { return s == nil || *s == "" }
	m := &f.Model
	need(none(f.Truncation) && none(f.Padding), "it truncates or pads")
	need(f.Normalizer.Type == "NFC", "its normalizer is not NFC")
	need(m.Type == "BPE", "its model is not BPE")
	need(m.Dropout == nil || *m.Dropout == 0, "its model has dropout")
	need(empty(m.Unknown) && !m.FuseUnknown && !m.ByteFallback, "its model has unknown tokens")
	need(empty(m.Prefix) && empty(m.Suffix), "its model marks parts of words")
	need(!m.IgnoreMerges, "its model ignores merges")
	need(f.Decoder.Type == "ByteLevel", "its decoder is not ByteLevel")
	need(f.PostProcessor.Type == "" || f.PostProcessor.Type == "ByteLevel", "its post-processor adds tokens")
	need(f.PreTokenizer.isOurs(), "its pre-tokenizer splits in another way")
	for _, a := range f.Added {
		need(!a.SingleWord && !a.LStrip && !a.RStrip && !a.Normalized && a.Content != "",
			fmt.Sprintf("added token %d strips, normalizes or is empty", a.ID))
	}
	return errs
}

// isOurs reports a split by the pattern followed by the byte table.
func (s step) isOurs() bool {
	if s.Type != "Sequence" || len(s.PreTokenizers) != 2 {
		return false
	}
	split, level := s.PreTokenizers[0], s.PreTokenizers[1]
	return split.Type == "Split" && split.Pattern.Regex == pattern && split.Behavior == "Isolated" && !split.Invert &&
		level.Type == "ByteLevel" && !level.AddPrefixSpace && level.UseRegex != nil && !*level.UseRegex
}

// build fills the tables.
func (t *Tokenizer) build(f *file) error {
	top := int32(-1)
	for _, id := range f.Model.Vocab {
		top = max(top, id)
	}
	for _, a := range f.Added {
		top = max(top, a.ID)
	}
	if top >= maxID {
		return fmt.Errorf("id %d is beyond any vocabulary", top)
	}
	t.tokens, t.kinds = make([]string, top+1), make([]kind, top+1)
	for _, a := range f.Added {
		if err := t.addToken(a); err != nil {
			return err
		}
	}
	if err := t.addVocab(f.Model.Vocab); err != nil {
		return err
	}
	return t.addMerges(f.Model.Vocab, f.Model.Merges)
}

func (t *Tokenizer) addToken(a addedToken) error {
	if a.ID < 0 || t.tokens[a.ID] != "" {
		return fmt.Errorf("added token %d is negative or stands twice", a.ID)
	}
	if _, twice := t.added[a.Content]; twice {
		return fmt.Errorf("added token %d has the text of another", a.ID)
	}
	t.tokens[a.ID], t.added[a.Content] = a.Content, a.ID
	t.kinds[a.ID] = added
	if a.Special {
		t.kinds[a.ID] = special
	}
	t.starts[a.Content[0]] = true
	t.longest = max(t.longest, len(a.Content))
	return nil
}

func (t *Tokenizer) addVocab(vocab map[string]int32) error {
	table := byteTable()
	for i := range t.bytes {
		t.bytes[i] = -1
	}
	for text, id := range vocab {
		if again, ok := t.added[text]; ok && again == id {
			continue // listed in both
		}
		if id < 0 || t.tokens[id] != "" {
			return fmt.Errorf("id %d is negative or stands twice", id)
		}
		b := make([]byte, 0, len(text))
		for _, r := range text {
			c, ok := table[r]
			if !ok {
				return fmt.Errorf("token %d is not written in the byte alphabet", id)
			}
			b = append(b, c)
		}
		if len(b) == 0 {
			return fmt.Errorf("token %d is empty", id)
		}
		t.tokens[id] = string(b)
		if len(b) == 1 {
			t.bytes[b[0]] = id
		}
	}
	for b, id := range t.bytes {
		if id < 0 {
			return fmt.Errorf("there is no token for byte %#02x: some texts could not be written", b)
		}
	}
	return nil
}

func (t *Tokenizer) addMerges(vocab map[string]int32, list []pair) error {
	for rank, p := range list {
		left, ok1 := vocab[p[0]]
		right, ok2 := vocab[p[1]]
		whole, ok3 := vocab[p[0]+p[1]]
		if !ok1 || !ok2 || !ok3 {
			return fmt.Errorf("merge %d has a part or a result that is no token", rank)
		}
		if !t.merges.add(left, right, merge{rank: int32(rank), id: whole}) {
			return fmt.Errorf("merge %d stands twice", rank)
		}
	}
	return nil
}
