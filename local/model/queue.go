package model

import (
	"context"
	"slices"
	"sync"

	"weir/internal/wire"
)

// queue lets one request at a time use the engine. The next is the one that has
// waited longest among those of the client that was served least recently, so
// that a client with many requests delays another by one.
type queue struct {
	limit int

	mu      sync.Mutex
	running *ticket
	waiting []*ticket // by arrival
	served  map[string]uint64
	clock   uint64
}

// ticket is a request's place in the queue.
type ticket struct {
	client string
	ready  chan struct{} // closed when it is its turn
}

func newQueue(limit int) *queue { return &queue{limit: limit, served: map[string]uint64{}} }

// enter takes a place. leave must be called with it.
func (q *queue) enter(client string) (*ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &ticket{client: client, ready: make(chan struct{})}
	if q.running == nil {
		q.serve(t)
		return t, nil
	}
	if len(q.waiting) >= q.limit {
		return nil, &wire.Error{Code: wire.CodeOverloaded, Message: "too many requests wait for the local engine", RetryAfter: 5}
	}
	q.waiting = append(q.waiting, t)
	return t, nil
}

// wait returns when it is the ticket's turn.
func (t *ticket) wait(ctx context.Context) error {
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave gives the turn to the next, or the place up.
func (q *queue) leave(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running != t {
		q.waiting = slices.DeleteFunc(q.waiting, func(w *ticket) bool { return w == t })
		q.forget(t.client)
		return
	}
	q.running = nil
	if i := next(q.waiting, q.served); i >= 0 {
		w := q.waiting[i]
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.serve(w)
	}
	q.forget(t.client)
}

func (q *queue) serve(t *ticket) {
	q.clock++
	q.running, q.served[t.client] = t, q.clock
	close(t.ready)
}

// forget drops what is known of a client that has no request here.
func (q *queue) forget(client string) {
	if (q.running == nil || q.running.client != client) &&
		!slices.ContainsFunc(q.waiting, func(w *ticket) bool { return w.client == client }) {
		delete(q.served, client)
	}
}

// next picks from tickets in order of arrival, or returns -1.
func next(waiting []*ticket, served map[string]uint64) int {
	best := -1
	for i, w := range waiting {
		if best < 0 || served[w.client] < served[waiting[best].client] {
			best = i
		}
	}
	return best
}

// position is how many turns come before the ticket's, the running one
// included, if nobody else came.
func (q *queue) position(t *ticket) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting, served, clock := slices.Clone(q.waiting), make(map[string]uint64, len(q.served)), q.clock
	for c, n := range q.served {
		served[c] = n
	}
	for n := 1; len(waiting) > 0; n++ {
		i := next(waiting, served)
		if waiting[i] == t {
			return n
		}
		clock++
		served[waiting[i].client] = clock
		waiting = slices.Delete(waiting, i, i+1)
	}
	return 0
}
