package emulator_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/engine/device"
	"weir/engine/device/emulator"
	"weir/metalsrc"
)

// Both variants of the tile product give the right numbers with every
// compiler, however the elements of a cooperative tensor are scattered over
// the threads.
func TestTensorVariant(t *testing.T) {
	t.Parallel()
	units, err := metalsrc.Units()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(units, func(u metalsrc.Unit) bool { return u.Name == "selftest" })
	for _, cxx := range compilers(t) {
		for _, o := range []emulator.Options{{}, {Tensor: true}, {Tensor: true, Seed: 1, Check: true}, {Tensor: true, Seed: 5}, {Tensor: true, Seed: 40}} {
			o.Compiler, o.Units = cxx, units[i:i+1]
			d, err := emulator.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			testTile(t, d)
			if !d.HasVariant() {
				t.Error("the unit has a variant, and the device does not know")
			}
			if d.Caps().Tensor != o.Tensor {
				t.Error("the device does not say which variant it has")
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func testTile(t *testing.T, d device.Device) {
	t.Helper()
	const m, n, k = 70, 33, 77
	r := rand.New(rand.NewPCG(1, 2))
	x, w := make([]uint16, m*k), make([]uint16, n*k)
	for _, v := range [][]uint16{x, w} {
		for i := range v {
			v[i] = uint16(math.Float32bits(float32(r.NormFloat64())) >> 16)
		}
	}
	number := func(v uint16) float64 { return float64(math.Float32frombits(uint32(v) << 16)) }
	y := upload(t, d, make([]uint16, m*n))
	c := device.Command{
		Kernel: "gemm_tile_bf16", Groups: [3]int{(n + 31) / 32, (m + 63) / 64, 1}, Threads: [3]int{128, 1, 1},
		Args: []device.Arg{upload(t, d, x), upload(t, d, w), y, device.Value([3]uint32{m, n, k})},
	}
	if err := play(d, c); err != nil {
		t.Fatal(err)
	}
	for i, got := range download[uint16](t, d, y, m*n) {
		var want, size float64
		for j := range k {
			v := number(x[i/n*k+j]) * number(w[i%n*k+j])
			want += v
			size += math.Abs(v)
		}
		if diff := math.Abs(number(got) - want); !(diff <= math.Abs(want)/256+1e-6*size) {
			t.Fatalf("got %v at %d, want %v", number(got), i, want)
		}
	}
}
