// Package custom runs the recognizers that a user wrote.
//
// Begin at [Compile], which takes them as the configuration holds them and
// reports every fault at once, and at [Set.Classify], which runs them. A
// recognizer is a pattern or a list of words, with a validator that a pattern's
// match must pass and context words that must stand near it. Each brings examples
// of what it finds and of what it spares, and is refused unless they hold.
//
// It promises time linear in the text, however hostile that is: words and
// context are found in one pass, patterns are RE2 run over pieces of bounded
// size. A match is at most [MaxMatch] bytes long. No fault quotes a pattern, a
// word or an example, any of which may be private.
//
// Disguises and overlaps are the affair of package weir/pii, and so is what else
// is known of a label.
package custom

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"

	"weir/pii"
)

// Recognizer is one recognizer as a user writes it. The yaml tags are its keys in
// the configuration. It prints its name only.
type Recognizer struct {
	// ID names it in explanations: small letters, digits and hyphens.
	ID string `yaml:"id"`
	// Label is what its findings are: a built-in label or a new one.
	Label string `yaml:"label"`
	// Text says for people what it finds, in a few words.
	Text string `yaml:"text"`
	// Pattern is a regular expression of RE2. If it has a group, the first that
	// took part in the match is the finding, else the whole match.
	Pattern string `yaml:"pattern"`
	// Words are values to find as they are, in any letter case unless MatchCase.
	// A space, a hyphen and an underscore are the same to them.
	Words     []string `yaml:"words"`
	MatchCase bool     `yaml:"match_case"`
	// Validator is one of those that [weir/pii/rules.Checks] lists.
	Validator string `yaml:"validator"`
	// Context are words of which one must stand near a finding, or in the name
	// of the JSON member that holds it. None if nothing need.
	Context []string `yaml:"context"`
	// Score is the confidence in a finding, in (0,1].
	Score float64 `yaml:"score"`
	// ScoreAlone is the confidence in a finding with no context near it; 0 for
	// no finding then.
	ScoreAlone float64 `yaml:"score_alone"`
	// Finds are texts in which it must find something, Spares texts in which it
	// must not.
	Finds  []string `yaml:"finds"`
	Spares []string `yaml:"spares"`
}

// Format prints the recognizer's name: what it looks for may be private.
func (r Recognizer) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "recognizer(%s, %s)", r.ID, r.Label) }

// LogValue is the same for logs.
func (r Recognizer) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(r)) }

// Set is a set of recognizers. It is immutable and safe for concurrent use.
type Set struct {
	list    []*compiled
	words   *automaton
	version string
}

// Recognizers returns what the set was made of.
func (s *Set) Recognizers() []Recognizer {
	out := make([]Recognizer, len(s.list))
	for i, c := range s.list {
		out[i] = c.Recognizer
	}
	return out
}

// Labels returns the labels of the set that are not built in, in the order of
// their first recognizer.
func (s *Set) Labels() []pii.Label {
	var out []pii.Label
	seen := map[string]bool{}
	for _, c := range s.list {
		if _, builtin := pii.Lookup(pii.Label(c.Label)); !builtin && !seen[c.Label] {
			seen[c.Label] = true
			out = append(out, pii.Label(c.Label))
		}
	}
	return out
}

// Version identifies the recognizers: it differs whenever results may.
func (s *Set) Version() string { return s.version }

// codeVersion changes whenever the code finds something else with the same
// recognizers.
const codeVersion = "1"

func digest(list []*compiled) string {
	h := sha256.New()
	fmt.Fprint(h, codeVersion)
	for _, c := range list {
		fmt.Fprintf(h, "%q %q %q %q %v %q %q %v %v\n", c.ID, c.Label, c.Pattern, c.Words, c.MatchCase, c.Validator, c.Context, c.Score, c.ScoreAlone)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// How far from a finding its context may stand, in bytes.
const (
	contextBefore = 96
	contextAfter  = 48
)

// Classify finds what the recognizers describe in t. The spans may overlap.
func (s *Set) Classify(ctx context.Context, t pii.Text) ([]pii.Span, error) {
	return s.classify(ctx, t, nil)
}

// classify runs one recognizer, or all if only is nil.
func (s *Set) classify(ctx context.Context, t pii.Text, only *compiled) ([]pii.Span, error) {
	run := run{set: s, text: t, near: make([][]place, len(s.list)), inKey: make([]bool, len(s.list))}
	s.words.scan(spelt(t.Key), func(w *word, _, _ int) {
		if w.context {
			run.inKey[w.of] = true
		}
	})
	var listed []listing
	s.words.scan(t.Value, func(w *word, start, end int) {
		if w.context {
			run.near[w.of] = append(run.near[w.of], place{start, end})
		} else if w.written(t.Value[start:end]) {
			listed = append(listed, listing{w.of, place{start, end}})
		}
	})
	for _, l := range listed {
		run.add(l.of, l.place)
	}
	for i, c := range s.list {
		if c.pattern == nil || only != nil && c != only || !run.possible(i) {
			continue
		}
		if err := run.pattern(ctx, i); err != nil {
			return nil, err
		}
	}
	return run.spans, nil
}

// place is a range of bytes.
type place struct{ start, end int }

type listing struct {
	of int
	place
}

// run is one text under examination.
type run struct {
	set   *Set
	text  pii.Text
	near  [][]place // by recognizer: its context words, by their ends
	inKey []bool    // by recognizer: one stands in the member's name
	spans []pii.Span
}

// possible says that recognizer i can find something in this text at all.
func (r *run) possible(i int) bool {
	c := r.set.list[i]
	return len(c.Context) == 0 || c.ScoreAlone > 0 || r.inKey[i] || len(r.near[i]) > 0
}

// add reports a finding of recognizer i, if its context and its validator agree.
func (r *run) add(i int, at place) {
	c := r.set.list[i]
	score := c.Score
	if len(c.Context) > 0 && !r.inKey[i] && !nearBy(r.near[i], at) {
		score = c.ScoreAlone
	}
	if score == 0 || c.valid != nil && !c.valid(r.text.Value[at.start:at.end]) {
		return
	}
	// Who writes a recognizer knows the values better than a guess of ours does,
	// and no better than check digits do.
	rank := pii.RankPrefix
	if c.valid != nil {
		rank = pii.RankChecksum
	}
	r.spans = append(r.spans, pii.Span{
		Start: at.start, End: at.end, Label: pii.Label(c.Label), Score: score, Rank: rank, Rule: c.ID,
	})
}
