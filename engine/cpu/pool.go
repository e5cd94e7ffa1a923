package cpu

import (
	"iter"
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
	jobs    [maxJobs]job
	closed  bool
	done    sync.WaitGroup
}

// Worker is one of a pool's threads, as its task sees it.
type Worker struct {
	ID, N int // which of how many
	pool  *Pool
	jobs  uint32   // begun by this worker since it started
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

// maxJobs is how many of [Worker.Parts] and [Worker.Each] there may be between
// two of [Worker.Sync].
const maxJobs = 64

// job counts the parts that workers have taken: in the upper half which job
// this is, in the lower one the next part.
type job struct {
	state atomic.Uint64
	_     [56]byte
}

// Parts yields pieces of n things, unit of each but the last, until the workers
// together have had all. A worker that is slow or was put to sleep gets fewer.
// All workers of a task must come to the same calls in the same order.
func (w *Worker) Parts(n, unit int) iter.Seq2[int, int] {
	return func(yield func(lo, hi int) bool) {
		j, id := w.begin()
		for {
			lo := j.take(id) * unit
			if lo >= n || !yield(lo, min(lo+unit, n)) {
				return
			}
		}
	}
}

// Each is Parts one by one.
func (w *Worker) Each(n int) iter.Seq[int] {
	return func(yield func(i int) bool) {
		j, id := w.begin()
		for {
			i := j.take(id)
			if i >= n || !yield(i) {
				return
			}
		}
	}
}

// begin is this worker's next job, which others may have begun already.
func (w *Worker) begin() (*job, uint32) {
	w.jobs++
	return &w.pool.jobs[w.jobs%maxJobs], w.jobs
}

// take returns the number of a part that nobody has had. The first worker to
// come makes the counter this job's: what it counted before is over, since all
// have passed a gate since then.
func (j *job) take(id uint32) int {
	for {
		v := j.state.Load()
		if uint32(v>>32) == id {
			return int(uint32(j.state.Add(1) - 1))
		}
		if j.state.CompareAndSwap(v, uint64(id)<<32|1) {
			return 0
		}
	}
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
