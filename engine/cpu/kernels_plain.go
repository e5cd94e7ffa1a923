//go:build !amd64

package cpu

// wide is zero: these are operations that only amd64 has vector kernels for.
func (k Kernels) wide(int, Level) int { return 0 }

func (k Kernels) quantize(f []float32, q []qblock, groups int) {
	quantizePlain(f, q, groups)
}

// The rest is never reached, since wide is zero.

func (k Kernels) dot(a, b []float32) float32 { panic("cpu: no vector kernels") }

func (k Kernels) scores(out, q, rows []float32, scale float32) { panic("cpu: no vector kernels") }
func (k Kernels) blend(out, p, rows []float32)                 { panic("cpu: no vector kernels") }

func (k Kernels) scoresHalf(_, _ []float32, _ int, _ []uint16, _, _, _ int, _ float32) {
	panic("cpu: no vector kernels")
}

func (k Kernels) blendHalf(_, _ []float32, _ []uint16, _, _, _ int) { panic("cpu: no vector kernels") }

func (k Kernels) addScaled(y, x []float32, w float32) { panic("cpu: no vector kernels") }

func (k Kernels) conv4(dst []float32, r, w *[4][]float32) { panic("cpu: no vector kernels") }

func (k Kernels) siluMul(dst, gate, x []float32) { panic("cpu: no vector kernels") }

func (k Kernels) sigmoidMul(x, gate []float32) { panic("cpu: no vector kernels") }

func (k Kernels) exp(x []float32, top float32) float32 { panic("cpu: no vector kernels") }

func (k Kernels) read([]byte) bool { return false }
