package device_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/engine/device"
	"weir/metalsrc/msl"
)

// memory is a buffer without bytes.
type memory struct{ n int64 }

func (m *memory) Size() int64   { return m.n }
func (m *memory) Bytes() []byte { return nil }
func (m *memory) Free()         {}

// copies declares kernels that read their first buffers and write the last one.
func copies(name string) (msl.Kernel, bool) {
	var in int
	if _, err := fmt.Sscanf(name, "from%d", &in); err != nil {
		return msl.Kernel{}, false
	}
	k := msl.Kernel{Name: name}
	for i := range in + 1 {
		k.Args = append(k.Args, msl.Arg{Kind: msl.Buffer, Const: i < in, Index: i, Name: fmt.Sprint("b", i)})
	}
	return k, true
}

func from(out device.Arg, in ...device.Arg) device.Command {
	return device.Command{Kernel: fmt.Sprint("from", len(in)), Args: append(in, out)}
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	a, b, c, d := device.Whole(&memory{64}), device.Whole(&memory{64}), device.Whole(&memory{64}), device.Whole(&memory{64})
	half := func(x device.Arg, n int64) device.Arg { return device.Part(x.Buf, 32*n, 32) }
	for _, row := range []struct {
		name string
		s    []device.Command
		want [][]int
	}{
		{"nothing in common", []device.Command{from(b, a), from(c, a)}, [][]int{nil, nil}},
		{"a chain, each waiting for the one before only", []device.Command{from(b, a), from(c, b), from(d, c, b)}, [][]int{nil, {0}, {1}}},
		{"a fork and its joint", []device.Command{from(b, a), from(c, b), from(d, b), from(a, c, d)}, [][]int{nil, {0}, {0}, {1, 2}}},
		{"a write waits for the readers, not for whom they wait for", []device.Command{from(a), from(b, a), from(c, a), from(a)}, [][]int{nil, {0}, {0}, {1, 2}}},
		{"parts that do not touch", []device.Command{from(half(a, 0)), from(half(a, 1)), from(b, half(a, 1))}, [][]int{nil, nil, {1}}},
		{"a write that covers two, and a read of it", []device.Command{from(half(a, 0)), from(half(a, 1)), from(a), from(b, a)}, [][]int{nil, nil, {0, 1}, {2}}},
		{"a part written anew leaves the other part's writer", []device.Command{from(a), from(half(a, 0)), from(b, half(a, 1))}, [][]int{nil, {0}, {0}}},
		{"a command that reads what it writes", []device.Command{from(a, a), from(a, a)}, [][]int{nil, {0}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := device.Dependencies(&device.Stream{Commands: row.s}, copies)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := device.Dependencies(&device.Stream{Commands: []device.Command{{Kernel: "other"}}}, copies); err == nil {
		t.Error("an unknown kernel is taken")
	}
}

// Any pair of commands in conflict is ordered by the dependencies, no pair is
// ordered without a chain of conflicts, and none is stated twice.
func TestDependenciesAgainstAllPairs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "commands")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		bufs := []device.Buffer{&memory{64}, &memory{64}, &memory{64}}
		part := func() device.Arg {
			at := int64(r.IntN(4)) * 16
			return device.Part(bufs[r.IntN(3)], at, 16*(1+r.Int64N((64-at)/16)))
		}
		s := &device.Stream{}
		for range n {
			in := make([]device.Arg, r.IntN(3))
			for i := range in {
				in[i] = part()
			}
			s.Add(from(part(), in...))
		}
		deps, err := device.Dependencies(s, copies)
		if err != nil {
			t.Fatal(err)
		}
		want, got := closure(n, func(i, j int) bool { return conflict(s.Commands[i], s.Commands[j]) }), reach(deps)
		for i := range n {
			for j := range i {
				if want[i][j] != got[i][j] {
					t.Fatalf("%d after %d: %t, want %t", i, j, got[i][j], want[i][j])
				}
			}
			for _, d := range deps[i] {
				for _, e := range deps[i] {
					if d != e && got[e][d] {
						t.Fatalf("%d waits for %d, which %d waits for", i, d, e)
					}
				}
			}
		}
	})
}

func conflict(a, b device.Command) bool {
	for i, x := range a.Args {
		for j, y := range b.Args {
			written := i == len(a.Args)-1 || j == len(b.Args)-1
			if written && x.Buf == y.Buf && x.At < y.End() && y.At < x.End() {
				return true
			}
		}
	}
	return false
}

func closure(n int, direct func(i, j int) bool) [][]bool {
	out := make([][]bool, n)
	for i := range n {
		out[i] = make([]bool, n)
		for j := i - 1; j >= 0; j-- {
			if direct(i, j) {
				out[i][j] = true
			}
		}
		for j := range i {
			if out[i][j] {
				for k := range j {
					out[i][k] = out[i][k] || out[j][k]
				}
			}
		}
	}
	return out
}

func reach(deps [][]int) [][]bool {
	return closure(len(deps), func(i, j int) bool {
		for _, d := range deps[i] {
			if d == j {
				return true
			}
		}
		return false
	})
}
