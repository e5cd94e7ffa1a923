package gpu

import (
	"encoding/binary"
	"math"

	"weir/engine/device"
	"weir/engine/kernels"
)

// Sampling is how the device draws tokens; the zero value takes the most
// probable.
type Sampling = kernels.Sampling

// recording is what a recorded step depends on beside its state.
type recording struct {
	parts int  // of attention, see partsOf
	draws bool // a token instead of taking the most probable
}

// choose records how the next token is found in the head's logits.
func (m *Model) choose(p *plan, step device.Arg, draws bool) {
	b, groups := m.scratch, m.headGroups()
	best, ring := numbers(b.best, 0, groups, kernels.BestBytes), device.Whole(b.ring)
	if !draws {
		p.add(kernels.ArgmaxFinal(best, step, ring, groups), Cost{})
		return
	}
	logits := numbers(b.logits, 0, m.c.VocabSize, 4)
	for _, c := range kernels.Sample(logits, best, numbers(b.how, 0, kernels.SamplingBytes, 1), step, ring,
		numbers(b.drawn, 0, kernels.SampleWords, 4), numbers(b.draws, 0, groups, kernels.BestBytes), m.c.VocabSize, groups) {
		p.add(c, Cost{Bytes: float64(4 * m.c.VocabSize)})
	}
}

// setSampling tells the device how to draw.
func (m *Model) setSampling(s Sampling) error {
	b := make([]byte, 0, kernels.SamplingBytes)
	for _, x := range []uint32{
		math.Float32bits(s.Temperature), math.Float32bits(s.TopP), math.Float32bits(s.MinP), s.TopK, s.SeedLow, s.SeedHigh,
	} {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return m.dev.Write(m.scratch.how, 0, b)
}
