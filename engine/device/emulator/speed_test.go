package emulator_test

import (
	"testing"

	"weir/engine/device"
	"weir/engine/device/emulator"
)

const addText = `
kernel void add_one(
    device float *y [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = y[i] + 1.0f;
}
kernel void halves(
    device float *y [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = y[i] + simd_sum(1.0f);
}
`

// What a launch costs beside the work of its threads.
func BenchmarkLaunch(b *testing.B) {
	for name, o := range map[string]emulator.Options{"plain": {}, "shuffled": {Seed: 7}, "checked": {Check: true}} {
		for _, kernel := range []string{"add_one", "halves"} {
			b.Run(name+"/"+kernel, func(b *testing.B) {
				d := open(b, addText, o)
				var s device.Stream
				const n = 100
				for range n {
					s.Add(device.Command{Kernel: kernel, Groups: [3]int{1, 1, 1}, Threads: [3]int{32, 1, 1}, Args: []device.Arg{floats(b, d, 32)}})
				}
				p, err := d.Compile(&s)
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					r, err := p.Start()
					if err != nil {
						b.Fatal(err)
					}
					if _, err := r.Wait(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/launch")
			})
		}
	}
}
