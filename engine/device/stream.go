package device

import "unsafe"

// Arg is what a kernel's buffer(i) gets: a range of a buffer, or bytes by value
// for a constant struct.
type Arg struct {
	Buf     Buffer
	At, Len int64 // Len 0: to the end
	Raw     []byte
}

// End is where the range ends.
func (a Arg) End() int64 {
	if a.Len == 0 {
		return a.Buf.Size()
	}
	return a.At + a.Len
}

// Whole is all of a buffer.
func Whole(b Buffer) Arg { return Arg{Buf: b} }

// Part is n bytes of a buffer from at.
func Part(b Buffer, at, n int64) Arg { return Arg{Buf: b, At: at, Len: n} }

// Value is a struct of uint32, int32 and float32 fields, as the kernel's
// constant struct declares them.
func Value[T any](v T) Arg {
	p := unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v))
	return Arg{Raw: append([]byte(nil), p...)}
}

// Command is one launch.
type Command struct {
	Kernel  string
	Groups  [3]int // threadgroups
	Threads [3]int // threads of a threadgroup
	Shared  []int  // bytes of threadgroup(i), multiples of 16
	Args    []Arg  // by buffer index
}

// Stream is a row of launches whose effect is as if each had ended before the
// next began. Devices run those together that touch nothing in common.
type Stream struct {
	Commands []Command
	// Short says that the launches are short and follow one another: a device may
	// start one while the one before it ends. It changes no result.
	Short bool
}

// Add appends a launch.
func (s *Stream) Add(c Command) { s.Commands = append(s.Commands, c) }
