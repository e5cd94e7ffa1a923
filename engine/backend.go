package engine

import "context"

// backend computes: the processor's own kernels, or a GPU. It is for one
// goroutine at a time.
type backend interface {
	// newMemory is the memory of nothing.
	newMemory() (memory, error)
	// pass appends tokens, at most a chunk, to a memory. A pass that ends with
	// an error leaves the memory unusable.
	pass(ctx context.Context, m memory, tokens []int32, out output) error
	about() about
	// readRate is how fast it reads n bytes that no cache holds, in GB/s.
	readRate(n int) (float64, error)
	// matrixRate is how fast its matrix units multiply with nothing to wait for,
	// in GFLOP/s; zero where there are none, or it cannot tell.
	matrixRate() (float64, error)
	// health is why it cannot compute now, or nil.
	health() error
	close() error
}

// output says what a pass computes beside the memory.
type output struct {
	want   int       // of how many of the last tokens logits are wanted
	logits []float32 // [want, vocab]
	watch  func(layer int, h []float32)
}

// memory is what a model remembers of a row of tokens.
type memory interface {
	clone() (memory, error)
	// spare is clone for a copy that is kept, and copied in its turn if need be.
	spare() (memory, error)
	// rest says that it will be kept so: what only computing needs may go.
	rest()
	// parts shows what it consists of, each part with its size. Memories with a
	// common past may have parts in common.
	parts(visit func(part any, bytes int64))
	// free gives up what no collector finds.
	free()
}

// feeder is a backend that can choose tokens itself and go on from them, without
// waiting for anybody to look at them.
type feeder interface {
	// feed appends the token first, then one chosen after it as how says, and so
	// on until emit, which is shown each chosen token, returns false or limit
	// tokens were chosen. How is [Sampling.plain]. It returns how many of the chosen tokens have been
	// appended, all or all but the last, and the logits of what follows.
	feed(ctx context.Context, m memory, first int32, limit int, how *Sampling, logits []float32, emit func(int32) bool) (int, error)
}

// about describes a backend for those who measure it.
type about struct {
	Threads int    // of the processor
	Kernels string // the instructions, or the device
}
