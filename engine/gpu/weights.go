package gpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"unsafe"

	"weir/engine/checkpoint"
	"weir/engine/device"
	"weir/engine/kernels"
)

// weights are the model's tensors on the device. Matrices that read the same
// input lie row under row as one.
type weights struct {
	embed, head kernels.Matrix
	norm        device.Arg // bfloat16 [hidden], as are all gains
	layer       []layer
}

// layer has a delta rule or attention, never both.
type layer struct {
	inNorm, postNorm device.Arg
	delta            *deltaWeights
	attention        *attentionWeights
	moe              moeWeights
}

type deltaWeights struct {
	in     kernels.Matrix // qkv, z, b, a, see deltaColumns
	out    kernels.Matrix
	taps   device.Arg // float32 [4][channels], oldest first
	decay  device.Arg // float32 [valueHeads]: exp(A_log)
	dtBias device.Arg // float32 [valueHeads]
	norm   device.Arg // float32 [valueDim]
}

type attentionWeights struct {
	in           kernels.Matrix // queries and gates by head, keys, values
	out          kernels.Matrix
	qNorm, kNorm device.Arg
}

type moeWeights struct {
	router         kernels.Matrix // 8-bit [experts, hidden]
	sharedGate     kernels.Matrix // 8-bit [1, hidden]
	gate, up, down kernels.Matrix // all experts, one after the other
	sIn, sDown     kernels.Matrix // the shared expert: its gate, then up; its down
}

// placer copies tensors to a device and keeps the first error. Without a file
// it only makes room: for plans on paper.
type placer struct {
	dev      device.Device
	c        checkpoint.Config
	file     *checkpoint.Checkpoint
	shapes   map[string]checkpoint.Spec
	wrapped  []wrapped // mappings of the files that the device reads in place
	progress func(done, total int64)
	done     int64
	total    int64
	buffers  []device.Buffer
	err      error
}

// piece is a tensor's bytes, or their number alone.
type piece struct {
	data []byte
	size int64
}

func bytesOf(b []byte) piece { return piece{b, int64(len(b))} }

// room is the piece with room for rows rows, of which it has have.
func (p piece) room(rows, have int) piece {
	return piece{p.data, p.size / int64(have) * int64(rows)}
}

func newPlacer(dev device.Device, c checkpoint.Config, file *checkpoint.Checkpoint) *placer {
	p := &placer{dev: dev, c: c, file: file, shapes: map[string]checkpoint.Spec{}}
	for s := range c.Tensors() {
		p.shapes[s.Name] = s
		p.total += specBytes(s)
	}
	if file != nil && dev.Caps().HostShared {
		p.wrap()
	}
	return p
}

// wrapped is a file's mapping that a device reads where it is.
type wrapped struct {
	first uintptr
	buf   device.Buffer
}

// wrap lets the device read the files in place, as far as it will.
func (p *placer) wrap() {
	page := os.Getpagesize()
	for _, m := range p.file.Shards() {
		// The last page is mapped to its end.
		whole := unsafe.Slice(unsafe.SliceData(m), roundUp(len(m), page))
		b, err := p.dev.Wrap(whole)
		if err != nil {
			continue // what is not wrapped is copied
		}
		p.wrapped = append(p.wrapped, wrapped{address(m), b})
		p.buffers = append(p.buffers, b)
	}
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// wrapAlign is what a tensor's place must be a multiple of for kernels to read
// it in vectors.
const wrapAlign = 16

// inPlace is where a device reads a tensor without a copy, if it does.
func (p *placer) inPlace(t piece) (device.Arg, bool) {
	if t.data == nil || int64(len(t.data)) != t.size {
		return device.Arg{}, false
	}
	for _, w := range p.wrapped {
		at := int64(address(t.data)) - int64(w.first)
		if at >= 0 && at+t.size <= w.buf.Size() && at%wrapAlign == 0 {
			return device.Part(w.buf, at, t.size), true
		}
	}
	return device.Arg{}, false
}

func specBytes(s checkpoint.Spec) int64 {
	n := int64(s.DType.Size())
	for _, d := range s.Shape {
		n *= int64(d)
	}
	return n
}

func (p *placer) fail(what string, err error) {
	if p.err == nil {
		p.err = fmt.Errorf("place %s: %w", what, err)
	}
}

// join copies pieces one after the other into memory of their own.
func (p *placer) join(what string, pieces ...piece) device.Arg {
	n := int64(0)
	for _, b := range pieces {
		n += b.size
	}
	if p.err != nil {
		return device.Arg{}
	}
	if len(pieces) == 1 {
		if a, ok := p.inPlace(pieces[0]); ok {
			p.placed(n)
			return a
		}
	}
	buf, err := p.dev.Alloc(n)
	if err != nil {
		p.fail(what, err)
		return device.Arg{}
	}
	p.buffers = append(p.buffers, buf)
	at := int64(0)
	for _, b := range pieces {
		if b.data != nil {
			if err := p.dev.Write(buf, at, b.data); err != nil {
				p.fail(what, err)
				return device.Arg{}
			}
		}
		at += b.size
	}
	p.placed(n)
	return device.Whole(buf)
}

// placed counts n bytes more.
func (p *placer) placed(n int64) {
	p.done += n
	if p.progress != nil {
		p.progress(min(p.done, p.total), p.total)
	}
}

// raw is a tensor's bytes.
func (p *placer) raw(name string) piece {
	s, ok := p.shapes[name]
	if !ok {
		p.fail(name, errors.New("not part of the model"))
		return piece{}
	}
	if p.file == nil {
		return piece{size: specBytes(s)}
	}
	t, ok := p.file.Tensor(name)
	if !ok {
		p.fail(name, errors.New("missing"))
		return piece{}
	}
	return bytesOf(t.Data)
}

// rowUnit is what the rows of each of several joined matrices are rounded up to,
// with rows of zeros, so that products of 16 bits begin at 16 bytes.
const rowUnit = 8

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// matrix places matrices of the same width and bits under each other. Of
// experts' matrices, Rows are one expert's.
func (p *placer) matrix(names ...string) kernels.Matrix {
	var out kernels.Matrix
	var codes, scales, biases []piece
	for _, n := range names {
		s := p.shapes[n+".weight"]
		if len(s.Shape) < 2 {
			p.fail(n, errors.New("not a matrix of the model"))
			return out
		}
		d := len(s.Shape)
		rows := s.Shape[d-2]
		if len(names) > 1 {
			rows = roundUp(rows, rowUnit)
		}
		out.Rows, out.Cols, out.Bits = out.Rows+rows, s.Shape[d-1]*32/s.Bits, s.Bits
		codes = append(codes, p.raw(n+".weight").room(rows, s.Shape[d-2]))
		scales = append(scales, p.raw(n+".scales").room(rows, s.Shape[d-2]))
		biases = append(biases, p.raw(n+".biases").room(rows, s.Shape[d-2]))
	}
	out.Codes = p.join(names[0]+".weight", codes...)
	out.Scales = p.join(names[0]+".scales", scales...)
	out.Biases = p.join(names[0]+".biases", biases...)
	return out
}

// tensor is a bfloat16 tensor's bytes. A value that is no number would spread
// through every token: it is refused here, where its place can be named.
func (p *placer) tensor(name string) piece {
	t := p.raw(name)
	for i := 0; i+1 < len(t.data); i += 2 {
		if x := float64(half(t.data, i/2)); math.IsNaN(x) || math.IsInf(x, 0) {
			p.fail(name, fmt.Errorf("element %d is not a finite number", i/2))
			break
		}
	}
	return t
}

func half(b []byte, i int) float32 { return checkpoint.FromBF16(binary.LittleEndian.Uint16(b[2*i:])) }

func (p *placer) vector(name string) device.Arg { return p.join(name, p.tensor(name)) }

// floats places float32 numbers, each made of a bfloat16 tensor's.
func (p *placer) floats(name string, n int, value func(b []byte, i int) float32) device.Arg {
	t := p.tensor(name)
	if t.data == nil {
		return p.join(name, piece{size: int64(4 * n)})
	}
	if t.size != int64(2*n) {
		p.fail(name, fmt.Errorf("%d bytes, not %d numbers", t.size, n))
		return device.Arg{}
	}
	out := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(value(t.data, i)))
	}
	return p.join(name, bytesOf(out))
}

// place puts all weights on the device.
func (p *placer) place() (*weights, error) {
	c := p.c
	w := &weights{layer: make([]layer, c.NumLayers())}
	for i := range w.layer {
		n := fmt.Sprintf("language_model.model.layers.%d.", i)
		w.layer[i] = layer{
			inNorm: p.vector(n + "input_layernorm.weight"), postNorm: p.vector(n + "post_attention_layernorm.weight"),
			moe: p.moe(n + "mlp."),
		}
		if c.FullAttention[i] {
			w.layer[i].attention = p.attention(n + "self_attn.")
		} else {
			w.layer[i].delta = p.delta(n + "linear_attn.")
		}
	}
	w.embed, w.head = p.matrix("language_model.model.embed_tokens"), p.matrix("language_model.lm_head")
	w.norm = p.vector("language_model.model.norm.weight")
	if p.err != nil {
		freeAll(p.buffers)
		return nil, p.err
	}
	return w, nil
}

func (p *placer) delta(n string) *deltaWeights {
	c := p.c
	w := &deltaWeights{
		in:  p.matrix(n+"in_proj_qkv", n+"in_proj_z", n+"in_proj_b", n+"in_proj_a"),
		out: p.matrix(n + "out_proj"), norm: p.floats(n+"norm.weight", c.LinearValueDim, half),
		decay: p.floats(n+"A_log", c.LinearValueHeads, func(b []byte, i int) float32 {
			return float32(math.Exp(float64(half(b, i))))
		}),
		dtBias: p.floats(n+"dt_bias", c.LinearValueHeads, half),
	}
	channels := c.ConvChannels() // the tensor is [channels][taps]
	w.taps = p.floats(n+"conv1d.weight", channels*c.ConvKernel, func(b []byte, i int) float32 {
		return half(b, i%channels*c.ConvKernel+i/channels)
	})
	return w
}

func (p *placer) attention(n string) *attentionWeights {
	return &attentionWeights{
		in: p.matrix(n+"q_proj", n+"k_proj", n+"v_proj"), out: p.matrix(n + "o_proj"),
		qNorm: p.vector(n + "q_norm.weight"), kNorm: p.vector(n + "k_norm.weight"),
	}
}

func (p *placer) moe(n string) moeWeights {
	return moeWeights{
		router: p.matrix(n + "gate"), sharedGate: p.matrix(n + "shared_expert_gate"),
		gate: p.matrix(n + "switch_mlp.gate_proj"), up: p.matrix(n + "switch_mlp.up_proj"), down: p.matrix(n + "switch_mlp.down_proj"),
		sIn:   p.matrix(n+"shared_expert.gate_proj", n+"shared_expert.up_proj"),
		sDown: p.matrix(n + "shared_expert.down_proj"),
	}
}

func freeAll(all []device.Buffer) {
	for _, b := range all {
		b.Free()
	}
}

// rowsOf is n rows of a matrix from row at on.
func rowsOf(m kernels.Matrix, at, n int) kernels.Matrix {
	part := func(a device.Arg, row int) device.Arg {
		return device.Part(a.Buf, a.At+int64(at)*int64(row), int64(n)*int64(row))
	}
	scale := m.Cols / checkpoint.GroupSize * 2
	return kernels.Matrix{
		Codes: part(m.Codes, m.Cols*m.Bits/8), Scales: part(m.Scales, scale), Biases: part(m.Biases, scale),
		Rows: n, Cols: m.Cols, Bits: m.Bits,
	}
}
