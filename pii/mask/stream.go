package mask

import (
	"fmt"
	"log/slog"
	"strings"

	"weir/pii"
)

// Stream returns a stream that restores one text that comes in pieces. The
// texts of different channels need a stream each.
func (r *Restorer) Stream(kind Kind) *Stream {
	return &Stream{scan: scanner{r: r, json: kind == JSON, prev: wall}}
}

// Stream restores a text that comes in pieces, with the same result as if it
// had come whole. It is for one goroutine.
type Stream struct {
	scan  scanner
	held  string // the end of the text so far, which the next piece decides
	stats Stats
}

// Write takes the next piece and returns what may be released now. It holds
// back only an end that could be the beginning of a token, mangled or not, and
// a character that is not yet complete.
func (s *Stream) Write(piece string) string {
	if s.scan.r == nil {
		return piece
	}
	if s.held != "" {
		piece = s.held + piece
	}
	out, rest := s.advance(piece, false)
	s.held = piece[rest:]
	return out
}

// Flush ends the text and returns what was held back.
func (s *Stream) Flush() string {
	if s.scan.r == nil {
		return ""
	}
	out, _ := s.advance(s.held, true)
	s.held = ""
	return out
}

// Stats returns what was done so far. The map is the stream's.
func (s *Stream) Stats() Stats { return s.stats }

// LogValue prints how much is held back.
func (s *Stream) LogValue() slog.Value { return slog.StringValue(s.summary()) }

// Format prints the same for every verb.
func (s *Stream) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.summary()) }

func (s *Stream) summary() string { return fmt.Sprintf("stream(%d bytes held)", len(s.held)) }

// advance restores text as far as it is decided and returns how far that is.
func (s *Stream) advance(text string, final bool) (out string, rest int) {
	var b strings.Builder
	copied := 0
	for i := 0; ; {
		start, m := s.scan.next(text, i, final)
		switch m.status {
		case none, needMore:
			s.scan.leave(text, start)
			if copied == 0 {
				return text[:start], start
			}
			b.WriteString(text[copied:start])
			return b.String(), start
		case unknown:
			s.stats.Unknown++
		case hit:
			b.WriteString(text[copied:start])
			if s.scan.inString {
				b.WriteString(escapeJSON(m.entry.Value))
			} else {
				b.WriteString(m.entry.Value)
			}
			copied = m.end
			s.stats.count(m)
		}
		i = m.end
	}
}

func (s *Stats) count(m match) {
	if s.Restored == nil {
		s.Restored = map[pii.Label]int{}
	}
	s.Restored[m.entry.Label]++
	if m.repaired {
		s.Repaired++
	}
}
