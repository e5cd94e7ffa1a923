package engine

import (
	"math"

	"weir/engine/cpu"
)

// MLX keeps activations in bfloat16 between its kernels. With [Options.MLX] the
// pass rounds them at the same places; the sums within a kernel stay float32,
// as MLX's do. Weights are not rounded before they meet an activation, which is
// how MLX decodes; for a prompt it rounds them first, so that logits of a long
// prompt may differ in the last bits.

// round rounds x in place, if the engine rounds at all.
func (s *step) round(x []float32) {
	if s.rounds {
		cpu.Round(x)
	}
}

func rounded(x float32) float32 {
	v := [1]float32{x}
	cpu.Round(v[:])
	return v[0]
}

// rms is the norm of x with a gain, to dst, which may be x. MLX rounds before
// the gain and after it.
func (s *step) rms(dst, x, gain []float32) {
	if !s.rounds {
		s.k.RMSNorm(dst, x, gain, s.dims.eps)
		return
	}
	sum := s.k.Dot(x, x)
	inv := float32(1 / math.Sqrt(float64(sum)/float64(len(x))+float64(s.dims.eps)))
	for i, v := range x {
		dst[i] = v * inv
	}
	cpu.Round(dst)
	for i, g := range gain {
		dst[i] *= g
	}
	cpu.Round(dst)
}

// unit makes x a vector of length scale, as queries and keys of the delta rule
// are made. MLX norms by the root of the mean square, with that norm's eps.
func (s *step) unit(x []float32, scale float32) {
	if !s.rounds {
		s.k.L2Norm(x, l2eps, scale)
		return
	}
	sum := s.k.Dot(x, x)
	inv := float32(1 / math.Sqrt(float64(sum)/float64(len(x))+mlxEps))
	for i := range x {
		x[i] *= inv
	}
	cpu.Round(x)
	by := rounded(scale * float32(1/math.Sqrt(float64(len(x)))))
	for i := range x {
		x[i] *= by
	}
	cpu.Round(x)
}

const mlxEps = 1e-6

// siluMul writes silu(gate)*x to dst.
func (s *step) siluMul(dst, gate, x []float32) {
	if !s.rounds {
		s.k.SiluMul(dst, gate, x)
		return
	}
	for i, g := range gate {
		dst[i] = rounded(cpu.Silu(g)) * x[i]
	}
	cpu.Round(dst)
}

// taps is one time step of the convolution, with its silu.
func (s *step) taps(dst []float32, rows, taps *[convTaps][]float32) {
	if !s.rounds {
		s.k.Conv4(dst, rows, taps)
		return
	}
	for i := range dst {
		sum := float32(0)
		for j := range rows {
			sum += taps[j][i] * rows[j][i]
		}
		sum = rounded(sum)
		dst[i] = sum * rounded(cpu.Sigmoid(sum))
	}
	cpu.Round(dst)
}

// roundedGates is gates with MLX's roundings.
func (l *deltaWeights) roundedGates(n int, a, b float32) (logDecay, beta float32) {
	x := rounded(a + l.dtBias[n])
	inner := rounded(float32(math.Exp(float64(x))))
	soft := rounded(float32(math.Log1p(float64(inner))))
	if x > 20 { // where e^x would leave the range
		soft = x
	}
	return -l.decay[n] * soft, rounded(cpu.Sigmoid(b))
}

// roundedChoice makes router logits probabilities, which MLX rounds before it
// picks.
func (s *step) roundedChoice(probs []float32) {
	top := probs[0]
	for _, x := range probs {
		top = max(top, x)
	}
	sum := s.k.Exp(probs, top)
	for i := range probs {
		probs[i] /= sum
	}
	cpu.Round(probs)
}

// roundedWeights makes the probabilities of the picked ones sum to one.
func (s *step) roundedWeights(weight []float32) {
	sum := float32(0)
	for _, p := range weight {
		sum += p
	}
	sum = rounded(sum)
	for i := range weight {
		weight[i] /= sum
	}
	cpu.Round(weight)
}

// combine ends the experts of the rows lo to hi of a layer: the sum of the
// chosen ones, then the shared one, then the residual stream, each rounded.
func (s *step) combine(lo, hi int) {
	H := s.dims.hidden
	for t := range s.n {
		mix, side, h := s.mix[t*H+lo:t*H+hi], s.side[t*H+lo:t*H+hi], s.row(t)[lo:hi]
		cpu.Round(mix)
		for i := range mix {
			mix[i] += side[i]
		}
		cpu.Round(mix)
		for i := range mix {
			h[i] += mix[i]
		}
		cpu.Round(h)
		clear(mix)
		clear(side)
	}
}
