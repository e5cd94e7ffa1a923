//go:build !amd64 && !arm64

package cpu

func best() Level { return Plain }

func (k Kernels) mulVector(*Panel, []float32, int, *Matrix, int, int, *Input, int, int) bool {
	return false
}

func (k Kernels) hasDelta(int) bool { return false }

func (k Kernels) delta(_, _, _, _, _ []float32, _, _ float32) { panic("cpu: no vector kernels") }

func pause() {}
