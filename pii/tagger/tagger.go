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
	_ "embed"
	"fmt"
	"slices"
	"sync"

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
const codeVersion = "1"

// Tagger is the learned classifier. It is immutable and safe for concurrent use.
type Tagger struct {
	net      *network
	manifest *Manifest
	features *feature.Extractor
	labels   [numLabels]pii.Label
	bias     [numLabels]float32
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
	t := &Tagger{net: net, manifest: m, features: feature.NewExtractor(lists)}
	for i, l := range pii.Labels() {
		t.labels[i] = l.Label
	}
	t.work.New = func() any { return new(workspace) }
	return t, nil
}

// Version identifies weights and code: it differs whenever results may.
func (t *Tagger) Version() string { return codeVersion + "-" + t.manifest.SHA256[:16] }

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
	somebody := slices.ContainsFunc(all, names)
	return slices.DeleteFunc(all, func(sp pii.Span) bool { return sp.Score < least(sp.Label, somebody) }), nil
}

// classify returns all findings, however unsure.
func (t *Tagger) classify(ctx context.Context, text pii.Text, w *workspace) ([]pii.Span, error) {
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
	var out []pii.Span
	for _, f := range w.found {
		start, end := int(w.toks[f.from].Start), int(w.toks[f.to].End)
		if start < w.key || unlikely(s, start, end, t.labels[f.label-1]) {
			continue
		}
		out = append(out, pii.Span{
			Start: start - w.key, End: end - w.key, Label: t.labels[f.label-1], Score: f.score, Rank: pii.RankLearned, Rule: "tagger",
		})
	}
	return out, nil
}

// unlikely reports what is never a name, place or organization: an account
// name.
func unlikely(s string, start, end int, l pii.Label) bool {
	switch l {
	case pii.PersonName, pii.Location, pii.Organization:
		return s[start] == '@' && end-start > 1 || start > 0 && s[start-1] == '@'
	}
	return false
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
