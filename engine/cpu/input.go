package cpu

import "math"

// Form says what the activations of an [Input] are made into.
type Form uint8

// The forms.
const (
	// Int8 rounds each [Group] of activations to 8 bits: integer products, a
	// quarter of the arithmetic, an error near 0.5% of an activation.
	Int8 Form = iota
	// Float32 keeps activations as they are: the form held to references.
	Float32
	// Natural is Float32 for 8-bit matrices, which are few and route: rounding
	// their input would choose other experts.
	Natural
)

// Input is a batch of activation vectors, made ready once for all the matrices
// they will meet. Vectors are filled by [Kernels.Set]; different vectors may be
// filled by different goroutines at once.
//
// Within 128 columns, two groups A and B, the kernels want the order in which
// they unpack nibbles. Int8: the 32 even columns of A, those of B, then the odd
// ones of A and of B. Float32: eight runs of 16, run j holding every eighth
// column from j.
type Input struct {
	Form Form
	Cap  int // vectors there is room for
	Cols int

	p []float32 // Float32 order, or Natural
	q []qblock  // Int8 order

	stride, blocks int // columns and blocks of one vector, padded to whole blocks
}

// qblock is a block of columns in 8 bits with, for each of its groups, the
// scale and the sum of codes times scale. Kernels read it as it lies here.
type qblock struct {
	code  [block]int8
	scale [block / Group]float32
	sum   [block / Group]float32
}

// NewInput makes room for vectors of cols columns.
func NewInput(form Form, capacity, cols int) *Input {
	in := &Input{Form: form, Cap: capacity, Cols: cols}
	in.blocks = (cols + block - 1) / block
	in.stride = in.blocks * block
	if form == Int8 {
		in.q = make([]qblock, capacity*in.blocks)
	} else {
		in.p = make([]float32, capacity*in.stride)
	}
	return in
}

// Copy makes vector t of in the same as vector s of from, which has its form
// and shape.
func (in *Input) Copy(t int, from *Input, s int) {
	if in.Form == Int8 {
		copy(in.q[t*in.blocks:(t+1)*in.blocks], from.q[s*in.blocks:])
		return
	}
	copy(in.p[t*in.stride:(t+1)*in.stride], from.p[s*in.stride:])
}

// Set makes x vector t of in.
func (k Kernels) Set(in *Input, t int, x []float32) {
	x = x[:in.Cols]
	switch in.Form {
	case Int8:
		k.quantize(x, in.q[t*in.blocks:(t+1)*in.blocks], in.Cols/Group)
	case Float32:
		spread(x, in.p[t*in.stride:(t+1)*in.stride])
	case Natural:
		copy(in.p[t*in.stride:], x)
	}
}

// spread puts columns into Float32 order.
func spread(x, p []float32) {
	for i, v := range x {
		p[i&^127+i%8*16+i%128/8] = v
	}
}

// quantizePlain rounds each group to 8 bits: scale max|x|/127, codes to the
// nearest, halves to even.
func quantizePlain(f []float32, q []qblock, groups int) {
	for g := range groups {
		x, b := f[g*Group:(g+1)*Group], &q[g/8]
		top := float32(0)
		for _, v := range x {
			top = max(top, v, -v)
		}
		inv := float32(0)
		if top > 0 {
			inv = 127 / top
		}
		at := b.code[g%8/2*128+g%2*32:]
		total := int32(0)
		for i, v := range x {
			c := int32(math.RoundToEven(float64(v * inv)))
			at[i%2*64+i/2] = int8(c)
			total += c
		}
		b.scale[g%8] = top / 127
		b.sum[g%8] = float32(total) * b.scale[g%8]
	}
}
