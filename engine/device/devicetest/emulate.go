package devicetest

import (
	"testing"

	"weir/engine/device/emulator"
)

// onEmulator runs a test with the checker, and shuffled without; and if it used
// kernels that have a variant for Metal's tensor operations, that variant too.
func onEmulator(t *testing.T, matrix bool, test func(t *testing.T, b *Bench)) {
	t.Helper()
	variants := false
	on := func(name string, o emulator.Options) {
		t.Run(name, func(t *testing.T) {
			d, err := emulator.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, &Bench{TB: t, Device: d})
			variants = variants || d.HasVariant()
		})
	}
	on("checked", emulator.Options{Check: true, Matrix: matrix})
	on("shuffled", emulator.Options{Seed: 7, Matrix: matrix})
	if variants {
		on("tensor", emulator.Options{Check: true, Seed: 5, Tensor: true})
	}
}
