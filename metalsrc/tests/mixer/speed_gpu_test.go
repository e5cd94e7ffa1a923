//go:build gpu && linux && (amd64 || arm64)

package mixer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

// What follows needs an NVIDIA GPU, and is built by the tag gpu:
//
//	WEIR_DEVICE=cuda mixer.test -test.run ^$ -test.bench . -test.benchtime 1x

// timed reports the median of five rounds of each command, by itself and from
// memory, and of all together.
func timed(b *testing.B, d device.Device, flops float64, c []device.Command) {
	b.Helper()
	var all []time.Duration
	var err error
	for b.Loop() {
		if all, err = d.(device.Profiler).ProfileCold(&device.Stream{Commands: c}, 5); err != nil {
			b.Fatal(err)
		}
	}
	total := time.Duration(0)
	for i, t := range all {
		total += t
		b.ReportMetric(t.Seconds()*1e6, c[i].Kernel+"-us")
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(total.Seconds()*1e6, "us")
	b.ReportMetric(flops/total.Seconds()/1e12, "TFLOP/s")
}

// filled is a buffer of n numbers between 1/32 and 1/8 of either sign: bfloats,
// or where bytes is 4 floats.
func filled(b *devicetest.Bench, n, bytes int) device.Arg {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	v := make([]uint16, n*bytes/2)
	for i := range v {
		v[i] = uint16(r.Uint32())&0x80ff | 0x3d00
	}
	return devicetest.In(b, v)
}

func BenchmarkDelta(b *testing.B) {
	d := devicetest.GPU(b)
	for _, rows := range []int{16, 64, 256, 1024, 4096} {
		for _, matrix := range []bool{false, true} {
			s := kernels.DeltaShape{Rows: rows, KeyHeads: 16, ValueHeads: 32, Dim: 128, Matrix: matrix}
			ch, values := s.Channels(), s.ValueHeads*s.Dim
			stride := ch + values + 2*s.ValueHeads
			proj := filled(d, rows*stride, 2)
			at := func(column int) kernels.MixerRows {
				from := int64(2 * column)
				return kernels.MixerRows{Arg: device.Part(proj.Buf, from, int64(2*rows*stride)-from), Stride: stride}
			}
			in := kernels.DeltaInput{
				QKV: at(0), Z: at(ch), B: at(ch + values), A: at(ch + values + s.ValueHeads),
				Taps: filled(d, 4*ch, 4), Decay: devicetest.In(d, slices.Repeat([]float32{0.1}, s.ValueHeads)), Dt: filled(d, s.ValueHeads, 4),
				Gain: filled(d, s.Dim, 4), Eps: 1e-6, Ring: filled(d, 4*ch, 4), State: filled(d, values*s.Dim, 4),
				Step: devicetest.In(d, []uint32{0, 64, uint32(rows), 0}), X: filled(d, rows*values, 2), StrideX: values,
			}
			tmp := s.Scratch(devicetest.In(d, make([]uint8, s.ScratchSize())))
			b.Run(fmt.Sprintf("%d/matrix=%v", rows, matrix), func(b *testing.B) {
				timed(b, d.Device, float64(rows)*float64(values)*float64(6*s.Dim+6*64), s.Delta(in, tmp))
			})
		}
	}
}

func BenchmarkAttend(b *testing.B) {
	d := devicetest.GPU(b)
	const positions = 131072
	keys, values := filled(d, positions*2*256, 2), filled(d, positions*2*256, 2)
	for _, c := range []struct {
		rows, pos, units int
		portable         bool
	}{
		{4096, 0, 0, true},
		{4096, 0, 132, false},
		{4096, 28672, 132, false},
		{4096, 126976, 132, false},
		{1024, 0, 132, false},
		{1024, 32768, 132, false},
		{256, 32768, 0, false}, // beside the next: what cutting the keys gives
		{256, 32768, 132, false},
		{64, 1024, 132, false},
		{64, 131008, 132, false},
		{16, 131056, 132, false},
		{16, 131056, 132, true},
	} {
		s := kernels.AttendShape{Rows: c.rows, Heads: 16, KVHeads: 2, Dim: 256, Rotary: 64, Matrix: !c.portable, Units: c.units}
		const stride = 9216
		proj := filled(d, c.rows*stride, 2)
		at := func(column int) kernels.MixerRows {
			from := int64(2 * column)
			return kernels.MixerRows{Arg: device.Part(proj.Buf, from, int64(2*c.rows*stride)-from), Stride: stride}
		}
		in := kernels.AttendInput{
			QGate: at(0), K: at(8192), V: at(8704), GainQ: filled(d, 256, 2), GainK: filled(d, 256, 2), Eps: 1e-6,
			Rope: filled(d, c.rows*64, 4), Step: devicetest.In(d, []uint32{0, uint32(c.pos), uint32(c.rows), 0}),
			Keys: keys, Values: values, Q: devicetest.In(d, make([]uint8, s.ScratchSize())),
			X: filled(d, c.rows*4096, 2), StrideX: 4096,
		}
		b.Run(fmt.Sprintf("%d-at-%d/units=%d,matrix=%v", c.rows, c.pos, c.units, s.Matrix), func(b *testing.B) {
			timed(b, d.Device, 4*4096*float64(c.rows)*(float64(c.pos)+float64(c.rows)/2), s.Attend(in))
		})
	}
}
