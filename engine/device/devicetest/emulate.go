package devicetest

import (
	"errors"
	"os"
	"testing"

	"weir/engine/device/emulator"
)

// Emulator opens an emulator that is closed when the test ends. Without a C++
// compiler the test is skipped, but not in CI.
func Emulator(tb testing.TB, o emulator.Options) *emulator.Device {
	tb.Helper()
	d, err := emulator.Open(o)
	if errors.Is(err, emulator.ErrNoCompiler) && os.Getenv("CI") == "" {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

// onEmulator runs a test with the checker, and shuffled without; and if it used
// kernels that have a variant for Metal's tensor operations, that variant too.
func onEmulator(t *testing.T, matrix bool, test func(t *testing.T, b *Bench)) {
	t.Helper()
	variants := false
	on := func(name string, o emulator.Options) {
		t.Run(name, func(t *testing.T) {
			d := Emulator(t, o)
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
