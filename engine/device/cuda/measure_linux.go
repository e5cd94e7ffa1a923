//go:build amd64 || arm64

package cuda

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"weir/engine/device"
)

// ownSource are the kernels that measure a GPU. Peak multiplies what lies in
// registers, over and over: eight products of 16x16 by 16x8 in flight a
// simdgroup, and no memory touched. Sweep reads n times 16 bytes: it fills the
// cache with what is of no use, and leaves nothing there to be written back, as
// zeroing memory would.
const ownSource = `
extern "C" __global__ void __launch_bounds__(256) peak(float* out, unsigned n) {
  const unsigned a = n, b = n;
  float c[8][4] = {};
  for (unsigned i = 0; i < n; i++)
#pragma unroll
    for (int j = 0; j < 8; j++)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
          : "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3]) : "r"(a), "r"(b));
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < 8; j++) sum += c[j][0] + c[j][1] + c[j][2] + c[j][3];
  if (sum == 1.0e30f) out[0] = sum;
}
extern "C" __global__ void __launch_bounds__(256) sweep(const char* p, unsigned n) {
  for (unsigned i = blockIdx.x * 256u + threadIdx.x; i < n; i += gridDim.x * 256u) {
    unsigned x, y, z, w;
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(p + 16ul * i));
  }
}
`

// own makes a launch of a kernel of ownSource, of 256 threads, that takes a
// pointer and a number. The caller has entered the context.
func (d *Device) own(kernel string, groups int, pointer uint64, n int) (*launch, error) {
	if d.measures == 0 {
		target, err := d.rtc.target(d.arch)
		if err != nil {
			return nil, err
		}
		image, _, err := d.rtc.build("measure", ownSource, compileOptions(target, false))
		if err != nil {
			return nil, fmt.Errorf("compile: %w", err)
		}
		if err := d.check("load kernels that measure", d.cu.moduleLoad.call(uintptr(unsafe.Pointer(&d.measures)), uintptr(unsafe.Pointer(&image[0])))); err != nil {
			return nil, err
		}
	}
	l := &launch{kernel: kernel, grid: [3]uint32{uint32(groups), 1, 1}, threads: [3]uint32{256, 1, 1}, values: []uint64{pointer, uint64(n)}}
	name := cBytes(kernel)
	if err := d.check("find kernel "+kernel, d.cu.moduleFunction.call(uintptr(unsafe.Pointer(&l.f)), d.measures, uintptr(unsafe.Pointer(&name[0])))); err != nil {
		return nil, err
	}
	for i := range l.values {
		l.params = append(l.params, unsafe.Pointer(&l.values[i]))
	}
	return l, nil
}

// sweep makes the launch that empties the second-level cache.
func (d *Device) sweep() (*launch, error) {
	if d.scratch == nil {
		b, err := d.alloc(2 * int64(max(d.l2, 16)))
		if err != nil {
			return nil, err
		}
		d.scratch = b
	}
	return d.own("sweep", 8*d.caps.Units, d.scratch.at, int(d.scratch.size/16))
}

// fastest is the shortest time on the device of what do puts on the stream.
func (d *Device) fastest(p *program, rounds int, do func() status) (time.Duration, error) {
	e, err := p.events()
	if err != nil {
		return 0, err
	}
	best := time.Duration(0)
	for range max(rounds, 1) {
		if err := errors.Join(
			d.check("record an event", d.cu.eventRecord.call(e.begin, d.stream)),
			d.check("measure", do()),
			d.check("record an event", d.cu.eventRecord.call(e.end, d.stream)),
			d.check("wait for the GPU", d.cu.streamSynchronize.call(d.stream)),
		); err != nil {
			return 0, err
		}
		t, err := d.between(e)
		if err != nil {
			return 0, err
		}
		if best == 0 || t < best {
			best = t
		}
	}
	if best <= 0 {
		return 0, errors.New("the GPU's clock stands still")
	}
	return best, nil
}

// Bandwidth copies n bytes within the GPU's memory, rounds times, and returns
// the bytes per second of the fastest, those read and those written counted.
func (d *Device) Bandwidth(n int64, rounds int) (speed float64, err error) {
	leave, err := d.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	p := &program{d: d}
	defer func() { err = errors.Join(err, p.Close()) }()
	from, err := d.hold(p, n)
	if err != nil {
		return 0, err
	}
	to, err := d.hold(p, n)
	if err != nil {
		return 0, err
	}
	t, err := d.fastest(p, rounds, func() status {
		return d.cu.copyAcross.call(uintptr(to.at), uintptr(from.at), uintptr(n), d.stream)
	})
	if err != nil {
		return 0, err
	}
	return 2 * float64(n) / t.Seconds(), nil
}

// MatrixPeak is how many operations a second the matrix units do on bf16, sums
// and products counted, by the instructions that kernels here use and with
// nothing to wait for. Hopper's asynchronous ones, which they do not use, do more.
func (d *Device) MatrixPeak(rounds int) (speed float64, err error) {
	const simdgroups, steps, flops = 8, 8192, 8 * 2 * 16 * 8 * 16
	groups := 4 * d.caps.Units
	leave, err := d.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	p := &program{d: d}
	defer func() { err = errors.Join(err, p.Close()) }()
	out, err := d.hold(p, 4)
	if err != nil {
		return 0, err
	}
	l, err := d.own("peak", groups, out.at, steps)
	if err != nil {
		return 0, err
	}
	t, err := d.fastest(p, rounds, func() status { return d.alone(l) })
	if err != nil {
		return 0, err
	}
	return float64(groups*simdgroups*steps) * flops / t.Seconds(), nil
}

// hold allocates memory that goes with a program.
func (d *Device) hold(p *program, n int64) (*buffer, error) {
	b, err := d.alloc(n)
	if err != nil {
		return nil, err
	}
	p.held = append(p.held, device.Buffer(b))
	return b, nil
}
