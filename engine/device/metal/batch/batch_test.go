//go:build linux

package batch_test

import (
	"testing"

	"github.com/ebitengine/purego"

	"weir/engine/device/metal/batch"
)

// received is what a stand-in for objc_msgSend got: receiver, selector, and
// the arguments that fit in registers on every processor.
type received [6]uintptr

// The loop passes on what was recorded, in order, as often as it is played,
// and comes back to Go with its registers as they were.
func TestPlay(t *testing.T) {
	t.Parallel()
	var got []received
	send := purego.NewCallback(func(to, sel, a, b, c, d uintptr) {
		got = append(got, received{to, sel, a, b, c, d})
	})
	var l batch.List
	l.Play(send, 1) // nothing
	text := l.Bytes([]byte("weir!"))
	words := l.Words(7, 8, 9)
	var want []received
	for i := range uintptr(300) {
		l.Add(1000+i, i, text, words)
		l.Add(2000 + i)
		want = append(want, received{0, 1000 + i, i, text, words}, received{0, 2000 + i})
	}
	if l.Len() != 600 {
		t.Fatalf("%d sends", l.Len())
	}
	for _, object := range []uintptr{77, 99} {
		got = nil
		l.Play(send, object)
		if len(got) != len(want) {
			t.Fatalf("%d sends arrived", len(got))
		}
		for i, w := range want {
			w[0] = object
			if got[i] != w {
				t.Fatalf("send %d: got %v, want %v", i, got[i], w)
			}
		}
	}
	if l.Bytes(nil) != 0 || l.Words() != 0 {
		t.Error("nothing has an address")
	}
}

func TestTooManyArguments(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a send that does not fit was recorded")
		}
	}()
	var l batch.List
	l.Add(1, make([]uintptr, batch.Most+1)...)
}

// What a send costs in a row, with the least that a receiver can do.
func BenchmarkPlay(b *testing.B) {
	libc, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	if err != nil {
		b.Fatal(err)
	}
	abs, err := purego.Dlsym(libc, "labs")
	if err != nil {
		b.Fatal(err)
	}
	var l batch.List
	const n = 2000
	for range n {
		l.Add(1, 2, 3, 4)
	}
	for b.Loop() {
		l.Play(abs, 5)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/send")
}
