package kernels

import "math"

// RopeTables are the cosines and sines that [RopeRows] adds angles of:
// hi[i][pair] at position 512*i and lo[i][pair] at position i, for i below 512.
func RopeTables(pairs int, theta float64) (hi, lo []float32) {
	hi, lo = make([]float32, 512*pairs*2), make([]float32, 512*pairs*2)
	for i := range 512 {
		for j := range pairs {
			freq := math.Pow(theta, -float64(j)/float64(pairs))
			sin, cos := math.Sincos(float64(512*i) * freq)
			hi[(i*pairs+j)*2], hi[(i*pairs+j)*2+1] = float32(cos), float32(sin)
			sin, cos = math.Sincos(float64(i) * freq)
			lo[(i*pairs+j)*2], lo[(i*pairs+j)*2+1] = float32(cos), float32(sin)
		}
	}
	return hi, lo
}
