package rules

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// What the word lists say of a word.
const (
	listForename = 1 << iota
	listSurname
	listCommon
	listPlace
)

// maxWord bounds the words that are looked up.
const maxWord = 40

// entry is what the vocabulary knows of a single word.
type entry struct {
	id   uint32 // for phrases; 0 if in none
	list uint8
}

// vocab recognizes phrases, and knows the word lists. It is immutable.
type vocab struct {
	words   map[string]entry
	edges   map[uint64]uint32 // phrase state and word id to the next state
	accept  []classSet        // classes of the phrase that ends in a state
	unspace map[rune][]phrase // phrases of scripts that don't separate words
	classes map[string]class
	ids     uint32 // words that stand in phrases
}

type phrase struct {
	text string
	set  classSet
}

func newVocab(source, lists []byte) (*vocab, error) {
	var groups map[string][]string
	if err := yaml.UnmarshalWithOptions(source, &groups, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	v := &vocab{
		words:   make(map[string]entry, 70_000),
		edges:   map[uint64]uint32{},
		accept:  make([]classSet, 1),
		unspace: map[rune][]phrase{},
		classes: map[string]class{},
	}
	if err := v.loadLists(lists); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(groups))
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) >= maxClasses {
		return nil, fmt.Errorf("vocabulary: %d classes, at most %d", len(names), maxClasses-1)
	}
	for i, name := range names {
		v.classes[name] = class(i + 1)
		for _, p := range groups[name] {
			v.addPhrase(p, class(i+1))
		}
	}
	return v, nil
}

func (v *vocab) loadLists(packed []byte) error {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("word lists: %w", err)
	}
	var all strings.Builder
	if _, err := io.Copy(&all, z); err != nil {
		return fmt.Errorf("word lists: %w", err)
	}
	for line := range strings.Lines(all.String()) {
		word, letters, _ := strings.Cut(line, "\t")
		var e entry
		for i := range len(letters) {
			switch letters[i] {
			case 'f':
				e.list |= listForename
			case 's':
				e.list |= listSurname
			case 'c':
				e.list |= listCommon
			case 'p':
				e.list |= listPlace
			}
		}
		v.words[word] = e
	}
	return nil
}

func (v *vocab) addPhrase(p string, c class) {
	if first, _ := utf8.DecodeRuneInString(p); unspaced(first) {
		list := v.unspace[first]
		i := slices.IndexFunc(list, func(q phrase) bool { return q.text == p })
		if i < 0 {
			list = append(list, phrase{text: p})
			i = len(list) - 1
		}
		list[i].set.add(c)
		v.unspace[first] = list
		return
	}
	state := uint32(0)
	for w := range strings.FieldsFuncSeq(p, func(r rune) bool { return r == ' ' || r == '/' || r == '\'' || r == '-' || r == '.' }) {
		e := v.words[w]
		if e.id == 0 {
			v.ids++
			e.id = v.ids
			v.words[w] = e
		}
		key := uint64(state)<<32 | uint64(e.id)
		next, ok := v.edges[key]
		if !ok {
			next = uint32(len(v.accept))
			v.accept = append(v.accept, classSet{})
			v.edges[key] = next
		}
		state = next
	}
	v.accept[state].add(c)
}

// class returns the class of a name that the data uses.
func (v *vocab) class(name string) (class, error) {
	c, ok := v.classes[name]
	if !ok {
		return 0, fmt.Errorf("no class %q in the vocabulary", name)
	}
	return c, nil
}

func (v *vocab) set(names []string) (classSet, error) {
	var s classSet
	for _, name := range names {
		c, err := v.class(name)
		if err != nil {
			return s, err
		}
		s.add(c)
	}
	return s, nil
}
