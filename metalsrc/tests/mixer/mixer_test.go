package mixer_test

import (
	"bytes"
	"math"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

// toBF rounds to bfloat16.
func toBF(x float64) uint16 {
	b := math.Float32bits(float32(x))
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func fromBF(b uint16) float64 { return float64(math.Float32frombits(uint32(b) << 16)) }

func narrow(v []float64) []uint16 {
	n := make([]uint16, len(v))
	for i, x := range v {
		n[i] = toBF(x)
	}
	return n
}

func narrow32(v []float64) []float32 {
	n := make([]float32, len(v))
	for i, x := range v {
		n[i] = float32(x)
	}
	return n
}

// wide is what a device holds, as float64: uint16 is bfloat16.
func wide[T uint16 | float32](v []T) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		switch x := any(x).(type) {
		case uint16:
			w[i] = fromBF(x)
		case float32:
			w[i] = float64(x)
		}
	}
	return w
}

// nans is memory of which every number of any size is no number: scratch may
// hold anything.
func nans(n int64) []uint8 { return bytes.Repeat([]uint8{0xff}, int(n)) }

// rowsOn puts rows on a device; the function it returns is the rows from a
// column on.
func rowsOn(b *devicetest.Bench, v []float64, stride int, f32 bool) func(int) kernels.MixerRows {
	size, buf := 2, device.Arg{}
	if f32 {
		size, buf = 4, devicetest.In(b, narrow32(v))
	} else {
		buf = devicetest.In(b, narrow(v))
	}
	return func(column int) kernels.MixerRows {
		at := int64(column * size)
		return kernels.MixerRows{Arg: device.Part(buf.Buf, at, buf.Buf.Size()-at), Stride: stride, Float32: f32}
	}
}

// near compares: each number may be off by abs times the root mean square of
// all, and by rel times its own size.
func near(t *testing.T, what string, got, want []float64, abs, rel float64) {
	t.Helper()
	sum, worst, at := 0.0, 0.0, 0
	for _, w := range want {
		sum += w * w
	}
	rms := math.Sqrt(sum / float64(len(want)))
	for i, w := range want {
		d := math.Abs(got[i]-w) - rel*math.Abs(w)
		if math.IsNaN(d) {
			t.Errorf("%s: number %d is %v, want %v", what, i, got[i], w)
			return
		}
		if d > worst {
			worst, at = d, i
		}
	}
	if worst > abs*rms {
		t.Errorf("%s: number %d is %v, want %v: off by %.2e of the size of all, beside %.2e of its own; at most %.2e", what, at, got[at], want[at], worst/rms, rel, abs)
		return
	}
	t.Logf("%s: off by %.2e", what, worst/rms)
}

// drift compares the root mean squares of difference and size.
func drift(t *testing.T, what string, got, want []float64, most float64) {
	t.Helper()
	sum, off := 0.0, 0.0
	for i, w := range want {
		sum, off = sum+w*w, off+(got[i]-w)*(got[i]-w)
	}
	r := math.Sqrt(off / sum)
	t.Logf("%s: drifts by %.2e", what, r)
	if !(r <= most) {
		t.Errorf("%s drifts by %.2e of its size, at most %.2e", what, r, most)
	}
}
