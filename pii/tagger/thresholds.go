package tagger

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"weir/pii"
)

//go:embed weights/tuning.json
var tuningFile []byte

// Bounds is what a finding must reach to be reported.
type Bounds struct {
	// Inside is the least probability that its words are any private value.
	Inside float64 `json:"inside"`
	// Label is the least probability that they are one of its label.
	Label float64 `json:"label"`
}

func (b Bounds) met(c candidate) bool { return c.inside >= b.Inside && c.prob >= b.Label }

// Tuning says when findings of a label are reported, and how sure they are.
//
// Alone it takes more than in a text in which somebody is named for sure: a text
// is wrongly held to be private by its surest finding, and what else it holds
// costs nothing more.
type Tuning struct {
	Alone Bounds `json:"alone"`
	// Small holds alone for words that begin with a small letter, or are in a
	// script of which there was no text to train on.
	Small  Bounds `json:"small"`
	Beside Bounds `json:"beside"`
	// Confidence holds the constant and the weights of the log-odds of both
	// probabilities that give the log-odds of a finding being exactly right.
	Confidence [3]float64 `json:"confidence"`
}

// anyLabel is the label under which the tuning of all others stands.
const anyLabel pii.Label = "OTHER"

// tuning holds what was chosen on the tuning part of the documents: see
// train/README.md.
type tuning map[pii.Label]*Tuning

func readTuning(b []byte) (tuning, error) {
	var t tuning
	if err := json.Unmarshal(b, &t, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("read tuning: %w", err)
	}
	for l, v := range t {
		if _, ok := pii.Lookup(l); !ok && l != anyLabel || v == nil {
			return nil, errors.New("tuning has an unknown label")
		}
	}
	if t[anyLabel] == nil {
		return nil, errors.New("tuning lacks a label for all others")
	}
	return t, nil
}

func (t tuning) of(l pii.Label) *Tuning {
	if v := t[l]; v != nil {
		return v
	}
	return t[anyLabel]
}

// reports says whether a finding is reported, in a text in which somebody is
// named for sure or not.
func (t tuning) reports(c candidate, somebody bool) bool {
	switch c.Label {
	case pii.EmailAddress, pii.IBAN, pii.PaymentCard, pii.IPAddress, pii.CryptoWallet:
		return false // their form says more than their surroundings
	}
	v := t.of(c.Label)
	if somebody && v.Beside.met(c) {
		return true
	}
	if c.small {
		return v.Small.met(c)
	}
	return v.Alone.met(c)
}

// small reports that a text begins with a small letter, or with one of a script
// of which there was no text to train on.
func small(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	known := []*unicode.RangeTable{unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul}
	return unicode.IsLower(r) || unicode.IsLetter(r) && !unicode.In(r, known...)
}

// confidence is the probability that a finding is exactly right.
func (t tuning) confidence(c candidate) float64 {
	w := t.of(c.Label).Confidence
	return 1 / (1 + math.Exp(-(w[0] + w[1]*odds(c.prob) + w[2]*odds(c.inside))))
}

// odds are log-odds, bounded.
func odds(p float64) float64 {
	const least = 1e-4
	p = min(max(p, least), 1-least)
	return math.Log(p / (1 - p))
}
