package emulator_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/device/emulator"
)

const numbersText = `
kernel void convert(
    device const float *x [[buffer(0)]],
    device half *h [[buffer(1)]],
    device bfloat *b [[buffer(2)]],
    device float *back [[buffer(3)]],
    uint i [[thread_position_in_grid]]) {
  h[i] = half(x[i]);
  b[i] = bfloat(x[i]);
  back[i] = float(h[i]);
}
kernel void widen(
    device const half *h [[buffer(0)]],
    device const bfloat *b [[buffer(1)]],
    device float *x [[buffer(2)]],
    device float *y [[buffer(3)]],
    uint i [[thread_position_in_grid]]) {
  x[i] = float(h[i]);
  y[i] = float(b[i]);
}
`

// fromHalf is IEEE's definition of 16-bit numbers.
func fromHalf(h uint16) float64 {
	sign := 1.0
	if h>>15 != 0 {
		sign = -1
	}
	exponent, fraction := int(h>>10&31), float64(h&0x3ff)
	switch {
	case exponent == 31 && fraction != 0:
		return math.NaN()
	case exponent == 31:
		return sign * math.Inf(1)
	case exponent == 0:
		return sign * math.Ldexp(fraction, -24)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// toHalf rounds to the nearest, of two to the even one, by bisection: another
// way than the headers'.
func toHalf(f float64) uint16 {
	var sign uint16
	if math.Signbit(f) {
		sign, f = 0x8000, -f
	}
	if math.IsNaN(f) {
		return sign | 0x7e00
	}
	if f >= 65520 {
		return sign | 0x7c00
	}
	low, high := uint16(0), uint16(0x7c00)
	for high-low > 1 {
		if mid := (low + high) / 2; fromHalf(mid) <= f {
			low = mid
		} else {
			high = mid
		}
	}
	above := 65536.0
	if high != 0x7c00 {
		above = fromHalf(high)
	}
	down, up := f-fromHalf(low), above-f
	if down < up || down == up && low&1 == 0 {
		return sign | low
	}
	return sign | high
}

func toBfloat(f float64) uint16 {
	if math.IsNaN(f) {
		return uint16(math.Float32bits(float32(f))>>16) | 0x40
	}
	bits := math.Float32bits(float32(f))
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// What a kernel rounds to 16 bits is rounded as IEEE says, on every compiler:
// subnormal numbers, ties, overflow, what is not a number.
func TestRounding(t *testing.T) {
	t.Parallel()
	const n = 1 << 16
	r := rand.New(rand.NewPCG(9, 9))
	x := make([]float32, n)
	for i := range x {
		switch tie := uint16(r.IntN(0x7bff)); i % 5 {
		case 0: // any exponent that half has, or nearly
			x[i] = math.Float32frombits(r.Uint32()&^0x7f800000 | uint32(100+r.IntN(45))<<23)
		case 1: // numbers that half has
			x[i] = float32(fromHalf(uint16(r.IntN(0x10000))))
		case 2: // half way between two
			x[i] = float32((fromHalf(tie) + fromHalf(tie+1)) / 2)
		case 3: // small
			x[i] = float32(r.NormFloat64() * 1e-6)
		case 4: // anything
			x[i] = math.Float32frombits(r.Uint32())
		}
	}
	for _, cxx := range compilers(t) {
		d := open(t, numbersText, emulator.Options{Compiler: cxx})
		h, b, back := upload(t, d, make([]uint16, n)), upload(t, d, make([]uint16, n)), upload(t, d, make([]float32, n))
		if err := play(d, launch("convert", n/256, 256, upload(t, d, x), h, b, back)); err != nil {
			t.Fatal(err)
		}
		hs, bs, backs := download[uint16](t, d, h, n), download[uint16](t, d, b, n), download[float32](t, d, back, n)
		for i, f := range x {
			wantHalf, wantBfloat := toHalf(float64(f)), toBfloat(float64(f))
			if math.IsNaN(float64(f)) {
				if hs[i]&0x7c00 != 0x7c00 || hs[i]&0x3ff == 0 || bs[i]&0x7f80 != 0x7f80 || bs[i]&0x7f == 0 {
					t.Fatalf("%s: not a number became %04x and %04x", cxx, hs[i], bs[i])
				}
				continue
			}
			if hs[i] != wantHalf || bs[i] != wantBfloat || float64(backs[i]) != fromHalf(wantHalf) {
				t.Fatalf("%s: %g (%08x): half %04x, want %04x; bfloat %04x, want %04x; back %g", cxx, f, math.Float32bits(f), hs[i], wantHalf, bs[i], wantBfloat, backs[i])
			}
		}
	}
}

// Every number of 16 bits is read as what it is.
func TestWidening(t *testing.T) {
	t.Parallel()
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	d := open(t, numbersText, emulator.Options{})
	in, h, b := upload(t, d, all), floats(t, d, len(all)), floats(t, d, len(all))
	if err := play(d, launch("widen", len(all)/256, 256, in, in, h, b)); err != nil {
		t.Fatal(err)
	}
	hs, bs := download[float32](t, d, h, len(all)), download[uint32](t, d, b, len(all))
	for i := range all {
		if want := fromHalf(uint16(i)); float64(hs[i]) != want && !(math.IsNaN(want) && math.IsNaN(float64(hs[i]))) {
			t.Fatalf("half %04x is %g, want %g", i, hs[i], want)
		}
		if bs[i] != uint32(i)<<16 {
			t.Fatalf("bfloat %04x is %08x", i, bs[i])
		}
	}
}
