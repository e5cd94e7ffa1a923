package model

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"weir/internal/wire"
)

// body is a stream's bytes on their way. Writing never waits for the reader: a
// client that reads slowly must not hold the engine, and a reply is bounded by
// its tokens.
type body struct {
	more   chan struct{} // has room for one: there is something new
	cancel func()
	done   chan struct{} // closed when the writer has ended

	mu     sync.Mutex
	buf    []byte
	err    error // after the last byte
	writes int
}

func newBody(cancel func()) *body {
	return &body{more: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
}

// Write appends. It never fails.
func (b *body) Write(p []byte) (int, error) {
	b.mu.Lock()
	b.buf = append(b.buf, p...)
	b.writes++
	b.mu.Unlock()
	b.wake()
	return len(p), nil
}

// end ends the stream with err, io.EOF for a whole one.
func (b *body) end(err error) {
	b.mu.Lock()
	b.err = err
	b.mu.Unlock()
	b.wake()
}

func (b *body) wake() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// Read waits for bytes.
func (b *body) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		b.mu.Lock()
		n, err := copy(p, b.buf), b.err
		b.buf = b.buf[n:]
		b.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		<-b.more
	}
}

// Close stops what writes, and waits for it.
func (b *body) Close() error {
	b.cancel()
	<-b.done
	b.end(io.ErrClosedPipe)
	return nil
}

// keepAlive writes a comment whenever nothing was written for a while, until
// ctx ends: clients and proxies give up on silent streams.
func (b *body) keepAlive(ctx context.Context, every time.Duration, position func() int) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	seen := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b.mu.Lock()
		silent := b.writes == seen
		b.mu.Unlock()
		if silent {
			writePosition(b, position())
		}
		b.mu.Lock()
		seen = b.writes
		b.mu.Unlock()
	}
}

func writePosition(w io.Writer, n int) {
	text := "working"
	if n > 0 {
		text = fmt.Sprintf("queued, position %d", n)
	}
	_ = wire.WriteComment(w, text) // a body takes every write
}
