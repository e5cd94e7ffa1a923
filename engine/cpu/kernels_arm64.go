package cpu

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

func best() Level {
	if cpu.ARM64.HasASIMDDP {
		return NEON
	}
	return Plain
}

// mulVector takes what a token spends its time with: 4-bit weights with 8-bit
// activations, and 8-bit weights.
func (k Kernels) mulVector(_ *Panel, y []float32, stride int, m *Matrix, lo, hi int, in *Input, t0, t1 int) bool {
	if k.level != NEON || in.Form == Float32 || m.Bits == 4 && m.Cols%block != 0 {
		return false
	}
	rb, sb := m.rowBytes(), m.scaleBytes()
	rows := 16 // that meet all vectors while they are in the cache
	if t1-t0 == 1 {
		rows = hi - lo
	}
	for r := lo; r < hi; r += rows {
		n := min(rows, hi-r)
		w, sc, bi := &m.W[r*rb], &m.Scales[r*sb], &m.Biases[r*sb]
		for t := t0; t < t1; {
			at := &y[(t-t0)*stride+r-lo]
			switch {
			case m.Bits == 8:
				q8neonx1(w, sc, bi, m.Cols/Group, 0, n, unsafe.Pointer(&in.p[t*in.stride]), 0, at, 0)
				t++
			case t1-t >= 4:
				q4neonx4(w, sc, bi, m.Cols/block, 0, n, unsafe.Pointer(&in.q[t*in.blocks]),
					unsafe.Sizeof(qblock{})*uintptr(in.blocks), at, uintptr(4*stride))
				t += 4
			default:
				q4neonx1(w, sc, bi, m.Cols/block, 0, n, unsafe.Pointer(&in.q[t*in.blocks]), 0, at, 0)
				t++
			}
		}
	}
	return true
}

func (k Kernels) hasDelta(cols int) bool { return k.level == NEON && cols%16 == 0 }

func (k Kernels) delta(out, s, key, q, v []float32, decay, beta float32) {
	for c := 0; c < len(v); c += 16 {
		deltaNEON(&s[c], uintptr(4*len(v)), &key[0], &q[0], len(key), &v[c], &out[c], decay, beta)
	}
}

func pause() {}
