package upstream

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// body is a reply's body: it turns whatever ends the reading into io.EOF or an
// *Error, watches for silence, and ends the call when it is closed.
type body struct {
	s      *Server
	ctx    context.Context //nolint:containedctx // the call's, which outlives Do by this body
	cancel context.CancelCauseFunc
	raw    io.ReadCloser
	src    io.Reader
	idle   *time.Timer
	err    error // sticky; used by Read only
	ended  sync.Once
}

func (s *Server) newBody(ctx context.Context, cancel context.CancelCauseFunc, res *http.Response) io.ReadCloser {
	b := &body{s: s, ctx: ctx, cancel: cancel, raw: res.Body, src: res.Body}
	if res.Header.Get("Content-Encoding") == "gzip" {
		b.src = &gunzip{src: res.Body}
	}
	b.idle = time.AfterFunc(s.opts.IdleTimeout, func() { cancel(errIdleTimeout) })
	b.idle.Stop()
	return b
}

// Read reads as io.Reader says. It is not for concurrent use with itself.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	// The silence that counts is the server's, so the clock runs only here and
	// not while a slow client keeps us from reading.
	b.idle.Reset(b.s.opts.IdleTimeout)
	n, err := b.src.Read(p)
	b.idle.Stop()
	switch err {
	case nil:
		return n, nil
	case io.EOF:
		b.err = io.EOF
		b.ended.Do(func() { b.cancel(nil) })
	default:
		e := b.s.broken(b.ctx, err)
		b.err = e
		b.ended.Do(func() {
			b.s.recordBroken(e)
			b.cancel(nil)
		})
	}
	return n, b.err
}

// Close ends the call. It may be called at any time, more than once, and beside
// a Read, which then returns.
func (b *body) Close() error {
	b.ended.Do(func() {})
	b.idle.Stop()
	b.cancel(context.Canceled)
	return b.raw.Close()
}

// gunzip undoes a compression that came unasked. It reads the header with the
// first Read, since doing so may block.
type gunzip struct {
	src io.Reader
	gz  *gzip.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.gz == nil {
		gz, err := gzip.NewReader(g.src)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		g.gz = gz
	}
	return g.gz.Read(p)
}

func readable(encoding string) bool {
	return encoding == "" || encoding == "identity" || encoding == "gzip"
}
