//go:build darwin || linux

package metal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
	"unsafe"

	"weir/engine/device"
	"weir/metalsrc"
)

// tileKernel multiplies through the abstraction over both matrix units.
const tileKernel = "gemm_tile_bf16"

// Result is one row of the self-test.
type Result struct {
	Variant string // "portable" or "tensor"
	Rows    int
	Took    time.Duration
	Err     error
}

// chooseVariant decides whether kernels use tensor operations: the GPU has the
// units for them, they compile, and they give the right numbers. Apple's
// compiler has taken wrong ones without a word.
func (d *Device) chooseVariant() error {
	u, ok := d.selftestUnit()
	if !ok {
		return nil // a test's own kernels
	}
	for _, r := range d.selftest(u, false) {
		if r.Err != nil {
			return fmt.Errorf("self-test of %s: %w", d.caps.Name, r.Err)
		}
	}
	if !d.hasTensorUnits() {
		return nil
	}
	for _, r := range d.selftest(u, true) {
		if r.Err != nil {
			d.log.Warn("tensor operations are not used", "device", d.caps.Name, "err", r.Err)
			return nil
		}
	}
	d.caps.Tensor = true
	return nil
}

func (d *Device) hasTensorUnits() bool {
	return d.o.is(d.dev, "supportsFamily:", familyApple10) && d.o.is(d.dev, "supportsFamily:", familyMetal4)
}

func (d *Device) selftestUnit() (metalsrc.Unit, bool) {
	k, ok := d.kernels[tileKernel]
	if !ok {
		return metalsrc.Unit{}, false
	}
	return d.units[k.unit], true
}

// selftest multiplies matrices of several heights, and an odd depth, with one
// variant, up to the first that is wrong.
func (d *Device) selftest(u metalsrc.Unit, tensor bool) []Result {
	name := "portable"
	if tensor {
		name = "tensor"
	}
	lib, err := d.compileUnit(u, tensor)
	if err != nil {
		return []Result{{Variant: name, Err: err}}
	}
	defer d.o.release(lib)
	p, err := d.newPipeline(lib, tileKernel, 128)
	if err != nil {
		return []Result{{Variant: name, Err: err}}
	}
	defer d.o.release(p.state)
	var out []Result
	for _, m := range []int{1, 8, 9, 64, 100} {
		took, err := d.testProduct(p, m, 33, 77)
		if err != nil {
			err = fmt.Errorf("%s product of %d rows: %w", name, m, err)
		}
		out = append(out, Result{name, m, took, err})
		if err != nil {
			break
		}
	}
	return out
}

// testProduct multiplies random matrices and compares with sums in float64.
func (d *Device) testProduct(p pipeline, m, n, k int) (time.Duration, error) {
	r := rand.New(rand.NewPCG(uint64(m), uint64(k)))
	x, w, y := randomBF16(r, m*k), randomBF16(r, n*k), make([]uint16, m*n)
	var bufs []device.Arg
	for _, v := range [][]uint16{x, w, y} {
		b, err := d.Alloc(int64(2 * len(v)))
		if err != nil {
			return 0, err
		}
		defer b.Free()
		copy(b.Bytes(), bytesOf(v))
		bufs = append(bufs, device.Whole(b))
	}
	s := &device.Stream{}
	s.Add(device.Command{
		Kernel: tileKernel, Groups: [3]int{(n + 31) / 32, (m + 63) / 64, 1}, Threads: [3]int{128, 1, 1},
		Args: append(slices.Clone(bufs), device.Value([3]uint32{uint32(m), uint32(n), uint32(k)})),
	})
	prog, err := d.record(s, []bool{false}, map[string]pipeline{tileKernel: p})
	if err != nil {
		return 0, err
	}
	run, err := prog.Start()
	if err != nil {
		return 0, err
	}
	took, err := run.Wait()
	if err != nil {
		return 0, err
	}
	copy(bytesOf(y), bufs[2].Buf.Bytes())
	return took, compareProduct(x, w, y, m, n, k)
}

// compareProduct allows the rounding of a result to bfloat16, and float32 sums
// in any order.
func compareProduct(x, w, y []uint16, m, n, k int) error {
	for i := range m * n {
		var want, size float64
		for j := range k {
			v := fromBF16(x[i/n*k+j]) * fromBF16(w[i%n*k+j])
			want += v
			size += math.Abs(v)
		}
		got := fromBF16(y[i])
		if diff := math.Abs(got - want); !(diff <= math.Abs(want)/256+1e-5*size) {
			return fmt.Errorf("%d columns, depth %d: %g in place of %g at row %d, column %d", n, k, got, want, i/n, i%n)
		}
	}
	return nil
}

func randomBF16(r *rand.Rand, n int) []uint16 {
	v := make([]uint16, n)
	for i := range v {
		v[i] = uint16(math.Float32bits(float32(r.NormFloat64())) >> 16)
	}
	return v
}

func fromBF16(v uint16) float64 { return float64(math.Float32frombits(uint32(v) << 16)) }

func bytesOf(v []uint16) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 2*len(v))
}
