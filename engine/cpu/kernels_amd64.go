package cpu

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:generate go run ./asmgen kernels_amd64.s kernels_arm64.s

func best() Level {
	x := &cpu.X86
	switch {
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VNNI && x.HasFMA:
		return AVX512
	case x.HasAVX2 && x.HasFMA:
		return AVX2
	}
	return Plain
}

// wide is how many of n elements the vector kernels take that are there from a
// level on: runs of 16, whatever the width of registers.
func (k Kernels) wide(n int, from Level) int {
	if k.level >= from {
		return n &^ 15
	}
	return 0
}

// matrixKernel multiplies rows of a matrix with as many vectors as it is for.
// blocks and tail are the whole blocks of a row and the groups after them,
// strides are bytes from one vector to the next and from one's product to the
// next one's.
type matrixKernel = func(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

// rowBlock is how many rows meet a group of vectors before the next group
// comes: 32 KiB of codes at most, so that both stay in the first-level cache.
const rowBlock = 16

func (k Kernels) mulVector(p *Panel, y []float32, stride int, m *Matrix, lo, hi int, in *Input, t0, t1 int) bool {
	if k.level == Plain || k.level == AVX2 && m.Bits == 4 && m.Cols%block != 0 {
		return false
	}
	if k.level == AVX512 && in.Form == Int8 && t1-t0 >= panelVectors && m.Cols%(2*Group) == 0 {
		for ; hi-lo >= panelRows; lo += panelRows {
			p.fill(m, lo, hi)
			p.mul(y, stride, in, t0, t1)
			y = y[min(panelRows, len(y)):]
		}
		p.then = nil
	}
	rows := rowBlock
	if t1-t0 == 1 {
		rows = hi - lo // one stream over the weights
	}
	for r := lo; r < hi; r += rows {
		n := min(rows, hi-r)
		for t := t0; t < t1; {
			t += k.mulSome(y[(t-t0)*stride+r-lo:], stride, m, r, n, in, t, t1-t)
		}
	}
	return true
}

// mulSome multiplies n rows from r with up to left vectors from t, and returns
// with how many.
func (k Kernels) mulSome(y []float32, stride int, m *Matrix, r, n int, in *Input, t, left int) int {
	var (
		kernel  matrixKernel
		vectors int
		x       unsafe.Pointer
		gap     uintptr
	)
	groups := m.Cols / Group
	blocks, tail := groups/8, groups%8
	switch {
	case m.Bits == 8:
		kernel, vectors = k.q8flt(left)
		x, gap = unsafe.Pointer(&in.p[t*in.stride]), uintptr(4*in.stride)
		blocks, tail = groups, 0
	case in.Form == Float32:
		kernel, vectors = k.q4flt(left)
		x, gap = unsafe.Pointer(&in.p[t*in.stride]), uintptr(4*in.stride)
	default:
		kernel, vectors = k.q4int(left)
		x, gap = unsafe.Pointer(&in.q[t*in.blocks]), unsafe.Sizeof(qblock{})*uintptr(in.blocks)
	}
	rb, sb := m.rowBytes(), m.scaleBytes()
	kernel(&m.W[r*rb], &m.Scales[r*sb], &m.Biases[r*sb], blocks, tail, n, x, gap, &y[0], uintptr(4*stride))
	return vectors
}

// The kernels for the most vectors of those that are left.

func (k Kernels) q4int(left int) (matrixKernel, int) {
	switch {
	case k.level == AVX2 && left >= 4:
		return q4int256x4, 4
	case k.level == AVX2:
		return q4int256x1, 1
	case left >= 4:
		return q4int512x4, 4
	case left >= 2:
		return q4int512x2, 2
	}
	return q4int512x1, 1
}

func (k Kernels) q4flt(left int) (matrixKernel, int) {
	switch {
	case k.level == AVX2 && left >= 2:
		return q4flt256x2, 2
	case k.level == AVX2:
		return q4flt256x1, 1
	case left >= 4:
		return q4flt512x4, 4
	case left >= 2:
		return q4flt512x2, 2
	}
	return q4flt512x1, 1
}

func (k Kernels) q8flt(left int) (matrixKernel, int) {
	switch {
	case k.level == AVX2 && left >= 2:
		return q8flt256x2, 2
	case k.level == AVX2:
		return q8flt256x1, 1
	case left >= 4:
		return q8flt512x4, 4
	case left >= 2:
		return q8flt512x2, 2
	}
	return q8flt512x1, 1
}

func (k Kernels) quantize(f []float32, q []qblock, groups int) {
	if k.level == AVX512 {
		quantize512(&f[0], &q[0], groups)
		return
	}
	quantizePlain(f, q, groups)
}

// What follows is called with whole vectors only, see wide.

func (k Kernels) dot(a, b []float32) float32 {
	if k.level == AVX2 {
		return dot256(&a[0], &b[0], len(a))
	}
	return dot512(&a[0], &b[0], len(a))
}

func (k Kernels) scores(out, q, rows []float32, scale float32) {
	if k.level == AVX2 {
		scores256(&out[0], &q[0], len(q), &rows[0], len(out), scale)
		return
	}
	scores512(&out[0], &q[0], len(q), &rows[0], len(out), scale)
}

func (k Kernels) blend(out, p, rows []float32) {
	switch {
	case len(p) == 0:
	case k.level == AVX2:
		blend256(&out[0], len(out), &p[0], len(p), &rows[0])
	default:
		blend512(&out[0], len(out), &p[0], len(p), &rows[0])
	}
}

func (k Kernels) addScaled(y, x []float32, w float32) {
	if k.level == AVX2 {
		addScaled256(&y[0], &x[0], len(y), w)
		return
	}
	addScaled512(&y[0], &x[0], len(y), w)
}

func (k Kernels) conv4(dst []float32, r, w *[4][]float32) { conv512(&dst[0], len(dst), r, w) }

func (k Kernels) siluMul(dst, gate, x []float32) { siluMul512(&dst[0], &gate[0], &x[0], len(dst)) }

func (k Kernels) sigmoidMul(x, gate []float32) { sigmoidMul512(&x[0], &gate[0], len(x)) }

func (k Kernels) exp(x []float32, top float32) float32 { return exp512(&x[0], len(x), top) }

// stripe is a kernel of the delta rule for some columns of the state.
type stripe = func(s *float32, stride uintptr, key, q *float32, keys int, v, out *float32, decay, beta float32)

func (k Kernels) hasDelta(cols int) bool { return k.wide(cols, AVX2) == cols }

// delta takes the columns of the state in stripes that fit the registers.
func (k Kernels) delta(out, s, key, q, v []float32, decay, beta float32) {
	broad, cols, narrow := stripe(delta512x8), 128, stripe(delta512x1)
	if k.level == AVX2 {
		broad, cols, narrow = delta256x4, 32, delta256x2
	}
	for c := 0; c < len(v); {
		kernel, n := narrow, 16
		if len(v)-c >= cols {
			kernel, n = broad, cols
		}
		kernel(&s[c], uintptr(4*len(v)), &key[0], &q[0], len(key), &v[c], &out[c], decay, beta)
		c += n
	}
}

// scoresHalf takes as many heads as registers hold at a time.
func (k Kernels) scoresHalf(out, q []float32, qstride int, rows []uint16, heads, n, cols int, scale float32) {
	broad, each, narrow := scoresHalf512x4, 4, scoresHalf512x1
	if k.level == AVX2 {
		broad, each, narrow = scoresHalf256x2, 2, scoresHalf256x1
	}
	for h := 0; h < heads; {
		kernel, m := narrow, 1
		if heads-h >= each {
			kernel, m = broad, each
		}
		kernel(&out[h*n], uintptr(4*n), &q[h*qstride], uintptr(4*qstride), cols, &rows[0], n, scale)
		h += m
	}
}

func (k Kernels) blendHalf(out, p []float32, rows []uint16, heads, n, cols int) {
	broad, each, narrow := blendHalf512x4, 4, blendHalf512x1
	if k.level == AVX2 {
		broad, each, narrow = blendHalf256x2, 2, blendHalf256x1
	}
	for h := 0; h < heads; {
		kernel, m := narrow, 1
		if heads-h >= each {
			kernel, m = broad, each
		}
		kernel(&out[h*cols], uintptr(4*cols), cols, &p[h*n], uintptr(4*n), n, &rows[0])
		h += m
	}
}

func (k Kernels) read(b []byte) bool {
	switch {
	case k.level == Plain || len(b) < 256:
		return false
	case k.level == AVX2:
		read256(&b[0], len(b))
	default:
		read512(&b[0], len(b))
	}
	return true
}
