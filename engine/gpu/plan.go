package gpu

import (
	"weir/engine/device"
	"weir/engine/kernels"
)

// Cost is what a launch moves and computes at least.
type Cost struct {
	Bytes float64 // of weights, state, keys and values; activations of a prompt
	Flops float64 // two for each multiplication
}

// Step is a launch of a plan with its place in the model and its cost.
type Step struct {
	Kernel string
	Part   string // "delta", "attention", "experts", "ends"
	Layer  int
	Cost   Cost
}

// plan is a stream that knows what its launches are for.
type plan struct {
	device.Stream
	steps []Step
	part  string
	layer int
}

// at says where in the model the following launches belong.
func (p *plan) at(part string, layer int) { p.part, p.layer = part, layer }

// add appends a launch.
func (p *plan) add(c device.Command, cost Cost) {
	p.Stream.Add(c)
	p.steps = append(p.steps, Step{Kernel: c.Kernel, Part: p.part, Layer: p.layer, Cost: cost})
}

// product is the cost of a matrix times n vectors, its weights read once.
func product(m kernels.Matrix, n int) Cost {
	size := float64(m.Rows) * float64(m.Cols)
	return Cost{Bytes: size*float64(m.Bits)/8 + size/64*4, Flops: 2 * size * float64(n)}
}

func (c Cost) and(o Cost) Cost { return Cost{c.Bytes + o.Bytes, c.Flops + o.Flops} }

func (c Cost) times(f float64) Cost { return Cost{c.Bytes * f, c.Flops * f} }
