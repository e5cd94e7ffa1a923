package custom

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/pii"
	"weir/pii/rules"
)

// What a user's recognizers may hold together and each.
const (
	maxRecognizers  = 200
	maxPattern      = 2000  // bytes
	maxProgram      = 4000  // instructions of a pattern
	maxPrograms     = 40000 // of all patterns
	maxWords        = 50000 // of all recognizers
	maxWordBytes    = 200
	minWordBytes    = 2
	maxExamples     = 100 // of a recognizer
	maxExampleBytes = 4096
	maxText         = 120
)

// Fault is one thing wrong with a recognizer. It quotes none of its content.
type Fault struct {
	// Index is the recognizer's place in the list.
	Index int
	// Field is the key at fault, as "pattern" or "finds[2]"; empty for all of it.
	Field string
	// Message says what is wrong, Hint what to do about it; Hint may be empty.
	Message, Hint string
}

// Faults is everything wrong with a list of recognizers.
type Faults []Fault

// Error returns the faults, one to a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = fmt.Sprintf("recognizers[%d].%s: %s", f.Index, f.Field, f.Message)
	}
	return strings.Join(lines, "\n")
}

// compiled is a recognizer made ready.
type compiled struct {
	Recognizer
	pattern *regexp.Regexp
	needs   string // stands in each of the pattern's matches
	valid   func(value string) bool
}

// compiler makes a set and collects what is wrong.
type compiler struct {
	list     []Recognizer
	set      Set
	faults   Faults
	programs int
	words    int
}

// Compile checks recognizers and makes them ready. The error is [Faults].
func Compile(list []Recognizer) (*Set, error) {
	c := &compiler{list: list, set: Set{words: newAutomaton()}}
	if len(list) > maxRecognizers {
		c.fault(maxRecognizers, "", fmt.Sprintf("more than %d recognizers", maxRecognizers), "put values of one kind into one list of words")
		return nil, c.faults
	}
	for i := range list {
		c.name(i)
		c.label(i)
		c.set.list = append(c.set.list, c.compile(i))
	}
	c.set.words.link()
	for i := range list {
		// Of one that has faults already, its examples say nothing more.
		if !slices.ContainsFunc(c.faults, func(f Fault) bool { return f.Index == i }) {
			c.examples(i)
		}
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	c.set.version = digest(c.set.list)
	return &c.set, nil
}

func (c *compiler) fault(i int, field, message, hint string) {
	c.faults = append(c.faults, Fault{i, field, message, hint})
}

var goodID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

func (c *compiler) name(i int) {
	r := c.list[i]
	switch {
	case !goodID.MatchString(r.ID):
		c.fault(i, "id", "must be a name of small letters, digits and hyphens", "")
	case slices.ContainsFunc(c.list[:i], func(o Recognizer) bool { return o.ID == r.ID }):
		c.fault(i, "id", "another recognizer has this id", "")
	}
	if n := utf8.RuneCountInString(r.Text); n == 0 || n > maxText || strings.ContainsFunc(r.Text, func(r rune) bool { return r < ' ' }) {
		c.fault(i, "text", fmt.Sprintf("must say in one line of at most %d characters what is found", maxText), "")
	}
}

// goodLabel is what a label looks like that a placeholder can be made of.
var goodLabel = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)

// maxLabel keeps a placeholder of the label short enough to be held back in a
// stream.
const maxLabel = 32

func (c *compiler) label(i int) {
	label := c.list[i].Label
	if _, builtin := pii.Lookup(pii.Label(label)); builtin {
		return
	}
	stem := pii.Stem(pii.Label(label))
	switch {
	case !goodLabel.MatchString(label) || len(label) > maxLabel || letters(label) < 2:
		c.fault(i, "label", fmt.Sprintf("must be a built-in label, or at most %d capitals, digits and underscores", maxLabel), "as STAFF_BADGE")
		return
	case slices.Contains([]string{"IMAGE", "AUDIO", "FILE", "ENCRYPTED", "UNKNOWN", "UNEXAMINED"}, label):
		c.fault(i, "label", "is the name of content that cannot be examined", "")
		return
	}
	if stem == pii.Stem("") { // the capitals are the stem of another label
		c.fault(i, "label", "its placeholders would look like those of a built-in label", "give the label another name")
	}
	for _, o := range c.list[:i] {
		if o.Label != label && pii.Stem(pii.Label(o.Label)) == stem {
			c.fault(i, "label", "its placeholders would look like those of another label here", "give the label another name")
			return
		}
	}
}

func letters(label string) (n int) {
	for _, r := range label {
		if r >= 'A' && r <= 'Z' {
			n++
		}
	}
	return n
}

func (c *compiler) compile(i int) *compiled {
	r := c.list[i]
	out := &compiled{Recognizer: r}
	if r.Pattern == "" && len(r.Words) == 0 {
		c.fault(i, "", "has neither pattern nor words", "")
	}
	if r.Pattern != "" {
		out.pattern, out.needs = c.pattern(i)
	}
	if r.Validator != "" {
		if !slices.Contains(rules.Checks(), r.Validator) {
			c.fault(i, "validator", "no validator of this name", "weir pii rules --validators lists them")
		}
		out.valid = func(value string) bool { return rules.Valid(r.Validator, value) }
	}
	c.wordsOf(i, "words", r.Words, word{of: i})
	c.wordsOf(i, "context", r.Context, word{of: i, context: true})
	if !(r.Score > 0 && r.Score <= 1) {
		c.fault(i, "score", "must be more than 0 and at most 1", "")
	}
	switch {
	case !(r.ScoreAlone >= 0 && r.ScoreAlone <= r.Score):
		c.fault(i, "score_alone", "must be from 0 to score", "")
	case r.ScoreAlone > 0 && len(r.Context) == 0:
		c.fault(i, "score_alone", "has no meaning without context", "")
	}
	return out
}

// pattern compiles a pattern. The faults of the compiler quote it, so only their
// codes are passed on.
func (c *compiler) pattern(i int) (re *regexp.Regexp, needs string) {
	source := c.list[i].Pattern
	if len(source) > maxPattern {
		c.fault(i, "pattern", fmt.Sprintf("is longer than %d bytes", maxPattern), "put values into words")
		return nil, ""
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		message := "is no regular expression of RE2"
		var bad *syntax.Error
		if errors.As(err, &bad) {
			message += ": " + bad.Code.String()
			if at := strings.Index(source, bad.Expr); at >= 0 && bad.Expr != "" && bad.Expr != source {
				message += fmt.Sprintf(", at character %d", utf8.RuneCountInString(source[:at])+1)
			}
		}
		c.fault(i, "pattern", message, "the syntax is that of https://github.com/google/re2/wiki/Syntax; it has no look-around")
		return nil, ""
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxProgram {
		c.fault(i, "pattern", "is too large once its repetitions are written out", "use smaller numbers in {n,m}")
		return nil, ""
	}
	if c.programs += len(prog.Inst); c.programs > maxPrograms {
		c.fault(i, "pattern", "the patterns together are too large", "put values into words")
		return nil, ""
	}
	re, err = regexp.Compile(source)
	if err != nil { // parsed above
		c.fault(i, "pattern", "is no regular expression of RE2", "")
		return nil, ""
	}
	if re.MatchString("") {
		c.fault(i, "pattern", "matches where nothing stands", "use + in place of *")
	}
	return re, required(tree)
}

// required returns the longest text that stands in all that a pattern matches, as
// far as its outermost sequence shows, or "".
func required(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		longest := ""
		for _, sub := range re.Sub {
			if l := required(sub); len(l) > len(longest) {
				longest = l
			}
		}
		return longest
	default: // anything else may match without
	}
	return ""
}

func (c *compiler) wordsOf(i int, field string, list []string, w word) {
	if c.words += len(list); c.words > maxWords {
		c.fault(i, field, fmt.Sprintf("more than %d words together", maxWords), "")
		return
	}
	for n, text := range list {
		folded := joinWith(text, nil)
		if len(folded) < minWordBytes || len(text) > maxWordBytes {
			c.fault(i, fmt.Sprintf("%s[%d]", field, n), fmt.Sprintf("must have from %d to %d bytes", minWordBytes, maxWordBytes), "")
			continue
		}
		if !w.context && c.list[i].MatchCase {
			w.exact = folded
		}
		c.set.words.add(text, w)
	}
}

// examples runs a recognizer over what it must find and what it must not.
func (c *compiler) examples(i int) {
	r := c.list[i]
	if len(r.Finds) == 0 {
		c.fault(i, "finds", "must hold at least one example", "write a text in which something is found")
	}
	for _, kind := range []struct {
		field string
		texts []string
		want  bool
		wrong string
	}{
		{"finds", r.Finds, true, "nothing is found in this example"},
		{"spares", r.Spares, false, "something is found in this example"},
	} {
		if len(kind.texts) > maxExamples {
			c.fault(i, kind.field, fmt.Sprintf("more than %d examples", maxExamples), "")
			continue
		}
		for n, text := range kind.texts {
			field := fmt.Sprintf("%s[%d]", kind.field, n)
			if len(text) > maxExampleBytes {
				c.fault(i, field, fmt.Sprintf("is longer than %d bytes", maxExampleBytes), "")
			} else if c.finds(i, text) != kind.want {
				c.fault(i, field, kind.wrong, "")
			}
		}
	}
}

func (c *compiler) finds(i int, text string) bool {
	// Without a deadline there is nothing that could fail.
	spans, err := c.set.classify(context.Background(), pii.Text{Value: text}, c.set.list[i])
	return err == nil && slices.ContainsFunc(spans, func(sp pii.Span) bool {
		return sp.Rule == c.list[i].ID && !pii.Never(text[sp.Start:sp.End])
	})
}
