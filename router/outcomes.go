package router

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"weir/internal/audit"
	"weir/internal/store"
)

// outcomes writes down how steps ended, a little later and many at a time: a
// client need not wait for it, and one commit for many costs little more than
// one for one. What a killed process loses of them is how steps ended, never
// that and why they were decided.
type outcomes struct {
	log   *slog.Logger
	audit *audit.Log
	queue chan outcome
	// idle is closed and replaced whenever nothing is left to write.
	mu      sync.Mutex
	pending int
	idle    chan struct{}
	done    chan struct{}
}

type outcome struct {
	receipt audit.Receipt
	audit.Outcome
}

const (
	// outcomeQueue is how many may wait; beyond that requests wait instead.
	outcomeQueue = 4096
	// outcomeBatch is how many are written in one go.
	outcomeBatch = 128
	// outcomeDelay is how long the first of a batch waits for others.
	outcomeDelay = 25 * time.Millisecond
	// outcomeLimit bounds the writing of a batch.
	outcomeLimit = 10 * time.Second
)

func newOutcomes(log *slog.Logger, a *audit.Log) *outcomes {
	o := &outcomes{log: log, audit: a, queue: make(chan outcome, outcomeQueue), idle: make(chan struct{}), done: make(chan struct{})}
	go o.run()
	return o
}

func (o *outcomes) add(r audit.Receipt, out audit.Outcome) {
	o.mu.Lock()
	o.pending++
	o.mu.Unlock()
	o.queue <- outcome{r, out}
}

// flush waits until all that were added are written.
func (o *outcomes) flush(ctx context.Context) error {
	for {
		o.mu.Lock()
		n, idle := o.pending, o.idle
		o.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// close ends the writing. Nothing may be added any more.
func (o *outcomes) close() {
	close(o.queue)
	<-o.done
}

func (o *outcomes) run() {
	defer close(o.done)
	for first := range o.queue {
		batch := []outcome{first}
		timer := time.NewTimer(outcomeDelay)
	gather:
		for len(batch) < outcomeBatch {
			select {
			case next, ok := <-o.queue:
				if !ok {
					break gather
				}
				batch = append(batch, next)
			case <-timer.C:
				break gather
			}
		}
		timer.Stop()
		o.write(batch)
	}
}

// write hands a batch to the log at once: the store commits together what waits
// together.
func (o *outcomes) write(batch []outcome) {
	ctx, cancel := context.WithTimeout(context.Background(), outcomeLimit)
	defer cancel()
	var wg sync.WaitGroup
	for _, out := range batch {
		wg.Go(func() {
			if err := o.audit.Finish(ctx, out.receipt, out.Outcome); err != nil && !errors.Is(err, store.ErrExists) {
				o.log.Error("outcome not recorded", "decision", out.receipt.ID(), "error", err)
			}
		})
	}
	wg.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pending -= len(batch); o.pending == 0 {
		close(o.idle)
		o.idle = make(chan struct{})
	}
}
