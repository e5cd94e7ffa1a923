package cpu

// Mul multiplies rows lo to hi of m with vectors t0 to t1 of in: the product of
// vector t and row r goes to y[(t-t0)*stride+r-lo]. The bits of a product
// depend on its row and its vector alone.
//
// Running sums hold what the lanes of a vector register would, so all levels
// add in the same order: 16 of them, or, in 8 bits, one for each group of a
// block, to which a [Group] of columns adds bias*sum(x) and then
// scale*sum(code*x), of which the sum is exact. p is scratch for as many
// columns.
func (k Kernels) Mul(p *Panel, y []float32, stride int, m *Matrix, lo, hi int, in *Input, t0, t1 int) {
	if lo >= hi || t0 >= t1 {
		return
	}
	if in.Cols != m.Cols || (m.Bits == 8) != (in.Form == Natural) {
		panic("cpu: input is not made for this matrix")
	}
	_ = y[(t1-t0-1)*stride+hi-lo-1] // the kernels check no bounds
	if k.mulVector(p, y, stride, m, lo, hi, in, t0, t1) {
		return
	}
	rb, sb := m.rowBytes(), m.scaleBytes()
	for r := lo; r < hi; r++ {
		w, sc, bi := m.W[r*rb:(r+1)*rb], m.Scales[r*sb:(r+1)*sb], m.Biases[r*sb:(r+1)*sb]
		for t := t0; t < t1; t++ {
			x := t * in.stride
			at := &y[(t-t0)*stride+r-lo]
			switch {
			case m.Bits == 8:
				*at = dotQ8Float(w, sc, bi, in.p[x:])
			case in.Form == Float32:
				*at = dotQ4Float(w, sc, bi, in.p[x:])
			default:
				*at = dotQ4Int(w, sc, bi, in.q[t*in.blocks:])
			}
		}
	}
}

// lanes are the running sums of one product.
type lanes [16]float32

// total folds the lanes in halves, as the kernels do.
func (a *lanes) total() float32 {
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			a[i] += a[i+n]
		}
	}
	return a[0]
}

// plus folds both sums into one number.
func (a *lanes) plus(b *lanes) float32 {
	for i := range a {
		a[i] += b[i]
	}
	return a.total()
}

func dotQ4Int(w, sc, bi []byte, q []qblock) float32 {
	var acc lanes
	for g := range len(sc) / 2 {
		b := &q[g/8]
		x := b.code[g%8/2*128+g%2*32:]
		d := int32(0)
		for i, c := range w[g*32 : (g+1)*32] {
			d += int32(c&15)*int32(x[i]) + int32(c>>4)*int32(x[64+i])
		}
		acc[g%8] = fma(bfloat(bi[2*g:]), b.sum[g%8], acc[g%8])
		acc[g%8] = fma(float32(d), bfloat(sc[2*g:])*b.scale[g%8], acc[g%8])
	}
	return acc.total()
}

// dotQ4Float adds weight*x with the weight made first, as the reference does:
// taking the bias out of the sum would lose the digits in which scale*sum(code*x)
// and bias*sum(x) cancel. Even and odd columns have sums of their own.
func dotQ4Float(w, sc, bi []byte, p []float32) float32 {
	var even, odd lanes
	for g := range len(sc) / 2 {
		x := p[g/2*128+g%2*8:]
		s, b := bfloat(sc[2*g:]), bfloat(bi[2*g:])
		for l := range 8 {
			for j := 0; j < 8; j += 2 {
				c := w[g*32+4*l+j/2]
				even[g%2*8+l] = fma(fma(float32(c&15), s, b), x[16*j+l], even[g%2*8+l])
				odd[g%2*8+l] = fma(fma(float32(c>>4), s, b), x[16*j+16+l], odd[g%2*8+l])
			}
		}
	}
	return even.plus(&odd)
}

// dotQ8Float does the same for 8 bits, with runs of 16 columns taking turns.
func dotQ8Float(w, sc, bi []byte, f []float32) float32 {
	var even, odd lanes
	for g := range len(sc) / 2 {
		s, b := bfloat(sc[2*g:]), bfloat(bi[2*g:])
		for i := g * Group; i < (g+1)*Group; i += 32 {
			for l := range even {
				even[l] = fma(fma(float32(w[i+l]), s, b), f[i+l], even[l])
				odd[l] = fma(fma(float32(w[i+16+l]), s, b), f[i+16+l], odd[l])
			}
		}
	}
	return even.plus(&odd)
}
