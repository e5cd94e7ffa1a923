// Package tagger finds private values that no pattern describes: names, places,
// organizations, and numbers that only the words around them explain.
//
// Begin at [Load], which reads the embedded weights, and [Tagger.Classify]. A
// text is cut into tokens (internal/feature), each token's features select rows
// of a table that are summed, five convolutions look at the tokens around
// (run.go), and the best well-formed sequence of tags is read off (decode.go).
// The weights were trained by the recipe in train/, and weights/CARD.md says how
// well they do.
//
// It promises linear time and bounded memory beside the tokens, the same result
// on every run, and that a finding depends only on the tokens within
// [Tagger.Reach] of it and of the unsure tokens that it is decoded with. It
// knows nothing of check digits: package weir/pii/rules does, and outranks it.
package tagger

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"weir/pii"
	"weir/pii/tagger/internal/feature"
)

//go:embed weights/weights.bin
var weightsFile []byte

//go:embed weights/manifest.json
var manifestFile []byte

//go:embed weights/lists.bin
var listsFile []byte

// codeVersion changes whenever the code finds something else with the same
// weights.
const codeVersion = "2"

// Tagger is the learned classifier. It is immutable and safe for concurrent use.
type Tagger struct {
	net      *network
	manifest *Manifest
	version  string
	lists    *feature.Lists
	features *feature.Extractor
	labels   [numLabels]pii.Label
	bias     [numLabels]float32
	tuning   tuning
	work     sync.Pool
}

// Load reads the embedded weights.
func Load() (*Tagger, error) {
	net, m, err := loadNetwork(manifestFile, weightsFile)
	if err != nil {
		return nil, fmt.Errorf("load the tagger: %w", err)
	}
	lists, err := feature.ReadLists(listsFile)
	if err != nil {
		return nil, fmt.Errorf("load the tagger: %w", err)
	}
	tuned, err := readTuning(tuningFile)
	if err != nil {
		return nil, fmt.Errorf("load the tagger: %w", err)
	}
	t := &Tagger{net: net, manifest: m, lists: lists, features: feature.NewExtractor(lists), tuning: tuned}
	sum := sha256.Sum256(tuningFile)
	t.version = codeVersion + "-" + m.SHA256[:16] + "-" + hex.EncodeToString(sum[:4])
	for i, l := range pii.Labels() {
		t.labels[i] = l.Label
	}
	t.work.New = func() any { return new(workspace) }
	return t, nil
}

// Version identifies weights, thresholds and code: it differs whenever results
// may.
func (t *Tagger) Version() string { return t.version }

// Manifest returns what is known of the weights.
func (t *Tagger) Manifest() Manifest { return *t.manifest }

// Reach is the number of tokens on each side that the network's output for a
// token depends on.
func (t *Tagger) Reach() int { return t.net.reach }

// Classify finds the private values of t. The spans do not overlap.
func (t *Tagger) Classify(ctx context.Context, text pii.Text) ([]pii.Span, error) {
	w, _ := t.work.Get().(*workspace)
	defer t.release(w)
	all, err := t.classify(ctx, text, w)
	if err != nil {
		return nil, err
	}
	return t.report(nil, all, slices.ContainsFunc(all, t.names)), nil
}

// candidate is a finding, however unsure.
type candidate struct {
	pii.Span
	prob   float64 // of its label
	inside float64 // of being any private value
	small  bool    // see small
}

// report appends the candidates that are sure enough.
func (t *Tagger) report(spans []pii.Span, all []candidate, somebody bool) []pii.Span {
	for _, c := range all {
		if t.tuning.reports(c, somebody) {
			c.Score = t.tuning.confidence(c)
			spans = append(spans, c.Span)
		}
	}
	return spans
}

// names reports a candidate that surely stands for somebody.
func (t *Tagger) names(c candidate) bool { return somebodys(c.Label) && t.tuning.reports(c, false) }

// classify returns all findings, however unsure.
func (t *Tagger) classify(ctx context.Context, text pii.Text, w *workspace) ([]candidate, error) {
	s := text.Value
	w.key = 0
	if text.Key != "" && len(text.Key) <= maxKey {
		w.key = len(text.Key) + 2
		s = text.Key + ": " + s
	}
	w.toks = feature.Tokens(s, w.toks[:0])
	if err := t.tag(ctx, s, w); err != nil {
		return nil, err
	}
	var out []candidate
	for _, f := range w.found {
		start, end := int(w.toks[f.from].Start), int(w.toks[f.to].End)
		if start < w.key || t.unlikely(s, start, end, t.labels[f.label-1]) {
			continue
		}
		out = append(out, candidate{pii.Span{
			Start: start - w.key, End: end - w.key, Label: t.labels[f.label-1], Rank: pii.RankLearned, Rule: "tagger",
		}, f.prob, f.inside, small(s[start:end])})
	}
	return out, nil
}

// unlikely reports what is never a name, place or organization: an account name,
// a part of an identifier, and a sign. Only in text that was cut into words is an
// account name parted from its sign, and it is no plain word, as in "@ noon".
func (t *Tagger) unlikely(s string, start, end int, l pii.Label) bool {
	switch l {
	case pii.PersonName, pii.Location, pii.Organization:
	default:
		return false
	}
	if s[start:end] == "@" {
		rest, cut := strings.CutPrefix(s[end:], " ")
		return !cut || t.lists.Common(firstWord(rest)) || firstWord(rest) == ""
	}
	if l == pii.PersonName && strings.HasSuffix(s[:start], "@ ") && t.lists.Common(firstWord(s[start:])) {
		return true
	}
	return s[start] == '@' || start > 0 && (s[start-1] == '@' || s[start-1] == '_') || strings.HasPrefix(s[end:], "_") || strings.Contains(s[start:end], "_")
}

// firstWord returns the letters that s begins with.
func firstWord(s string) string {
	if i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }); i >= 0 {
		return s[:i]
	}
	return s
}

// release keeps a workspace for another text, unless a large one made it large.
func (t *Tagger) release(w *workspace) {
	if cap(w.toks) > maxPooled {
		w.toks, w.outside = nil, nil
	}
	t.work.Put(w)
}

const (
	maxKey    = 100     // bytes of a member's name that are read with its value
	maxPooled = 1 << 16 // tokens of a workspace that is kept
)

// tag fills w.found with the spans of w.toks.
func (t *Tagger) tag(ctx context.Context, s string, w *workspace) error {
	w.found = w.found[:0]
	stride := t.net.out.Stride
	w.outside = w.outside[:0]
	w.held = w.held[:0] // log-probabilities of tokens that are not decoded yet
	begin := 0          // the first of them
	for from := 0; from < len(w.toks); from += block {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", pii.ErrUnexamined, err)
		}
		to := min(from+block, len(w.toks))
		out := t.net.logits(t.features, s, w, from, to)
		for i := from; i < to; i++ {
			row := out[(i-from)*stride : (i-from)*stride+numTags]
			logSoftmax(row)
			w.outside = append(w.outside, row[0])
			if n := i - begin; n == 0 && row[0] > sure {
				begin = i + 1 // nothing to decode
				continue
			}
			w.held = append(w.held, row...)
			if n := i - begin + 1; row[0] > sure || n == maxSegment {
				w.found = w.decode.segment(w.held, numTags, n, begin, &t.bias, w.found)
				w.held, begin = w.held[:0], i+1
			}
		}
	}
	if n := len(w.toks) - begin; n > 0 {
		w.found = w.decode.segment(w.held, numTags, n, begin, &t.bias, w.found)
	}
	return nil
}
