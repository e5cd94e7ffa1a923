package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"

	"weir/pii"
	"weir/pii/eval"
	"weir/pii/tagger/internal/feature"
)

// Kinds of training text, for the mix.
const (
	kindGold = iota
	kindSwap
	kindOwn
	kindClean
	kindTune
	kindPlain
)

// Tags: 0 is outside, then B I E S of each label in the order of its id.
const ignoreTag = 255

// window is how many tokens a sequence has at most.
const window = 192

// shards collects sequences. A token is kept as the number of its list of rows,
// since most lists recur.
type shards struct {
	x     *feature.Extractor
	cov   eval.Coverage
	ids   map[pii.Label]int
	forms map[[feature.MaxIDs]uint16]uint32
	rows  []byte
	toks  []byte // form numbers
	tags  []byte
	start []byte // first token of each sequence
	kind  []byte
	src   []byte
	n     int
	names []string
	buf   []feature.Token
}

func newShards(x *feature.Extractor, cov eval.Coverage) *shards {
	s := &shards{x: x, cov: cov, ids: map[pii.Label]int{}, forms: map[[feature.MaxIDs]uint16]uint32{}}
	for _, l := range pii.Labels() {
		s.ids[l.Label] = l.ID
	}
	return s
}

// add takes in a document of a source.
func (s *shards) add(d doc, source string, kind int) {
	text := ""
	type mark struct{ start, end, id int }
	var marks []mark
	for _, p := range d.parts {
		if p.label != "" {
			id := -1
			if p.label != unsure {
				id = s.ids[p.label]
			}
			marks = append(marks, mark{len(text), len(text) + len(p.text), id})
		}
		text += p.text
	}
	s.buf = feature.Tokens(text, s.buf[:0])
	toks := s.buf
	tags := make([]byte, len(toks))
	m := 0
	for i := 0; i < len(toks); {
		for m < len(marks) && marks[m].end <= int(toks[i].Start) {
			m++
		}
		if m == len(marks) || marks[m].start >= int(toks[i].End) {
			i++
			continue
		}
		j := i + 1
		for j < len(toks) && int(toks[j].Start) < marks[m].end {
			j++
		}
		for k := i; k < j; k++ {
			tags[k] = tag(marks[m].id, k == i, k == j-1)
		}
		i = j
	}
	num := slices.Index(s.names, source)
	if num < 0 {
		num = len(s.names)
		s.names = append(s.names, source)
	}
	for i := range toks {
		if i%window == 0 {
			s.start = binary.LittleEndian.AppendUint32(s.start, uint32(s.n))
			s.kind = append(s.kind, byte(kind))
			s.src = append(s.src, byte(num))
		}
		var key [feature.MaxIDs]uint16
		s.x.IDs(text, toks, i, key[:0])
		f, ok := s.forms[key]
		if !ok {
			f = uint32(len(s.forms))
			s.forms[key] = f
			for _, id := range key {
				s.rows = binary.LittleEndian.AppendUint16(s.rows, id)
			}
		}
		s.toks = binary.LittleEndian.AppendUint32(s.toks, f)
		s.tags = append(s.tags, tags[i])
		s.n++
	}
}

func tag(id int, first, last bool) byte {
	if id < 0 {
		return ignoreTag
	}
	base := 1 + 4*(id-1)
	switch {
	case first && last:
		return byte(base + 3)
	case first:
		return byte(base)
	case last:
		return byte(base + 2)
	}
	return byte(base + 1)
}

// meta is what the trainer must know of the arrays.
type meta struct {
	Version int      `json:"feature_version"`
	Rows    int      `json:"rows"`
	MaxIDs  int      `json:"max_ids"`
	Tags    int      `json:"tags"`
	Sources []string `json:"sources"`
	// Open lists, for each source, the labels that it does not annotate.
	Open   [][]int `json:"open"`
	Tokens int     `json:"tokens"`
	Forms  int     `json:"forms"`
}

func (s *shards) write(dir string) error {
	m := meta{Version: feature.Version, Rows: feature.Rows, MaxIDs: feature.MaxIDs, Tags: 1 + 4*len(s.ids), Sources: s.names, Tokens: s.n, Forms: len(s.forms)}
	for _, name := range s.names {
		open := []int{}
		if covered, ok := s.cov[name]; ok {
			for _, l := range pii.Labels() {
				if !slices.Contains(covered, l.Label) {
					open = append(open, l.ID)
				}
			}
		}
		m.Open = append(m.Open, open)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"meta.json": b, "forms.u16": s.rows, "tokens.u32": s.toks, "tags.u8": s.tags, "start.u32": s.start, "kind.u8": s.kind, "source.u8": s.src,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
