package router

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/wire"
	"weir/pii/mask"
)

// restoreBody puts values back into a whole answer. What is not JSON is restored
// as text.
func restoreBody(body []byte, r *mask.Restorer) ([]byte, mask.Stats, error) {
	var stats mask.Stats
	c, err := wire.ReadCompletion(body)
	if err != nil {
		out, st := restoreOdd(r, body, body)
		return out, st, nil
	}
	var edits []wire.Edit
	changed := map[int]bool{}
	for _, t := range c.Texts {
		value := c.Leaves()[t.Leaf].Value
		restored, st := restoreText(r, t, value)
		stats.Add(st)
		if restored == value {
			continue
		}
		if t.Field == "arguments" && jsontext.Value(value).IsValid() && !jsontext.Value(restored).IsValid() {
			return nil, stats, wire.Errorf(wire.CodeRestoreFailed, "a tool call of the answer could not be restored without breaking its JSON")
		}
		edits = append(edits, wire.Edit{Leaf: t.Leaf, Start: 0, End: len(value), New: restored})
		changed[t.Choice] = true
	}
	out, err := c.Splice(edits, withoutLogprobs(c, changed))
	return out, stats, err
}

// restoreOdd restores text that is data, or holds it, and that is not the strict
// JSON of an answer. It may still be JSON to the client: then values are escaped.
func restoreOdd(r *mask.Restorer, text, data []byte) ([]byte, mask.Stats) {
	restore := r.Restore
	if data = bytes.TrimLeft(data, " \t\r\n"); len(data) > 0 && (data[0] == '{' || data[0] == '[') {
		restore = r.RestoreJSON
	}
	out, st := restore(string(text))
	return []byte(out), st
}

func restoreText(r *mask.Restorer, t wire.ReplyText, value string) (string, mask.Stats) {
	if t.Field == "arguments" {
		return r.RestoreJSON(value)
	}
	return r.Restore(value)
}

// withoutLogprobs takes the log probabilities out of changed choices: they are
// those of other tokens.
func withoutLogprobs(c *wire.Completion, changed map[int]bool) []wire.Patch {
	var out []wire.Patch
	for _, ch := range c.Choices {
		if changed[ch.Index] && ch.LogprobsEnd > ch.LogprobsStart {
			out = append(out, wire.Patch{Start: ch.LogprobsStart, End: ch.LogprobsEnd, New: "null"})
		}
	}
	return out
}

// channel names one text that continues from chunk to chunk.
type channel struct {
	choice int
	path   string
}

// piece is what an event adds to a channel, before and after restoring.
type piece struct {
	channel
	leaf     int
	old, now string
}

// streamRestorer puts values back into a streamed answer, chunk by chunk. It is
// for one goroutine.
type streamRestorer struct {
	r       *mask.Restorer
	streams map[channel]*mask.Stream
	order   []channel
	stats   mask.Stats
}

func newStreamRestorer(r *mask.Restorer) *streamRestorer {
	return &streamRestorer{r: r, streams: map[channel]*mask.Stream{}}
}

// event returns the bytes to send for an event: itself if nothing is to be
// changed, perhaps with an event in front that carries what was held back.
func (s *streamRestorer) event(ev *wire.Event) ([]byte, error) {
	if ev.Done() {
		return append(s.flush(nil, -1, nil), ev.Raw...), nil
	}
	c, err := wire.ReadCompletion(ev.Data)
	if err != nil {
		out, st := restoreOdd(s.r, ev.Raw, ev.Data)
		s.stats.Add(st)
		return out, nil
	}
	pieces := make([]piece, 0, 2)
	for _, t := range c.Texts {
		value := c.Leaves()[t.Leaf].Value
		pieces = append(pieces, piece{channel{t.Choice, t.Path}, t.Leaf, value, s.text(t, value)})
	}
	var before []byte
	for _, ch := range c.Choices {
		if ch.Finished {
			before = append(before, s.flush(c, ch.Index, pieces)...)
		}
	}
	var edits []wire.Edit
	changed := map[int]bool{}
	for _, p := range pieces {
		if p.now != p.old {
			edits = append(edits, wire.Edit{Leaf: p.leaf, Start: 0, End: len(p.old), New: p.now})
			changed[p.choice] = true
		}
	}
	if len(edits) == 0 {
		return append(before, ev.Raw...), nil
	}
	data, err := c.Splice(edits, withoutLogprobs(c, changed))
	if err != nil {
		return nil, err
	}
	return append(before, ev.WithData(data)...), nil
}

// text restores the next piece of a channel.
func (s *streamRestorer) text(t wire.ReplyText, value string) string {
	if t.Path == "" || t.Field == "name" {
		restored, st := s.r.Restore(value)
		s.stats.Add(st)
		return restored
	}
	ch := channel{t.Choice, t.Path}
	st := s.streams[ch]
	if st == nil {
		kind := mask.Plain
		if t.Field == "arguments" {
			kind = mask.JSON
		}
		st = s.r.Stream(kind)
		s.streams[ch], s.order = st, append(s.order, ch)
	}
	return st.Write(value)
}

// flush ends the channels of a choice, or of all if choice is -1. What they held
// back goes to the end of their piece of this event, or else into events of its
// own, which it returns. like is a chunk to take the answer's id from, or nil.
func (s *streamRestorer) flush(like *wire.Completion, choice int, pieces []piece) []byte {
	var out []byte
	for _, ch := range s.order {
		st := s.streams[ch]
		if st == nil || choice >= 0 && ch.choice != choice {
			continue
		}
		delete(s.streams, ch)
		if rest := st.Flush(); rest != "" && !extend(pieces, ch, rest) {
			out = append(out, tailEvent(like, ch, rest)...)
		}
		s.stats.Add(st.Stats())
	}
	return out
}

// extend adds text to the last piece of the channel, if there is one.
func extend(pieces []piece, ch channel, text string) bool {
	for i := len(pieces) - 1; i >= 0; i-- {
		if pieces[i].channel == ch {
			pieces[i].now += text
			return true
		}
	}
	return false
}

// close counts what channels without an end did.
func (s *streamRestorer) close() mask.Stats {
	for _, st := range s.streams {
		s.stats.Add(st.Stats())
	}
	s.streams = map[channel]*mask.Stream{}
	return s.stats
}
