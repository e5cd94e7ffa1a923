// Package batch makes many Objective-C message sends to one object with one
// crossing from Go into C.
//
// A command encoder's methods return nothing and take at most six words of
// arguments, so that a send is a selector and six words. A [List] of them is
// recorded once and played as often as wanted, each time to another receiver:
// a loop in assembly, entered as a C function, calls objc_msgSend for each. A
// crossing costs what a dozen sends do, or more.
//
// On arm64 a struct of more than 16 bytes travels as a pointer to a copy, such
// as MTLSize, and a smaller one in registers, such as NSRange: two words.
package batch

import (
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Most is how many words of arguments a send has at most. On amd64, where this
// runs only in tests, it is four.
const Most = 6

// entry is the address of the loop, see batch_arm64.s.
var entry uintptr

// send mirrors what the loop reads: a selector and arguments.
type send struct {
	sel  uintptr
	args [Most]uintptr
	_    uintptr // to 64 bytes
}

// List is a recorded list of sends. The zero List is empty.
type List struct {
	sends []send
	// What arguments point to. That it is on the heap, and reachable, keeps it
	// where it is. A runtime.Pinner would panic for a list that was not closed.
	data [][]uint64
}

// Add records a send.
func (l *List) Add(sel uintptr, args ...uintptr) {
	s := send{sel: sel}
	if copy(s.args[:], args) < len(args) {
		panic("batch: a send with too many arguments")
	}
	l.sends = append(l.sends, s)
}

// Words copies numbers to memory that lives as long as the list, and returns
// its address, for an argument.
func (l *List) Words(p ...uint64) uintptr {
	if len(p) == 0 {
		return 0
	}
	return l.keep(append([]uint64(nil), p...))
}

// Bytes is Words for bytes.
func (l *List) Bytes(p []byte) uintptr {
	if len(p) == 0 {
		return 0
	}
	c := make([]uint64, (len(p)+7)/8)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&c[0])), len(p)), p)
	return l.keep(c)
}

func (l *List) keep(c []uint64) uintptr {
	l.data = append(l.data, c)
	return uintptr(unsafe.Pointer(&c[0]))
}

// Len is the number of sends.
func (l *List) Len() int { return len(l.sends) }

// Play makes the sends to an object, in their order, by the function that
// sends messages.
func (l *List) Play(msgSend, object uintptr) {
	if len(l.sends) == 0 {
		return
	}
	purego.SyscallN(entry, uintptr(unsafe.Pointer(&l.sends[0])), uintptr(len(l.sends)), msgSend, object)
	runtime.KeepAlive(l)
}
