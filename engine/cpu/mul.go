package cpu

// Mul multiplies rows lo to hi of m with vectors t0 to t1 of in: the product of
// vector t and row r goes to y[(t-t0)*stride+r-lo]. The bits of a product
// depend on its row and its vector alone.
//
// Per vector and 64 columns: scale * sum(code*x) + bias * sum(x). 16 running
// sums hold what 16 lanes of a vector register would, so all levels add in the
// same order.
func (k Kernels) Mul(y []float32, stride int, m *Matrix, lo, hi int, in *Input, t0, t1 int) {
	if lo >= hi || t0 >= t1 {
		return
	}
	if in.Cols != m.Cols {
		panic("cpu: input and matrix differ in columns")
	}
	_ = y[(t1-t0-1)*stride+hi-lo-1] // the kernels check no bounds
	if k.mulVector(y, stride, m, lo, hi, in, t0, t1) {
		return
	}
	rb, sb := m.rowBytes(), m.scaleBytes()
	for r := lo; r < hi; r++ {
		w, sc, bi := m.W[r*rb:(r+1)*rb], m.Scales[r*sb:(r+1)*sb], m.Biases[r*sb:(r+1)*sb]
		for t := t0; t < t1; t++ {
			x, g := t*in.stride, t*in.groups
			at := &y[(t-t0)*stride+r-lo]
			switch {
			case m.Bits == 8:
				*at = dotQ8Float(w, sc, bi, in.f[x:], in.fsum[g:])
			case in.Form == Float32:
				*at = dotQ4Float(w, sc, bi, in.p[x:], in.fsum[g:])
			default:
				*at = dotQ4Int(w, sc, bi, in.q[x:], in.qs[g:], in.qsum[g:])
			}
		}
	}
}

// lanes are the running sums of one product.
type lanes [16]float32

// bias adds bias*sum of the up to eight groups of a block, one to a lane.
func (a *lanes) bias(bi []byte, sum []float32, b, groups int) {
	for g := b; g < min(b+8, groups); g++ {
		a[g-b] = fma(bfloat(bi[2*g:]), sum[g], a[g-b])
	}
}

// total folds the lanes in halves, as the kernels do.
func (a *lanes) total() float32 {
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			a[i] += a[i+n]
		}
	}
	return a[0]
}

func dotQ4Int(w, sc, bi []byte, q []int8, qs, qsum []float32) float32 {
	var acc lanes
	groups := len(sc) / 2
	for g := range groups {
		if g%8 == 0 {
			acc.bias(bi, qsum, g, groups)
		}
		x := q[g/2*128+g%2*32:]
		s := bfloat(sc[2*g:]) * qs[g]
		for l := range 8 {
			d := int32(0)
			for i := 4 * l; i < 4*l+4; i++ {
				c := w[g*32+i]
				d += int32(c&15)*int32(x[i]) + int32(c>>4)*int32(x[64+i])
			}
			acc[g%2*8+l] = fma(float32(d), s, acc[g%2*8+l])
		}
	}
	return acc.total()
}

func dotQ4Float(w, sc, bi []byte, p, sum []float32) float32 {
	var acc lanes
	groups := len(sc) / 2
	for g := range groups {
		if g%8 == 0 {
			acc.bias(bi, sum, g, groups)
		}
		x := p[g/2*128+g%2*8:]
		s := bfloat(sc[2*g:])
		for l := range 8 {
			d := float32(0)
			for j := range 8 {
				c := w[g*32+4*l+j/2] >> (j % 2 * 4) & 15
				d = fma(float32(c), x[16*j+l], d)
			}
			acc[g%2*8+l] = fma(d, s, acc[g%2*8+l])
		}
	}
	return acc.total()
}

func dotQ8Float(w, sc, bi []byte, f, sum []float32) float32 {
	var acc lanes
	groups := len(sc) / 2
	for g := range groups {
		if g%8 == 0 {
			acc.bias(bi, sum, g, groups)
		}
		s := bfloat(sc[2*g:])
		for l := range acc {
			d := float32(0)
			for i := g*Group + l; i < (g+1)*Group; i += 16 {
				d = fma(float32(w[i]), f[i], d)
			}
			acc[l] = fma(d, s, acc[l])
		}
	}
	return acc.total()
}
