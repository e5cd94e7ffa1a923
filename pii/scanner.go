package pii

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/maypok86/otter/v2"

	"weir/pii/fold"
)

// Part is a classifier that a [Scanner] runs.
type Part struct {
	// Name says which it is, for explanation.
	Name string
	// Version differs whenever the results may.
	Version    string
	Classifier Classifier
}

// ScannerOptions may be left zero.
type ScannerOptions struct {
	// CacheBytes bounds the memory for remembered results. Zero means 16 MiB,
	// a negative number no cache.
	CacheBytes int
	// Labels are those that the parts find beside the built-in ones. Their
	// placeholders are never findings.
	Labels []Label
	// Looked, if set, is told whether a text was among those that were scanned
	// before. It must be safe for concurrent use.
	Looked func(hit bool)
}

const (
	defaultCache = 16 << 20
	maxDepth     = 2 // encoded text within encoded text
)

// Scanner finds the private values of texts. It is safe for concurrent use.
type Scanner struct {
	parts   []Part
	own     []string // stems of the labels that are not built in
	version string
	cache   *otter.Cache[cacheKey, []Span]
	looked  func(hit bool)
}

// cacheKey is the digest of all that a result depends on. The cache holds
// digests and offsets only, never text.
type cacheKey [sha256.Size]byte

// NewScanner returns a scanner that runs parts over every text.
func NewScanner(opts ScannerOptions, parts ...Part) *Scanner {
	s := &Scanner{parts: slices.Clone(parts), looked: opts.Looked}
	if s.looked == nil {
		s.looked = func(bool) {}
	}
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s=%d:%s;", len(p.Name), p.Name, len(p.Version), p.Version)
	}
	for _, l := range opts.Labels {
		s.own = append(s.own, Stem(l))
		fmt.Fprintf(h, "%d:%s;", len(l), l)
	}
	s.version = fmt.Sprintf("%x", h.Sum(nil)[:12])
	if opts.CacheBytes == 0 {
		opts.CacheBytes = defaultCache
	}
	if opts.CacheBytes > 0 {
		s.cache = otter.Must(&otter.Options[cacheKey, []Span]{
			MaximumWeight: uint64(opts.CacheBytes),
			Weigher:       func(_ cacheKey, spans []Span) uint32 { return uint32(160 + 80*len(spans)) },
		})
	}
	return s
}

// Version identifies the scanner's parts and their versions.
func (s *Scanner) Version() string { return s.version }

// Scan returns the findings in t, sorted and without overlaps, as bytes of
// t.Value on the boundaries of characters. The caller must not change them. An
// error wraps [ErrUnexamined] if the text could not be examined whole.
func (s *Scanner) Scan(ctx context.Context, t Text) ([]Span, error) {
	if t.Value == "" {
		return nil, nil
	}
	if len(t.Value) > fold.MaxLen || len(t.Key) > fold.MaxLen-len(t.Value) {
		return nil, fmt.Errorf("%w: %d bytes", ErrUnexamined, len(t.Value))
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnexamined, err)
	}
	key := s.key(t)
	if s.cache != nil {
		spans, ok := s.cache.GetIfPresent(key)
		s.looked(ok)
		if ok {
			return spans, nil
		}
	}
	spans, err := s.scan(ctx, t, 0)
	if err != nil {
		return nil, err
	}
	spans = settle(t.Value, spans, s.own)
	if s.cache != nil {
		s.cache.Set(key, spans)
	}
	return spans, nil
}

func (s *Scanner) key(t Text) cacheKey {
	h := sha256.New()
	var n [8]byte
	h.Write([]byte(s.version))
	binary.LittleEndian.PutUint64(n[:], uint64(len(t.Key)))
	h.Write(n[:])
	var buf [1024]byte
	for _, part := range [...]string{t.Key, t.Value} {
		for len(part) > 0 {
			n := copy(buf[:], part)
			h.Write(buf[:n])
			part = part[n:]
		}
	}
	var key cacheKey
	h.Sum(key[:0])
	return key
}

// scan collects the findings of all parts in the folded text, in the original
// where escapes were undone that may have been meant literally, and in encoded
// text.
func (s *Scanner) scan(ctx context.Context, t Text, depth int) ([]Span, error) {
	f := fold.Fold(t.Value)
	var all []Span
	found, err := s.classify(ctx, Text{Value: f.Text, Key: t.Key})
	if err != nil {
		return nil, err
	}
	for _, sp := range found {
		if !f.Identity() {
			sp.Start, sp.End = f.Origin(sp.Start, sp.End)
		}
		all = append(all, sp)
	}
	if f.Unescaped {
		found, err := s.classify(ctx, t)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if depth == maxDepth {
		return all, nil
	}
	for _, b := range fold.Blobs(f.Text) {
		inner, err := s.scan(ctx, Text{Value: b.Text, Key: t.Key}, depth+1)
		if err != nil {
			return nil, err
		}
		if worst, ok := gravest(settle(b.Text, inner, s.own)); ok {
			worst.Start, worst.End = f.Origin(b.Start, b.End)
			// What is hidden is reported whole, whatever is seen in it.
			worst.Rank, worst.Score = RankChecksum, max(worst.Score, 0.9)
			all = append(all, worst)
		}
	}
	return all, nil
}

func (s *Scanner) classify(ctx context.Context, t Text) ([]Span, error) {
	var all []Span
	for _, p := range s.parts {
		found, err := p.Classifier.Classify(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("classifier %s: %w", p.Name, err)
		}
		for _, sp := range found {
			if sp.Start < 0 || sp.End > len(t.Value) || sp.Start >= sp.End || sp.Label == "" {
				return nil, fmt.Errorf("classifier %s: %w: span out of the text", p.Name, ErrUnexamined)
			}
			all = append(all, onBoundaries(t.Value, sp))
		}
	}
	// A classifier that stops early at the end of its time must not pass for one
	// that found nothing.
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnexamined, err)
	}
	return all, nil
}

// onBoundaries widens a span that cuts a character.
func onBoundaries(s string, sp Span) Span {
	for sp.Start > 0 && !utf8.RuneStart(s[sp.Start]) {
		sp.Start--
	}
	for sp.End < len(s) && !utf8.RuneStart(s[sp.End]) {
		sp.End++
	}
	return sp
}

// gravest returns the finding that stands for a whole encoded text: secrets
// before direct identifiers before the rest.
func gravest(spans []Span) (Span, bool) {
	best, weight := Span{}, -1
	for _, sp := range spans {
		info, _ := Lookup(sp.Label)
		w := 0
		if info.Direct {
			w = 1
		}
		switch info.Coarse {
		case "account_number":
			w = 2
		case "secret":
			w = 3
		}
		if w > weight {
			best, weight = sp, w
		}
	}
	return best, weight >= 0
}
