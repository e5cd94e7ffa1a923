package cpu

import "math"

// Form says how activations meet 4-bit weights. 8-bit matrices, which are few
// and route, always see float32.
type Form uint8

// The forms.
const (
	// Int8 rounds each [Group] of activations to 8 bits: integer products, a
	// quarter of the arithmetic, an error near 0.5% of an activation.
	Int8 Form = iota
	// Float32 keeps activations as they are: the form held to references.
	Float32
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

	f    []float32 // natural order, for 8-bit matrices
	fsum []float32 // sum of each group of f
	p    []float32 // Float32 order
	q    []int8    // Int8 order
	qs   []float32 // scale of each group of q
	qsum []float32 // sum of each group of q, times its scale

	stride, groups int // of one vector, padded to a whole block
}

// NewInput makes room for vectors of cols columns.
func NewInput(form Form, capacity, cols int) *Input {
	in := &Input{Form: form, Cap: capacity, Cols: cols}
	in.stride = (cols + block - 1) / block * block
	in.groups = in.stride / Group
	in.f = make([]float32, capacity*in.stride)
	in.fsum = make([]float32, capacity*in.groups)
	if form == Float32 {
		in.p = make([]float32, capacity*in.stride)
		return in
	}
	in.q = make([]int8, capacity*in.stride)
	in.qs = make([]float32, capacity*in.groups)
	in.qsum = make([]float32, capacity*in.groups)
	return in
}

// Copy makes vector t of in the same as vector s of from, which has its shape.
func (in *Input) Copy(t int, from *Input, s int) {
	n, g := in.stride, in.groups
	copy(in.fsum[t*g:(t+1)*g], from.fsum[s*g:])
	if in.Form == Float32 {
		copy(in.p[t*n:(t+1)*n], from.p[s*n:])
		return
	}
	copy(in.q[t*n:(t+1)*n], from.q[s*n:])
	copy(in.qs[t*g:(t+1)*g], from.qs[s*g:])
	copy(in.qsum[t*g:(t+1)*g], from.qsum[s*g:])
}

// Set makes x vector t of in.
func (k Kernels) Set(in *Input, t int, x []float32) {
	f := in.f[t*in.stride : (t+1)*in.stride]
	copy(f, x[:in.Cols])
	sum := in.fsum[t*in.groups : (t+1)*in.groups]
	if in.Form == Float32 {
		sumPlain(f, sum, in.Cols/Group)
		spread(f, in.p[t*in.stride:(t+1)*in.stride], in.Cols)
		return
	}
	k.quantize(f, in.q[t*in.stride:(t+1)*in.stride], in.qs[t*in.groups:(t+1)*in.groups],
		in.qsum[t*in.groups:(t+1)*in.groups], sum, in.Cols/Group)
}

func sumPlain(f, sum []float32, groups int) {
	for g := range groups {
		s := float32(0)
		for _, v := range f[g*Group : (g+1)*Group] {
			s += v
		}
		sum[g] = s
	}
}

// spread puts columns into Float32 order.
func spread(f, p []float32, cols int) {
	for c := 0; c < cols; c += 128 {
		for i, v := range f[c:min(c+128, len(f))] {
			p[c+i%8*16+i/8] = v
		}
	}
}

// quantizePlain rounds each group to 8 bits: scale max|x|/127, codes to the
// nearest, halves to even.
func quantizePlain(f []float32, q []int8, qs, qsum, sum []float32, groups int) {
	for g := range groups {
		x := f[g*Group : (g+1)*Group]
		top, s := float32(0), float32(0)
		for _, v := range x {
			top = max(top, v, -v)
			s += v
		}
		scale, inv := top/127, float32(0)
		if top > 0 {
			inv = 127 / top
		}
		at := q[g/2*128+g%2*32:]
		total := int32(0)
		for i, v := range x {
			c := int32(math.RoundToEven(float64(v * inv)))
			at[i%2*64+i/2] = int8(c)
			total += c
		}
		qs[g], qsum[g], sum[g] = scale, float32(total)*scale, s
	}
}
