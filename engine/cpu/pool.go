package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Pool is a fixed set of threads that run the same function together. One Run
// at a time; Close when done.
type Pool struct {
	workers []Worker
	task    func(*Worker)
	begin   gate // the workers and the caller, before a task
	meet    gate // the workers, within a task
	end     gate // the workers and the caller, after it
	closed  bool
	done    sync.WaitGroup
}

// Worker is one of a pool's threads, as its task sees it.
type Worker struct {
	ID, N int // which of how many
	pool  *Pool
	_     [64]byte // no two on one cache line
}

// NewPool starts n workers, or as many as there are cores for this process
// when n is zero, each on a thread and core of its own where the system allows.
func NewPool(n int) *Pool {
	cores := available()
	if n <= 0 {
		n = len(cores)
	}
	p := &Pool{workers: make([]Worker, n)}
	p.begin.init(n + 1)
	p.meet.init(n)
	p.end.init(n + 1)
	for i := range p.workers {
		p.workers[i] = Worker{ID: i, N: n, pool: p}
		p.done.Go(func() {
			runtime.LockOSThread() // never unlocked: a pinned thread must not serve others
			if n <= len(cores) {
				pin(cores[i])
			}
			p.serve(&p.workers[i])
		})
	}
	return p
}

// Size is the number of workers.
func (p *Pool) Size() int { return len(p.workers) }

func (p *Pool) serve(w *Worker) {
	for {
		p.begin.wait()
		if p.closed {
			return
		}
		p.task(w)
		p.end.wait()
	}
}

// Run has every worker run task, and returns when all have.
func (p *Pool) Run(task func(*Worker)) {
	p.task = task
	p.begin.wait()
	p.end.wait()
}

// Close ends the workers. The pool must not be running a task.
func (p *Pool) Close() {
	p.closed = true
	p.begin.wait()
	p.done.Wait()
}

// Sync waits until every worker of the task has come here. What they wrote
// before is then seen by all.
func (w *Worker) Sync() {
	if w.N > 1 {
		w.pool.meet.wait()
	}
}

// Share is this worker's part of n things, cut at multiples of unit.
func (w *Worker) Share(n, unit int) (lo, hi int) {
	units := (n + unit - 1) / unit
	lo = units * w.ID / w.N * unit
	hi = units * (w.ID + 1) / w.N * unit
	return min(lo, n), min(hi, n)
}

// spins is how often a gate looks before it sleeps: some 20 to 50 microseconds,
// longer than a step between two gates is uneven, short enough not to take a
// core from the rest of the machine. Spinning alone collapses as soon as
// another process runs on one of the cores.
const spins = 1000

// gate is where n goroutines wait for one another.
type gate struct {
	n       int32
	arrived atomic.Int32
	_       [56]byte
	turn    atomic.Uint32
	asleep  atomic.Int32
	mu      sync.Mutex
	cond    *sync.Cond
}

func (g *gate) init(n int) {
	g.n, g.cond = int32(n), sync.NewCond(&g.mu)
}

func (g *gate) wait() {
	turn := g.turn.Load()
	if g.arrived.Add(1) == g.n {
		g.arrived.Store(0)
		g.turn.Store(turn + 1)
		if g.asleep.Load() > 0 {
			g.mu.Lock()
			g.cond.Broadcast()
			g.mu.Unlock()
		}
		return
	}
	for range spins {
		if g.turn.Load() != turn {
			return
		}
		pause()
	}
	g.mu.Lock()
	g.asleep.Add(1)
	for g.turn.Load() == turn {
		g.cond.Wait()
	}
	g.asleep.Add(-1)
	g.mu.Unlock()
}
