package router

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"weir/internal/wire"
	"weir/router/upstream"
)

// streamReply passes a stream on, event by event. An event leaves as soon as
// nothing more is waiting to be read; one that needs no change leaves as it came.
func (s *Server) streamReply(ctx context.Context, x *exchange, r *wire.Reply) error {
	stop := func() {}
	if !x.began {
		x.copyHeader(r.Header)
		x.announce()
		x.beginStream(r.Status)
		stop = x.headersSoon()
		defer stop()
	}
	p := &pump{x: x, begun: stop, events: wire.NewEventReader(r.Body), ending: ending{many: x.decided.Chat().N > 1}}
	if restore := x.restorer(); !restore.Empty() {
		p.restore = newStreamRestorer(restore)
	}
	if x.placement.Where == OnLocal && x.decided.TaintsReply() {
		p.taint = newReplyTap()
	}
	err := p.run()
	if p.restore != nil {
		x.stats = p.restore.close()
	}
	if p.taint != nil {
		if e := s.rememberDigests(ctx, x, p.taint.digests()); e != nil {
			err = errors.Join(e, err)
		}
	}
	switch {
	case err == nil && p.last != nil:
		// The end marker waits until the answer is remembered.
		return x.write(p.last)
	case err == nil:
		return nil
	case errors.Is(err, errClientGone) || ctx.Err() != nil:
		return errClientGone
	}
	return s.interrupted(x, err)
}

func (s *Server) interrupted(x *exchange, err error) error {
	if we, ok := errors.AsType[*wire.Error](err); ok {
		return we
	}
	s.Log.WarnContext(x.r.Context(), "stream broke off", "upstream", x.upstream, "error", reduce(err))
	return &wire.Error{Code: wire.CodeUpstreamInterrupted, Message: "the upstream " + x.upstream + " broke off in the middle of its answer", Err: err}
}

// reduce keeps of a read error what cannot hold content.
func reduce(err error) error {
	if ue, ok := errors.AsType[*upstream.Error](err); ok {
		return ue
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF
	}
	return errors.New("stream not valid")
}

// pump moves events from an upstream to a client.
type pump struct {
	x       *exchange
	begun   func() // called before anything is written
	events  *wire.EventReader
	restore *streamRestorer
	taint   *replyTap
	ending  ending
	last    []byte // the end marker, held for a tainted answer
}

// run returns nil at a sound end of the stream.
func (p *pump) run() error {
	for {
		ev, err := p.events.Next()
		p.begun()
		if err != nil && !p.ending.completes(&ev, err) {
			return p.end(err)
		}
		if ev.HasData {
			p.ending.see(&ev)
		}
		if p.taint != nil && ev.HasData {
			p.taint.see(ev.Data)
			if ev.Done() {
				p.last = bytes.Clone(ev.Raw)
				continue
			}
		}
		out := ev.Raw
		if p.restore != nil && ev.HasData {
			if out, err = p.restore.event(&ev); err != nil {
				return err
			}
		}
		if _, err := p.x.w.Write(out); err != nil {
			return errClientGone
		}
		if p.events.Buffered() == 0 {
			if err := p.x.flush(); err != nil {
				return errClientGone
			}
		}
	}
}

// end handles the end of the upstream's bytes. A stream that stops without a
// finish reason and without the end marker has broken off, even if the
// connection was closed in good order; one that had the end marker is whole,
// even if it was not.
func (p *pump) end(err error) error {
	switch {
	case p.ending.done:
	case !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case !p.ending.sound():
		return io.ErrUnexpectedEOF
	}
	if p.restore != nil {
		if rest := p.restore.flush(nil, -1, nil); len(rest) > 0 {
			if _, err := p.x.w.Write(rest); err != nil {
				return errClientGone
			}
		}
	}
	return p.x.flush()
}

// writeTimeout is how long a client may leave a piece of a stream unread.
const writeTimeout = 2 * time.Minute

// beginStream sends the headers of a stream.
func (x *exchange) beginStream(status int) {
	h := x.w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "text/event-stream")
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	x.began, x.status = true, status
	x.w.WriteHeader(status)
}

// headersWait is how long the headers of a stream wait for its first event.
const headersWait = 20 * time.Millisecond

// headersSoon sends the headers if no event has come within a moment. A model may
// think for minutes before its first event, and clients give up on headers
// earlier than that; but to send them apart costs each stream a packet. What it
// returns ends the waiting, and must be called before anything is written.
func (x *exchange) headersSoon() (stop func()) {
	var mu sync.Mutex
	over := false
	timer := time.AfterFunc(headersWait, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			_ = x.flush() // a client that is gone shows at the next write
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}

func (x *exchange) flush() error {
	rc := http.NewResponseController(x.w)
	_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // a recorder in tests has none
	return rc.Flush()
}

func (x *exchange) write(b []byte) error {
	if _, err := x.w.Write(b); err != nil {
		return errClientGone
	}
	if x.flush() != nil {
		return errClientGone
	}
	return nil
}

// comment keeps a waiting stream alive. A client that is gone is noticed by its
// context.
func (x *exchange) comment(text string) {
	if wire.WriteComment(x.w, text) == nil {
		_ = x.flush()
	}
}

// endStream ends a stream that has begun with an error.
func (x *exchange) endStream(e *wire.Error) {
	switch e.Code {
	case wire.CodePolicyRefused, wire.CodeApprovalDenied, wire.CodeApprovalRequired, wire.CodeLocalNotConfigured, wire.CodeLocalUnable:
		_ = x.write(refusalEvents("[Weir] " + e.Message))
	default:
		_ = x.write(event(e.Body()))
	}
}

// wholeAsStream ends a stream that has begun, when the upstream answered with a
// body instead: an error of its own goes on as the stream's error.
func (x *exchange) wholeAsStream(status int, body []byte) error {
	if status < 400 {
		return wire.Errorf(wire.CodeUpstreamInvalid, "the upstream %s answered a request for a stream with a plain body", x.upstream)
	}
	x.status = status
	return x.write(event(bytes.ReplaceAll(body, []byte("\n"), []byte(" "))))
}

// replyTap follows an answer to know its digest.
type replyTap struct{ sums map[int]*wire.MessageDigest }

func newReplyTap() *replyTap { return &replyTap{map[int]*wire.MessageDigest{}} }

func (t *replyTap) see(data []byte) {
	c, err := wire.ReadCompletion(data)
	if err != nil {
		return
	}
	for _, text := range c.Texts {
		if text.Choice < 0 {
			continue
		}
		if t.sums[text.Choice] == nil {
			t.sums[text.Choice] = wire.NewMessageDigest("assistant")
		}
		text.AddTo(t.sums[text.Choice], c.Leaves()[text.Leaf].Value)
	}
}

func (t *replyTap) digests() []wire.Digest {
	var out []wire.Digest
	for _, m := range t.sums {
		if !m.Empty() {
			out = append(out, m.Sum())
		}
	}
	return out
}
