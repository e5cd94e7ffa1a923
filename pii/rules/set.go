// Package rules finds private values by patterns, check digits and the words
// around them.
//
// Begin at [Default], which loads the shipped recognizers, and
// [Set.Classify], which runs them. A text is cut into words once (lex.go);
// everything else works on the words, so that no pattern is ever run over a
// whole text: identifiers (ids.go) are groups of words with digits, tokens of
// vendors (secrets.go) begin at a word, values of named fields (keyed.go)
// follow a phrase of the vocabulary. The recognizers themselves are data, in
// data/*.yaml, each with examples that must and must not be found.
//
// It promises linear time, and offsets into the text as it was given. It does
// not look through disguises or settle overlaps: package weir/pii does that.
// It finds names, addresses and traits only where words around them say so;
// the rest is for the learned tagger.
package rules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"weir/pii"
)

// codeVersion changes whenever the code finds something else in the same text
// with the same data.
const codeVersion = "4"

// Rule describes a recognizer for people.
type Rule struct {
	ID    string
	Label pii.Label
	Text  string
	// Yes are texts in which the rule finds something, No texts in which it
	// must not.
	Yes, No []string
}

type ruleInfo = Rule

// Set is a set of recognizers. It is immutable and safe for concurrent use.
type Set struct {
	vocab   *vocab
	index   idIndex
	keyed   []*keyedRule
	byClass [maxClasses][]*keyedRule
	tokens  tokenIndex
	traits  traitIndex
	people  people
	street  streetPatterns
	own     map[string]*ruleInfo
	rules   []*ruleInfo
	version string
	c       classes
	texts   sync.Pool
}

// Default returns the shipped recognizers.
func Default() (*Set, error) {
	s := &Set{own: map[string]*ruleInfo{}}
	s.texts.New = func() any { return new(text) }
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("shipped recognizers: %w", err)
	}
	return s, nil
}

// Version identifies the recognizers: it differs whenever results may.
func (s *Set) Version() string { return s.version }

// Rules lists the recognizers.
func (s *Set) Rules() []Rule {
	out := make([]Rule, len(s.rules))
	for i, r := range s.rules {
		out[i] = *r
	}
	return out
}

// Classify finds the private values of t. The spans may overlap.
func (s *Set) Classify(ctx context.Context, t pii.Text) ([]pii.Span, error) {
	doc, _ := s.texts.Get().(*text)
	defer s.texts.Put(doc)
	doc.words, doc.hits, doc.key = doc.words[:0], doc.hits[:0], 0
	doc.tokenFrom, doc.tokenTo, doc.asked = 0, -1, 0
	doc.s = t.Value
	if t.Key != "" && s.vocab.meaningful(t.Key) {
		doc.s = t.Key + ": " + t.Value
		doc.key = len(t.Key) + 2
	}
	defer doc.forget()
	out := &findings{}
	for _, part := range [...]func(*text, *findings){
		s.lex, s.ids, s.startTokens, s.insideTokens, s.keyedValues, s.passwords, s.commandLine, s.emails, s.urls,
		s.phones, s.numbersOfNets, s.wallets, s.pemKeys, s.headers, s.dates, s.streets, s.persons, s.organizations, s.places, s.traitsOf,
	} {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("%w: %w", pii.ErrUnexamined, err)
		}
		part(doc, out)
	}
	return out.spans, nil
}

func (s *Set) lex(t *text, _ *findings) { s.vocab.lex(t) }

// forget drops what a pooled text holds of its content, and arrays that one
// large text has made large.
func (t *text) forget() {
	t.s = ""
	if cap(t.words) > 1<<16 {
		t.words, t.hits = nil, nil
	}
}

// findings collects spans.
type findings struct {
	spans []pii.Span
}

// add records a finding, unless it lies in the member's name.
func (f *findings) add(t *text, start, end int, r *ruleInfo, score float64, rank pii.Rank) {
	if start < t.key || start >= end {
		return
	}
	f.spans = append(f.spans, pii.Span{
		Start: start - t.key, End: end - t.key, Label: r.Label, Score: score, Rank: rank, Rule: r.ID,
	})
}

// meaningful reports a member name with a phrase of the vocabulary in it.
func (v *vocab) meaningful(key string) bool {
	if len(key) > 200 {
		return false
	}
	t := text{s: key}
	v.lex(&t)
	return len(t.hits) > 0
}

func digest(parts ...[]byte) string {
	h := sha256.New()
	h.Write([]byte(codeVersion))
	for _, p := range parts {
		sum := sha256.Sum256(p)
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
