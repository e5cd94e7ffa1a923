package cpu

import (
	"math"
	"runtime"
)

// Dot is the inner product of a and b.
func (k Kernels) Dot(a, b []float32) float32 {
	n := k.wide(len(a), AVX2)
	s := float32(0)
	if n > 0 {
		s = k.dot(a[:n], b[:n])
	}
	for i := n; i < len(a); i++ {
		s += a[i] * b[i]
	}
	return s
}

// Scores writes the inner product of q with each of the rows, which lie one
// after another, times scale.
func (k Kernels) Scores(out, q, rows []float32, scale float32) {
	if len(out) > 0 && k.wide(len(q), AVX2) == len(q) {
		_ = rows[len(out)*len(q)-1]
		k.scores(out, q, rows, scale)
		return
	}
	for i := range out {
		out[i] = k.Dot(q, rows[i*len(q):(i+1)*len(q)]) * scale
	}
}

// Blend adds to out the rows weighted by p.
func (k Kernels) Blend(out, p, rows []float32) {
	d := len(out)
	if k.wide(d, AVX2) == d {
		k.blend(out, p, rows)
		return
	}
	for i, w := range p {
		for j, v := range rows[i*d : (i+1)*d] {
			out[j] += w * v
		}
	}
}

// AddScaled adds w*x to y.
func (k Kernels) AddScaled(y, x []float32, w float32) {
	n := k.wide(len(y), AVX2)
	if n > 0 {
		k.addScaled(y[:n], x[:n], w)
	}
	for i := n; i < len(y); i++ {
		y[i] += w * x[i]
	}
}

// RMSNorm writes x / sqrt(mean(x*x)+eps) * gain to dst, which may be x.
func (k Kernels) RMSNorm(dst, x, gain []float32, eps float32) {
	s := k.Dot(x, x)
	inv := float32(1 / math.Sqrt(float64(s)/float64(len(x))+float64(eps)))
	for i, v := range x {
		dst[i] = v * inv * gain[i]
	}
}

// L2Norm divides x by sqrt(sum(x*x)+eps) and multiplies with scale.
func (k Kernels) L2Norm(x []float32, eps, scale float32) {
	s := k.Dot(x, x)
	inv := float32(1/math.Sqrt(float64(s)+float64(eps))) * scale
	for i := range x {
		x[i] *= inv
	}
}

// Conv4 writes silu(w0*r0 + w1*r1 + w2*r2 + w3*r3), channel by channel: one time
// step of a causal convolution over four rows. dst may be none of the rows.
func (k Kernels) Conv4(dst []float32, r, w *[4][]float32) {
	n := k.wide(len(dst), AVX512)
	if n > 0 {
		k.conv4(dst[:n], r, w)
	}
	for i := n; i < len(dst); i++ {
		s := float32(0)
		for j := range r {
			s = fma(w[j][i], r[j][i], s)
		}
		dst[i] = Silu(s)
	}
}

// SiluMul writes silu(gate)*x to dst, which may be either.
func (k Kernels) SiluMul(dst, gate, x []float32) {
	n := k.wide(len(dst), AVX512)
	if n > 0 {
		k.siluMul(dst[:n], gate[:n], x[:n])
	}
	for i := n; i < len(dst); i++ {
		dst[i] = Silu(gate[i]) * x[i]
	}
}

// SigmoidMul multiplies x with sigmoid(gate).
func (k Kernels) SigmoidMul(x, gate []float32) {
	n := k.wide(len(x), AVX512)
	if n > 0 {
		k.sigmoidMul(x[:n], gate[:n])
	}
	for i := n; i < len(x); i++ {
		x[i] *= Sigmoid(gate[i])
	}
}

// Exp writes e^(x-top) over x and returns the sum.
func (k Kernels) Exp(x []float32, top float32) float32 {
	n := k.wide(len(x), AVX512)
	s := float32(0)
	if n > 0 {
		s = k.exp(x[:n], top)
	}
	for i := n; i < len(x); i++ {
		x[i] = exp32(x[i] - top)
		s += x[i]
	}
	return s
}

// Sigmoid is 1/(1+e^-x).
func Sigmoid(x float32) float32 { return 1 / (1 + exp32(-x)) }

// Silu is x*sigmoid(x).
func Silu(x float32) float32 { return x / (1 + exp32(-x)) }

func exp32(x float32) float32 { return float32(math.Exp(float64(x))) }

// Read reads b and forgets it, as fast as reading goes.
func (k Kernels) Read(b []byte) {
	if k.read(b) {
		return
	}
	s := uint64(0)
	for ; len(b) >= 8; b = b[8:] {
		s += uint64(b[0]) | uint64(b[7])
	}
	runtime.KeepAlive(s)
}
