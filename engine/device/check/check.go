// Package check proves recorded streams, independently of what made them: that
// every launch fits its kernel's declaration and the device, and that every two
// launches which touch the same bytes, one of them writing, have a barrier
// between them.
//
// Begin at [Stream], or at [Graph] for launches that wait for some of those
// before them instead of all. It shares no code with the planner of barriers in package
// device and goes another way about it, so that a fault in one is not repeated
// in the other. It trusts the kernels' declarations; what kernels do within
// their arguments is for the emulator's checker.
package check

import (
	"errors"
	"fmt"

	"weir/engine/device"
	"weir/metalsrc/msl"
)

// faults that are reported of one stream, at most.
const most = 20

// Limits that hold on every device.
const (
	maxThreads = 1024
	maxRaw     = 4096  // of a constant struct, in Metal
	maxGroups  = 65535 // along y and z, in CUDA
	unit       = 16    // of threadgroup memory
)

// alignment of an element of a type. Kernels that load several elements at once
// need more, at offsets that only they know: the emulator's checker sees that.
func alignment(typ string) uint64 {
	switch typ {
	case "uchar", "char", "uint8_t", "int8_t":
		return 1
	case "half", "bfloat", "ushort", "short", "uchar2":
		return 2
	case "uint", "int", "float", "atomic_uint", "atomic_float", "half2", "bfloat2", "ushort2", "uchar4":
		return 4
	case "ulong", "long", "uint2", "int2", "float2", "half4", "bfloat4", "ushort4":
		return 8
	}
	return 16 // vectors and structs
}

// list collects faults.
type list struct{ errs []error }

func (l *list) add(format string, args ...any) {
	if len(l.errs) < most {
		l.errs = append(l.errs, fmt.Errorf(format, args...))
	}
}

// Stream returns what is wrong with a stream whose command i waits for all
// before it where barrier[i] is true.
func Stream(s *device.Stream, barrier []bool, kernel func(string) (msl.Kernel, bool), caps device.Caps) error {
	if len(barrier) != len(s.Commands) {
		return fmt.Errorf("%d barriers for %d commands", len(barrier), len(s.Commands))
	}
	var l list
	touches := launches(&l, s, kernel, caps)
	if len(l.errs) == 0 {
		order(&l, s, barrier, touches)
	}
	return errors.Join(l.errs...)
}

// Graph returns what is wrong with a stream whose command i waits for those
// that waits[i] lists, and they for theirs.
func Graph(s *device.Stream, waits [][]int, kernel func(string) (msl.Kernel, bool), caps device.Caps) error {
	if len(waits) != len(s.Commands) {
		return fmt.Errorf("what %d commands wait for, of %d", len(waits), len(s.Commands))
	}
	var l list
	touches := launches(&l, s, kernel, caps)
	if len(l.errs) == 0 {
		graph(&l, s, waits, touches)
	}
	return errors.Join(l.errs...)
}

// launches judges each command by itself, and returns what all of them touch.
func launches(l *list, s *device.Stream, kernel func(string) (msl.Kernel, bool), caps device.Caps) []touch {
	var touches []touch
	for i := range s.Commands {
		c := &s.Commands[i]
		k, ok := kernel(c.Kernel)
		if !ok {
			l.add("command %d: no kernel %q", i, c.Kernel)
			continue
		}
		at := launch{l, i, c, k}
		at.shape(caps)
		touches = append(touches, at.arguments()...)
	}
	return touches
}

// launch is a command beside the declaration of its kernel.
type launch struct {
	*list
	i int
	c *device.Command
	k msl.Kernel
}

func (at launch) fault(format string, args ...any) {
	at.add("command %d (%s): %s", at.i, at.c.Kernel, fmt.Sprintf(format, args...))
}

// shape judges the grid and the threadgroup memory.
func (at launch) shape(caps device.Caps) {
	threads := 1
	for d, n := range at.c.Threads {
		if n < 1 || n > maxThreads {
			at.fault("%d threads along dimension %d", n, d)
			return
		}
		threads *= n
	}
	if threads%32 != 0 || threads > maxThreads {
		at.fault("%d threads of a threadgroup: must be a multiple of 32, at most %d", threads, maxThreads)
	}
	for d, n := range at.c.Groups {
		if n < 1 || d > 0 && n > maxGroups || n > 1<<31-1 {
			at.fault("%d threadgroups along dimension %d", n, d)
		}
	}
	declared := [8]bool{}
	for _, a := range at.k.Args {
		if a.Kind != msl.Threadgroup {
			continue
		}
		declared[a.Index] = true
		if a.Index >= len(at.c.Shared) || at.c.Shared[a.Index] == 0 {
			at.fault("threadgroup(%d) %s has no length", a.Index, a.Name)
		}
	}
	sum := 0
	for i, n := range at.c.Shared {
		switch {
		case i >= len(declared) || n != 0 && !declared[i]:
			at.fault("threadgroup(%d) is given and not declared", i)
		case n < 0 || n%unit != 0:
			at.fault("threadgroup(%d) has %d bytes: must be a multiple of %d", i, n, unit)
		}
		sum += n
	}
	if sum > caps.Shared {
		at.fault("%d bytes of threadgroup memory, the device has %d", sum, caps.Shared)
	}
}

// arguments judges what is bound, and returns the ranges that are touched.
func (at launch) arguments() []touch {
	var touches []touch
	declared := map[int]bool{}
	for _, a := range at.k.Args {
		if a.Kind != msl.Buffer && a.Kind != msl.Constant {
			continue
		}
		declared[a.Index] = true
		if a.Index >= len(at.c.Args) || at.c.Args[a.Index].Buf == nil && at.c.Args[a.Index].Raw == nil {
			at.fault("buffer(%d) %s is not bound", a.Index, a.Name)
			continue
		}
		arg := at.c.Args[a.Index]
		if a.Kind == msl.Constant && a.Ref {
			at.value(a, arg)
			continue
		}
		if t, ok := at.memory(a, arg); ok {
			touches = append(touches, t)
		}
	}
	for i, arg := range at.c.Args {
		if !declared[i] && (arg.Buf != nil || arg.Raw != nil) {
			at.fault("buffer(%d) is bound and not declared", i)
		}
	}
	return touches
}

// value judges a struct that is passed by value.
func (at launch) value(a msl.Arg, arg device.Arg) {
	switch {
	case arg.Buf != nil:
		at.fault("buffer(%d) %s is a struct by value and gets a buffer", a.Index, a.Name)
	case a.Size == 0:
		at.fault("buffer(%d) %s: the size of struct %s is not known: its fields may be uint, int and float, and arrays of them", a.Index, a.Name, a.Type)
	case len(arg.Raw) != a.Size:
		at.fault("buffer(%d) %s gets %d bytes, struct %s has %d", a.Index, a.Name, len(arg.Raw), a.Type, a.Size)
	case len(arg.Raw) > maxRaw:
		at.fault("buffer(%d) %s has %d bytes, at most %d go by value", a.Index, a.Name, len(arg.Raw), maxRaw)
	}
}

// memory judges a range of a buffer.
func (at launch) memory(a msl.Arg, arg device.Arg) (touch, bool) {
	if arg.Raw != nil {
		at.fault("buffer(%d) %s is memory and gets bytes by value", a.Index, a.Name)
		return touch{}, false
	}
	size := arg.Buf.Size()
	from, to := arg.At, arg.End()
	if from < 0 || from >= to || to > size {
		at.fault("buffer(%d) %s is bytes %d to %d of a buffer of %d", a.Index, a.Name, from, to, size)
		return touch{}, false
	}
	t := touch{i: at.i, name: a.Name, write: a.Kind == msl.Buffer && !a.Const}
	t.place(arg.Buf, from, to)
	if n := alignment(a.Type); t.from%n != 0 {
		at.fault("buffer(%d) %s begins at byte %d of its buffer: not aligned to %d, as %s must be", a.Index, a.Name, from, n, a.Type)
	}
	return t, true
}
