package gpu

import (
	"encoding/binary"
	"fmt"
	"math"

	"weir/engine/device"
	"weir/engine/kernels"
)

// scratch is memory between launches, used by one pass at a time.
type scratch struct {
	// of a chunk of a prompt, rows of up to chunk tokens
	tokens    device.Buffer // uint32
	step      device.Buffer // the chunk's step record
	h         device.Buffer // float32 [hidden]: the residual stream
	x         device.Buffer // bfloat16: inputs of products
	proj      device.Buffer // bfloat16: the joined projection before a mixer
	mixer     device.Buffer // what a mixer's launches hand on
	rope      device.Buffer // float32 [rotary/2][2]
	route     device.Buffer // float32 [experts]
	share     device.Buffer // float32
	pick      device.Buffer // uint32 [topK]
	weight    device.Buffer // float32 [topK]
	counts    device.Buffer // uint32 [experts]
	slots     device.Buffer // uint32 [topK]
	tiles     device.Buffer
	act, y    device.Buffer // bfloat16 [topK][width], [topK][hidden]
	sharedAct device.Buffer // bfloat16 [sharedWidth]
	shared    device.Buffer // bfloat16 [hidden]

	// of a decode step, float32 unless said otherwise
	one decodeScratch

	ropeHigh, ropeLow device.Buffer // tables, see kernels.RopeTables
	logits            device.Buffer // [vocab]
	best              device.Buffer // candidates for the greatest logit
	how               device.Buffer // a Sampling
	drawn, draws      device.Buffer // of drawing: counts, and candidates
	ring              device.Buffer // uint32 [kernels.TokenRing]: chosen tokens by position, seen by the host
	captured          device.Buffer // residual streams for a watcher, nil without one

	all []device.Buffer
}

// decodeScratch is of one token.
type decodeScratch struct {
	h, proj, x   device.Buffer
	rope         device.Buffer
	part, stats  device.Buffer // of attention: [heads][parts][headDim], [heads][parts][2]
	route, share device.Buffer
	act, sAct    device.Buffer
	pick, weight device.Buffer // pick is uint32
}

// sized is where a buffer goes, and its size in bytes.
type sized struct {
	b    *device.Buffer
	size int
}

// sizes lists the scratch with its sizes in bytes.
func (m *Model) sizes(s *scratch) []sized {
	c, T := m.c, m.chunk
	H, K, pairs := c.HiddenSize, c.ExpertsPerToken, c.RotaryDim/2
	values, queries := c.LinearValueHeads*c.LinearValueDim, c.NumHeads*c.HeadDim
	width := max(deltaColumns(c).width, attentionColumns(c).width)
	mixer := max(m.deltaShape(T).ScratchSize(), m.attendShape(T).ScratchSize())
	tiles := 0
	for _, t := range kernels.Tiles(m.dev.Caps()) {
		tiles = max(tiles, kernels.Experts{Tile: t, M: T, K: K, Experts: c.NumExperts}.MaxTiles())
	}
	return []sized{
		{&s.tokens, 4 * T},
		{&s.step, stepBytes},
		{&s.h, 4 * T * H},
		{&s.x, 2 * T * max(H, values, queries)},
		{&s.proj, 2 * T * width},
		{&s.mixer, int(mixer)},
		{&s.rope, 8 * T * pairs},
		{&s.route, 4 * T * c.NumExperts},
		{&s.share, 4 * T},
		{&s.pick, 4 * T * K},
		{&s.weight, 4 * T * K},
		{&s.counts, 4 * c.NumExperts},
		{&s.slots, 4 * T * K},
		{&s.tiles, 16 * tiles},
		{&s.act, 2 * T * K * c.ExpertWidth},
		{&s.y, 2 * T * K * H},
		{&s.sharedAct, 2 * T * c.SharedWidth},
		{&s.shared, 2 * T * H},
		{&s.one.h, 4 * H},
		{&s.one.proj, 4 * width},
		{&s.one.x, 4 * max(values, queries)},
		{&s.one.rope, 8 * pairs},
		{&s.one.part, 4 * c.NumHeads * m.maxParts() * c.HeadDim},
		{&s.one.stats, 8 * c.NumHeads * m.maxParts()},
		{&s.one.route, 4 * c.NumExperts},
		{&s.one.share, 4},
		{&s.one.act, 4 * K * c.ExpertWidth},
		{&s.one.sAct, 4 * c.SharedWidth},
		{&s.one.pick, 4 * K},
		{&s.one.weight, 4 * K},
		{&s.ropeHigh, 4 * 512 * pairs * 2},
		{&s.ropeLow, 4 * 512 * pairs * 2},
		{&s.logits, 4 * c.VocabSize},
		{&s.best, kernels.BestBytes * m.headGroupsOf(c.VocabSize)},
		{&s.how, kernels.SamplingBytes},
		{&s.drawn, 4 * kernels.SampleWords},
		{&s.draws, kernels.BestBytes * m.headGroupsOf(c.VocabSize)},
	}
}

func (m *Model) scratchBytes() int64 {
	n := int64(0)
	for _, b := range m.sizes(&scratch{}) {
		n += int64(b.size)
	}
	return n
}

func newScratch(m *Model) (*scratch, error) {
	s := &scratch{}
	for _, b := range m.sizes(s) {
		buf, err := m.dev.Alloc(int64(roundUp(b.size, 256)))
		if err != nil {
			freeAll(s.all)
			return nil, fmt.Errorf("make room for %d bytes of scratch: %w", m.scratchBytes(), err)
		}
		*b.b = buf
		s.all = append(s.all, buf)
	}
	ring, err := m.dev.AllocShared(4 * kernels.TokenRing)
	if err != nil {
		freeAll(s.all)
		return nil, fmt.Errorf("make room for tokens: %w", err)
	}
	s.ring = ring
	s.all = append(s.all, ring)
	high, low := kernels.RopeTables(m.c.RotaryDim/2, m.c.RopeTheta)
	for b, table := range map[device.Buffer][]float32{s.ropeHigh: high, s.ropeLow: low} {
		if err := m.dev.Write(b, 0, floatBytes(table)); err != nil {
			freeAll(s.all)
			return nil, err
		}
	}
	return s, nil
}

func floatBytes(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func floats(v []float32, b []byte) {
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// setChunk writes the chunk's tokens and where they stand.
func (m *Model) setChunk(s *State, tokens []int32) error {
	b := make([]byte, 0, 4*len(tokens))
	for _, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(t))
	}
	if err := m.dev.Write(m.scratch.tokens, 0, b); err != nil {
		return err
	}
	return m.dev.Write(m.scratch.step, 0, stepRecord(tokens[0], s.length, len(tokens)))
}

// readLogits fetches the logits that a plan left, unless nobody wants them.
func (m *Model) readLogits(logits []float32) error {
	if logits == nil {
		return nil
	}
	if len(logits) != m.c.VocabSize {
		return fmt.Errorf("%d logits are wanted, and the model has %d", len(logits), m.c.VocabSize)
	}
	b := make([]byte, 4*m.c.VocabSize)
	if err := m.dev.Read(b, m.scratch.logits, 0); err != nil {
		return err
	}
	floats(logits, b)
	return nil
}

// capture makes a plan copy the residual stream before each layer and after
// the last.
func (m *Model) capture(n int) func(p *plan, layer int) {
	words := n * m.c.HiddenSize
	return func(p *plan, layer int) {
		p.add(kernels.CopyWords(numbers(m.scratch.h, 0, words, 4), numbers(m.scratch.captured, layer*words, words, 4), words), Cost{})
	}
}

// show hands out what was captured.
func (m *Model) show(n int, watch func(int, []float32)) error {
	if watch == nil {
		return nil
	}
	words := n * m.c.HiddenSize
	b, h := make([]byte, 4*words), make([]float32, words)
	for i := range len(m.w.layer) + 1 {
		if err := m.dev.Read(b, m.scratch.captured, int64(i*len(b))); err != nil {
			return err
		}
		floats(h, b)
		watch(i, h)
	}
	return nil
}
