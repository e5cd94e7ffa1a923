//go:build amd64 || arm64

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"weir/engine/device"
	"weir/metalsrc/msl"
)

// launch is a command made ready: what cuLaunchKernel and a graph's node take.
type launch struct {
	kernel        string
	f             uintptr
	grid, threads [3]uint32
	shared        uint32
	values        []uint64         // of all parameters
	params        []unsafe.Pointer // to each parameter, within values
}

// pack checks a command against its kernel and lays its parameters out. Bytes
// that a kernel takes through a pointer go to the device, into held.
func (d *Device) pack(c *device.Command, overlap bool, held *[]device.Buffer) (*launch, error) {
	k, _ := d.lib.kernel(c.Kernel) // load has seen to it, and to this:
	f := d.lib.funcs[variant{c.Kernel, overlap}]
	l := &launch{kernel: c.Kernel, f: f.h}
	if err := errors.Join(l.shape(c, f), apart(c, k)); err != nil {
		return nil, err
	}
	var at []int // of each parameter, in words
	put := func(p []byte) {
		at = append(at, len(l.values))
		l.values = append(l.values, make([]uint64, (len(p)+7)/8)...)
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&l.values[at[len(at)-1]])), len(p)), p)
	}
	dynamic := 0
	for _, a := range k.Args {
		switch {
		case a.Kind == msl.Threadgroup:
			if a.Index >= len(c.Shared) || c.Shared[a.Index] <= 0 {
				return nil, fmt.Errorf("threadgroup(%d) %s has no length", a.Index, a.Name)
			}
			dynamic = (dynamic + 127) &^ 127
			put(raw(uint32(dynamic)))
			dynamic += c.Shared[a.Index]
		case a.Kind == msl.Constant && a.Ref:
			if len(c.Args) <= a.Index || len(c.Args[a.Index].Raw) == 0 {
				return nil, fmt.Errorf("buffer(%d) %s is a constant struct, and gets no value", a.Index, a.Name)
			}
			if err := d.sized(f, len(at), len(c.Args[a.Index].Raw)); err != nil {
				return nil, fmt.Errorf("buffer(%d) %s: %w", a.Index, a.Name, err)
			}
			put(c.Args[a.Index].Raw)
		case a.Kind == msl.Buffer || a.Kind == msl.Constant:
			p, err := d.pointer(c, a, held)
			if err != nil {
				return nil, fmt.Errorf("buffer(%d) %s: %w", a.Index, a.Name, err)
			}
			put(raw(p))
		}
	}
	if err := d.lib.allow(c.Kernel, f, dynamic); err != nil {
		return nil, err
	}
	l.shared = uint32(dynamic)
	for _, i := range at {
		l.params = append(l.params, unsafe.Pointer(&l.values[i]))
	}
	return l, nil
}

// shape takes over the numbers of threadgroups and threads.
func (l *launch) shape(c *device.Command, f *function) error {
	limit := [3]int{1<<31 - 1, 65535, 65535}
	n := 1
	for i := range 3 {
		g, t := max(c.Groups[i], 1), max(c.Threads[i], 1)
		if g > limit[i] {
			return fmt.Errorf("%v threadgroups: CUDA allows %v", c.Groups, limit)
		}
		l.grid[i], l.threads[i] = uint32(g), uint32(t)
		n *= t
	}
	if n%32 != 0 {
		return fmt.Errorf("%d threads: not a multiple of 32", n)
	}
	if n > f.threads {
		return fmt.Errorf("%d threads: with %d registers each, or by its own limit, the kernel allows %d", n, f.Registers, f.threads)
	}
	return nil
}

// apart refuses a command that gives a kernel the same bytes to read only and to
// write: compiled code takes for granted that nobody changes what it only reads.
func apart(c *device.Command, k msl.Kernel) error {
	for _, in := range k.Args {
		if in.Kind != msl.Buffer && in.Kind != msl.Constant || in.Kind == msl.Buffer && !in.Const {
			continue
		}
		for _, out := range k.Args {
			if out.Kind != msl.Buffer || out.Const || in.Index >= len(c.Args) || out.Index >= len(c.Args) {
				continue
			}
			a, b := c.Args[in.Index], c.Args[out.Index]
			if a.Buf != nil && a.Buf == b.Buf && a.At < b.End() && b.At < a.End() {
				return fmt.Errorf("buffer(%d) %s, which is only read, and buffer(%d) %s, which is written, overlap", in.Index, in.Name, out.Index, out.Name)
			}
		}
	}
	return nil
}

// pointer is where a buffer's range lies on the device.
func (d *Device) pointer(c *device.Command, a msl.Arg, held *[]device.Buffer) (uint64, error) {
	if a.Index >= len(c.Args) {
		return 0, errors.New("is not bound")
	}
	arg := c.Args[a.Index]
	if len(arg.Raw) > 0 {
		if !a.Const && a.Kind == msl.Buffer {
			return 0, errors.New("is written, and bound to a value")
		}
		b, err := d.alloc(int64(len(arg.Raw)))
		if err != nil {
			return 0, err
		}
		*held = append(*held, b)
		return b.at, d.Write(b, 0, arg.Raw)
	}
	if arg.Buf == nil {
		return 0, errors.New("is not bound")
	}
	b, err := d.span(arg.Buf, arg.At, int(arg.End()-arg.At))
	if err != nil {
		return 0, err
	}
	return b.at + uint64(arg.At), nil
}

// sized holds the length of a value against the compiled kernel's parameter,
// where the driver can tell.
func (d *Device) sized(f *function, index, n int) error {
	if d.cu.funcParam == 0 {
		return nil
	}
	var offset, size uint64
	if err := d.check("ask about a parameter", d.cu.funcParam.call(f.h, uintptr(index), uintptr(unsafe.Pointer(&offset)), uintptr(unsafe.Pointer(&size)))); err != nil {
		return err
	}
	if size != uint64(n) {
		return fmt.Errorf("%d bytes, the kernel's struct has %d", n, size)
	}
	return nil
}

func raw[T uint32 | uint64](v T) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v))...)
}

// alone launches a command by itself on the device's stream.
func (d *Device) alone(l *launch) status {
	defer runtime.KeepAlive(l)
	return d.cu.launch.call(l.f, uintptr(l.grid[0]), uintptr(l.grid[1]), uintptr(l.grid[2]),
		uintptr(l.threads[0]), uintptr(l.threads[1]), uintptr(l.threads[2]),
		uintptr(l.shared), d.stream, l.paramList(), 0)
}

// paramList is the address of the list of parameters, which lives as long as l.
func (l *launch) paramList() uintptr {
	if len(l.params) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(&l.params[0]))
}

// launchConfig is CUlaunchConfig.
type launchConfig struct {
	grid, threads [3]uint32
	shared        uint32
	stream        uintptr
	attributes    unsafe.Pointer
	count         uint32
}

// launchAttribute is CUlaunchAttribute.
type launchAttribute struct {
	id    uint32
	_     [4]byte
	value [64]byte
}

// overlapping launches a command that may start before the one before has
// ended; its kernel waits for that.
func (d *Device) overlapping(l *launch) status {
	const programmaticStreamSerialization = 6
	a := launchAttribute{id: programmaticStreamSerialization}
	a.value[0] = 1
	c := launchConfig{grid: l.grid, threads: l.threads, shared: l.shared, stream: d.stream, attributes: unsafe.Pointer(&a), count: 1}
	defer runtime.KeepAlive(l)
	return d.cu.launchEx.call(uintptr(unsafe.Pointer(&c)), l.f, l.paramList(), 0)
}
