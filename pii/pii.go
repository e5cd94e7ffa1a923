// Package pii says what is private in a text.
//
// Begin at [Scanner]: it runs every [Classifier] it was given over a text,
// settles overlaps, drops what is never a finding, and remembers results, so
// that a conversation which grows by one turn is not scanned from its start.
//
// It promises that offsets are bytes of the original text, however the value
// was disguised (folding is undone before a span is reported), that a text it
// could not examine is an error and never an empty result, and that no error
// carries text. A result depends on the text, its key and the parts alone, and
// not on what was scanned before, so that a conversation scanned turn by turn
// has the findings of one scanned at once. A text must be there whole: where it
// arrives in pieces the caller joins them, since what stands behind a value may
// say what it is. What to do about a finding is not decided here: see package
// policy. Replacing and restoring values is in package weir/pii/mask,
// recognizers in weir/pii/rules, folding in weir/pii/fold.
package pii

import (
	"context"
	"errors"
)

// ErrUnexamined reports a text that could not be examined within its budget.
// The gate treats it as content that it cannot read.
var ErrUnexamined = errors.New("text not examined within its budget")

// Text is a piece of text to examine, and where it was found.
type Text struct {
	// Value is the text itself. It need not be valid UTF-8.
	Value string
	// Key is the name of the JSON member that holds the text, or of the
	// nearest enclosing one, as "password" in {"password":"..."}. It is
	// context for recognizers and is never reported as part of a span. Empty
	// for free text.
	Key string
}

// Span is a finding: the bytes [Start,End) of the original text.
type Span struct {
	Start, End int
	Label      Label
	// Score is the calibrated confidence, in (0,1].
	Score float64
	// Rank is the kind of evidence, which decides overlaps before length does.
	Rank Rank
	// Rule names the recognizer, for explanation: "iban", "tagger".
	Rule string
}

// Rank orders kinds of evidence; a higher one wins an overlap. At equal rank
// the longer span wins.
type Rank uint8

// The ranks, weakest first.
const (
	RankList     Rank = iota + 1 // a word list or a propagated value
	RankLearned                  // the learned tagger
	RankContext                  // a pattern confirmed by words around it
	RankPrefix                   // a credential with a vendor's prefix
	RankChecksum                 // a type whose check digits or parser agree
)

// Classifier finds spans in a text. Implementations are safe for concurrent
// use, return spans in any order (they may overlap), never retain t, and return
// an error wrapping [ErrUnexamined] for a text they could not examine whole.
type Classifier interface {
	Classify(ctx context.Context, t Text) ([]Span, error)
}
