package router

import (
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"

	"weir/internal/task"
	"weir/internal/wire"
	"weir/pii/mask"
)

// reply hands the upstream's answer to the client, with private values put back.
func (s *Server) reply(ctx context.Context, x *exchange, r *wire.Reply) error {
	defer r.Body.Close()
	typ, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if typ == "text/event-stream" {
		return s.streamReply(ctx, x, r)
	}
	return s.wholeReply(ctx, x, r)
}

// restorer returns what puts values back into this reply. An answer of a local
// model holds no placeholders: it was given the values.
func (x *exchange) restorer() *mask.Restorer {
	if x.placement.Where != OnCloud {
		return nil
	}
	return x.decided.Task().Book().Restorer()
}

// wholeReply answers with a body that is not a stream. It is read to its end
// first, so that an answer which breaks off becomes an error and not half an
// answer.
func (s *Server) wholeReply(ctx context.Context, x *exchange, r *wire.Reply) error {
	body, err := readAll(io.LimitReader(r.Body, s.opts.Limits.ReplyBytes+1), length(r.Header))
	switch {
	case ctx.Err() != nil:
		return errClientGone
	case err != nil:
		return s.upstreamError(ctx, x, err)
	case r.Status < 300 && isPage(r.Header):
		return wire.Errorf(wire.CodeUpstreamInvalid, "the upstream %s answered with a web page: check its base_url, which must end in the API's version", x.upstream)
	case int64(len(body)) > s.opts.Limits.ReplyBytes:
		return wire.Errorf(wire.CodeUpstreamInvalid, "the answer is larger than %d bytes", s.opts.Limits.ReplyBytes)
	}
	if restore := x.restorer(); !restore.Empty() {
		if body, x.stats, err = restoreBody(body, restore); err != nil {
			return err
		}
	}
	if err := s.rememberReply(ctx, x, r.Status, body); err != nil {
		return err
	}
	if x.began { // the client was promised a stream
		return x.wholeAsStream(r.Status, body)
	}
	x.copyHeader(r.Header)
	x.announce()
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.status = r.Status
	x.w.WriteHeader(r.Status)
	if _, err := x.w.Write(body); err != nil {
		return errClientGone
	}
	return nil
}

func isPage(h http.Header) bool {
	typ, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return typ == "text/html"
}

func length(h http.Header) int64 {
	n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// copyHeader takes over the upstream's headers, which the upstream has reduced
// to those of use to a client. Its request id is the one that a vendor's support
// asks for; ours is in X-Weir-Request.
func (x *exchange) copyHeader(from http.Header) {
	h := x.w.Header()
	for name, values := range from {
		if name != "Content-Length" {
			h[name] = values
		}
	}
}

// rememberReply notes that an answer was written here from content that was kept
// here, so that a later cloud step does not see it.
func (s *Server) rememberReply(ctx context.Context, x *exchange, status int, body []byte) error {
	if x.placement.Where != OnLocal || !x.decided.TaintsReply() || status >= 300 {
		return nil
	}
	c, err := wire.ReadCompletion(body)
	if err != nil {
		return nil // not an answer that a client could send back
	}
	return s.rememberDigests(ctx, x, c.Digests())
}

func (s *Server) rememberDigests(ctx context.Context, x *exchange, digests []wire.Digest) error {
	up := task.Update{Settled: map[task.Digest]task.Settled{}}
	for _, d := range digests {
		up.Settled[task.Digest(d)] = task.Settled{Placement: "local", Tainted: true}
	}
	if len(up.Settled) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // what was shown must be known, even if the client left
	if err := x.decided.Task().Commit(ctx, up); err != nil {
		return storeError("remember the answer", err)
	}
	return nil
}
