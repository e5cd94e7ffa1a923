package mask

import (
	"fmt"
	"log/slog"

	"weir/pii"
)

// Stats says what restoring did.
type Stats struct {
	// Restored counts the tokens put back, by label; nil if there were none.
	Restored map[pii.Label]int
	// Repaired counts those of them that a model had mangled.
	Repaired int
	// Unknown counts words of a placeholder's form that the task never issued.
	// They stay as they are.
	Unknown int
}

// Add adds the counts of o.
func (s *Stats) Add(o Stats) {
	if s.Restored == nil && len(o.Restored) > 0 {
		s.Restored = make(map[pii.Label]int, len(o.Restored))
	}
	for label, n := range o.Restored {
		s.Restored[label] += n
	}
	s.Repaired += o.Repaired
	s.Unknown += o.Unknown
}

// Restorer puts values back in place of a book's tokens. It is immutable: it
// knows the tokens issued before it was made. A nil Restorer restores nothing.
type Restorer struct {
	n          int   // entries of the book that it knows
	known      []key // all stems, for counting what was never issued
	issued     []key // stems that have codes
	surrogates []key
	first      [256]uint8 // what a byte may begin, see the bits below
	pairs      pairs      // the two bytes that a token may begin with
}

const (
	beginsExact   = 1 << iota // a stem as minted
	beginsMangled             // a stem in lower case
	beginsSurrogate
	special // in JSON: a quotation mark, a backslash
)

// Restorer returns a snapshot of the book's tokens. It costs nothing if no
// entry came since the last call.
func (b *Book) Restorer() *Restorer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.restorer == nil || b.restorer.n != len(b.entries) {
		b.restorer = b.restorer.extend(b.entries)
	}
	return b.restorer
}

// Empty reports that no token is known.
func (r *Restorer) Empty() bool { return r == nil || r.n == 0 }

// LogValue prints how many tokens are known.
func (r *Restorer) LogValue() slog.Value { return slog.StringValue(r.summary()) }

// Format prints the same for every verb.
func (r *Restorer) Format(f fmt.State, _ rune) { fmt.Fprint(f, r.summary()) }

func (r *Restorer) summary() string {
	if r == nil {
		return "restorer(0 tokens)"
	}
	return fmt.Sprintf("restorer(%d tokens)", r.n)
}

// Restore returns text with the values in place of their tokens. It reads the
// text once: what was put back is not looked at again.
func (r *Restorer) Restore(text string) (string, Stats) { return r.whole(Plain, text) }

// RestoreJSON is Restore for the source of a JSON value. Inside a JSON string
// a value is escaped as JSON wants it, and tokens written with escapes are
// found. A valid text stays valid: bytes of a value that are not UTF-8 become
// U+FFFD there.
func (r *Restorer) RestoreJSON(text string) (string, Stats) { return r.whole(JSON, text) }

func (r *Restorer) whole(kind Kind, text string) (string, Stats) {
	s := r.Stream(kind)
	if s.scan.r == nil {
		return text, Stats{}
	}
	out, _ := s.advance(text, true)
	return out, s.Stats()
}
