package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"weir/pii/tagger/internal/feature"
)

// wordLists gathers what is known of words, for features and generated names.
func wordLists(o options, plain []text) (map[string]uint8, error) {
	words, err := readWords(o.words)
	if err != nil {
		return nil, err
	}
	if err := addLocales(o, words); err != nil {
		return nil, err
	}
	if err := addTowns(o.towns, words); err != nil {
		return nil, err
	}
	if err := addLines(o.names, words, feature.ListName); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(o.scowl, "*-words.*"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		switch filepath.Ext(f) {
		case ".10", ".20", ".35", ".40", ".50":
			if err := addLines(f, words, feature.ListCommon); err != nil {
				return nil, err
			}
		}
	}
	addSeen(plain, words)
	return words, nil
}

// readWords reads the lists of package rules.
func readWords(name string) (map[string]uint8, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	words := map[string]uint8{}
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		w, letters, _ := strings.Cut(lines.Text(), "\t")
		for _, c := range letters {
			switch c {
			case 'f':
				words[w] |= feature.ListForename
			case 's':
				words[w] |= feature.ListSurname
			case 'c':
				words[w] |= feature.ListCommon
			case 'p':
				words[w] |= feature.ListPlace
			}
		}
	}
	return words, lines.Err()
}

// add puts single words into the lists.
func add(words map[string]uint8, list []string, flag uint8) {
	for _, w := range list {
		if len(w) > 2 && strings.IndexFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) < 0 {
			words[strings.ToLower(w)] |= flag
		}
	}
}

// addLocales adds names and places of all locales.
func addLocales(o options, words map[string]uint8) error {
	for _, name := range [...]string{o.locales, o.east} {
		locales, err := readLocales(name)
		if err != nil {
			return err
		}
		for _, l := range locales {
			add(words, l.First, feature.ListForename)
			add(words, l.Last, feature.ListSurname)
			add(words, l.City, feature.ListPlace)
			add(words, l.State, feature.ListPlace)
			add(words, short(l.Full), feature.ListName)
			add(words, short(l.Org), feature.ListOrg)
			add(words, l.Common, feature.ListCommon)
		}
	}
	return nil
}

// short keeps what is no longer than what is looked up.
func short(list []string) []string {
	var out []string
	for _, w := range list {
		if utf8.RuneCountInString(w) <= 6 {
			out = append(out, w)
		}
	}
	return out
}

func addTowns(name string, words map[string]uint8) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	var towns []struct {
		Name string `json:"name"`
	}
	if err := json.UnmarshalRead(z, &towns); err != nil {
		return fmt.Errorf("read towns: %w", err)
	}
	for _, t := range towns {
		add(words, []string{t.Name}, feature.ListPlace)
	}
	return nil
}

// addLines adds the words of a file, one a line.
func addLines(name string, words map[string]uint8, flag uint8) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		w := strings.TrimSpace(line)
		if flag == feature.ListCommon && strings.ToLower(w) != w {
			continue
		}
		add(words, []string{w}, flag)
	}
	return nil
}

// leastSeen is how often a word must be seen to be held for a common one.
const leastSeen = 4

// addSeen adds the words that texts of a language write small more often than
// not, and the nouns of German manuals, which nobody is named in.
func addSeen(plain []text, words map[string]uint8) {
	type count struct{ small, large int }
	langs := map[string]map[string]*count{}
	for _, t := range plain {
		seen := langs[t.Lang]
		if seen == nil {
			seen = map[string]*count{}
			langs[t.Lang] = seen
		}
		for w := range strings.FieldsFuncSeq(t.Text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
			key := strings.ToLower(w)
			c := seen[key]
			if c == nil {
				c = &count{}
				seen[key] = c
			}
			switch {
			case key == w:
				c.small++
			case t.Lang == "de" && t.Dry && len(w) > 3 && w != strings.ToUpper(w):
				c.small++
			default:
				c.large++
			}
		}
	}
	for _, seen := range langs {
		for w, c := range seen {
			least, times := leastSeen, 1
			if words[w]&^feature.ListCommon != 0 {
				least, times = 5*leastSeen, 4 // a name too
			}
			if c.small >= least && c.small > times*c.large {
				add(words, []string{w}, feature.ListCommon)
			}
		}
	}
}
