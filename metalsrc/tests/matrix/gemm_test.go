package matrix_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

var gemmShapes = []shape{
	{m: 1, n: 1, k: 64, xs: 64, ys: 1},        // the least
	{m: 70, n: 65, k: 128, xs: 136, ys: 67},   // a row, a column over; odd strides
	{m: 64, n: 64, k: 64, xs: 64, ys: 64},     // a tile exactly
	{m: 33, n: 130, k: 192, xs: 192, ys: 131}, // k not a multiple of 128
	{m: 300, n: 12352, k: 2048, xs: 2048, ys: 12352, real: true},
	{m: 257, n: 2048, k: 4096, xs: 4096, ys: 2048, real: true},
	{m: 64, n: 8192, k: 2048, xs: 2048, ys: 12352, real: true},
}

// products are the kernels of a product by what they are given: the tiles, and
// the skinny ones.
type products struct {
	name            string
	rounded         bool
	store, f32, add func(x kernels.Rows, w kernels.Matrix, y kernels.Rows, m int) device.Command
	swiglu          func(x kernels.Rows, g, u kernels.Matrix, y kernels.Rows, m int) device.Command
}

func tileProducts(t kernels.Tile) products {
	return products{
		t.String(), true,
		func(x kernels.Rows, w kernels.Matrix, y kernels.Rows, m int) device.Command {
			return kernels.QgemmStore(t, x, w, y, m)
		},
		func(x kernels.Rows, w kernels.Matrix, y kernels.Rows, m int) device.Command {
			return kernels.QgemmStoreF32(t, x, w, y, m)
		},
		func(x kernels.Rows, w kernels.Matrix, y kernels.Rows, m int) device.Command {
			return kernels.QgemmAdd(t, x, w, y, m)
		},
		func(x kernels.Rows, g, u kernels.Matrix, y kernels.Rows, m int) device.Command {
			return kernels.QgemmSwiGLU(t, x, g, u, y, m)
		},
	}
}

func skinnyProducts() products {
	return products{"skinny", false, kernels.QskinnyStore, kernels.QskinnyStoreF32, kernels.QskinnyAdd, kernels.QskinnySwiGLU}
}

func TestProducts(t *testing.T) {
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for _, tile := range kernels.Tiles(b.Device.Caps()) {
			if !tile.Matrix() {
				testProducts(t, b, tileProducts(tile), gemmShapes)
			}
		}
	})
}

func TestMatrixProducts(t *testing.T) {
	devicetest.EachMatrix(t, func(t *testing.T, b *devicetest.Bench) {
		shapes := gemmShapes
		if !b.Fast() { // where a product of 16 by 8 takes a fiber's switch for each lane
			shapes = []shape{{m: 70, n: 65, k: 192, xs: 200, ys: 67}}
		}
		for _, tile := range kernels.Tiles(b.Device.Caps()) {
			if tile.Matrix() {
				testProducts(t, b, tileProducts(tile), shapes)
			}
		}
	})
}

// The largest product of a prompt, with the tile that is chosen for it.
func TestLargestProduct(t *testing.T) {
	devicetest.EachMatrix(t, func(t *testing.T, b *devicetest.Bench) {
		s := shape{m: 4096, n: 12352, k: 2048, xs: 2048, ys: 12352, real: true}
		if !b.Fast() {
			s = shape{m: 130, n: 5, k: 64, xs: 64, ys: 5}
		}
		testProducts(t, b, tileProducts(kernels.DenseTile(b.Device.Caps(), kernels.Matrix{Rows: 4096}, 4096)), []shape{s})
	})
}

func TestSkinnyProducts(t *testing.T) {
	var shapes []shape
	for _, m := range []int{1, 2, 4, 5, 8, 9, 16} {
		shapes = append(shapes, shape{m: m, n: 21, k: 64 * m, xs: 64*m + 8, ys: 22})
		shapes = append(shapes, shape{m: m, n: 12352, k: 2048, xs: 2048, ys: 12352, real: true})
	}
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) { testProducts(t, b, skinnyProducts(), shapes) })
}

func testProducts(t *testing.T, b *devicetest.Bench, p products, shapes []shape) {
	for _, s := range shapes {
		if s.real && !b.Fast() {
			continue
		}
		t.Run(fmt.Sprintf("%s/%dx%dx%d", p.name, s.m, s.n, s.k), func(t *testing.T) {
			testProduct(t, &devicetest.Bench{TB: t, Device: b.Device}, p, s)
		})
	}
}

// outside marks what a kernel must leave alone.
const outside = 0x4d4d

func testProduct(t *testing.T, b *devicetest.Bench, p products, s shape) {
	r := rand.New(rand.NewPCG(uint64(s.m), uint64(s.n)))
	raw, x := bfRows(r, s.m, s.k, s.xs)
	w, up := newQuantMatrix(r, s.n, s.k, 4), newQuantMatrix(r, s.n, s.k, 4)
	dw, du, dx := w.on(b, s.n), up.on(b, s.n), view(devicetest.In(b, raw), s.xs)
	marked := make([]uint16, s.m*s.ys)
	for i := range marked {
		marked[i] = outside
	}
	before := f32Rows(r, s.m, s.ys, s.ys)
	store, swiglu := view(devicetest.In(b, marked), s.ys), view(devicetest.In(b, marked), s.ys)
	f32, add := view(devicetest.In(b, before), s.ys), view(devicetest.In(b, before), s.ys)
	b.Run(p.store(dx, dw, store, s.m), p.f32(dx, dw, f32, s.m), p.add(dx, dw, add, s.m), p.swiglu(dx, dw, du, swiglu, s.m))
	gotStore, gotSwiglu := devicetest.Out[uint16](b, store.Data, len(marked)), devicetest.Out[uint16](b, swiglu.Data, len(marked))
	gotF32, gotAdd := devicetest.Out[float32](b, f32.Data, len(before)), devicetest.Out[float32](b, add.Data, len(before))

	const half = 1.0 / 256 // of a bfloat's last place, relative
	sample(s.m*s.n, 3000, func(i int) {
		row, col := i/s.n, i%s.n
		at := row*s.ys + col
		want := w.dot(col, x[row], p.rounded)
		near(t, "store_f32", i, float64(gotF32[at]), want, 2e-5)
		near(t, "store", i, fromBF16(gotStore[at]), want, half)
		near(t, "add", i, float64(gotAdd[at]), float64(before[at])+want, 2e-5)
		near(t, "swiglu", i, fromBF16(gotSwiglu[at]), silu(want)*up.dot(col, x[row], p.rounded), half)
	})
	for i := range marked {
		if i%s.ys >= s.n && (gotStore[i] != outside || gotSwiglu[i] != outside || gotF32[i] != before[i] || gotAdd[i] != before[i]) {
			t.Fatalf("element %d, beyond the result, was written", i)
		}
	}
}
