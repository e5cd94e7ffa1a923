//go:build amd64 || arm64

package cuda_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"weir/engine/device"
	"weir/engine/device/cuda"
)

// play runs a stream of six buffers of n words, times over, and returns what they
// hold then.
func play(t *testing.T, d *cuda.Device, n int, build func(mem []device.Arg) []device.Command, times int) []uint32 {
	t.Helper()
	mem := make([]device.Arg, 6)
	for i := range mem {
		mem[i] = alloc(t, d, int64(4*n))
		p := make([]byte, 4*n)
		for j := range n {
			binary.LittleEndian.PutUint32(p[4*j:], uint32(1000*i+j))
		}
		if err := d.Write(mem[i].Buf, 0, p); err != nil {
			t.Fatal(err)
		}
	}
	p, err := d.Compile(&device.Stream{Commands: build(mem)})
	if err != nil {
		t.Fatal(err)
	}
	var runs []device.Run
	for range times { // all of them in flight
		r, err := p.Start()
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	for i := range runs {
		if took, err := runs[len(runs)-1-i].Wait(); err != nil || took <= 0 {
			t.Fatal(took, err)
		}
	}
	var out []uint32
	got := make([]byte, 4*n)
	for _, m := range mem {
		if err := d.Read(got, m.Buf, 0); err != nil {
			t.Fatal(err)
		}
		for j := range n {
			out = append(out, binary.LittleEndian.Uint32(got[4*j:]))
		}
		m.Buf.Free()
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Start(); err == nil {
		t.Error("a closed program starts")
	}
	return out
}

// plan is a random stream over six buffers.
type plan []struct {
	from, to int
	add      uint32
}

func newPlan(seed uint64, n int) plan {
	r := rand.New(rand.NewPCG(seed, 3))
	p := make(plan, n)
	for i := range p {
		p[i].from, p[i].add = r.IntN(6), r.Uint32N(100)
		p[i].to = (p[i].from + 1 + r.IntN(5)) % 6
	}
	return p
}

func (p plan) commands(m []device.Arg) (c []device.Command) {
	for _, s := range p {
		c = append(c, step(m[s.from], m[s.to], s.add))
	}
	return c
}

// result is what play must return.
func (p plan) result(n, times int) []uint32 {
	mem := make([][]uint32, 6)
	for i := range mem {
		for j := range n {
			mem[i] = append(mem[i], uint32(1000*i+j))
		}
	}
	for range times {
		for _, s := range p {
			for j := range n {
				mem[s.to][j] = mem[s.from][j]*3 + s.add
			}
		}
	}
	var out []uint32
	for _, m := range mem {
		out = append(out, m...)
	}
	return out
}

// ways are all the ways to play a program.
func ways() []cuda.Options {
	return []cuda.Options{
		{},
		{Width: 2},
		{Width: 4},
		{Overlap: cuda.OverlapAlways},
		{Width: 4, Overlap: cuda.OverlapAlways},
		{Launch: cuda.Stream},
		{Launch: cuda.Stream, Overlap: cuda.OverlapAlways},
	}
}

func wayName(o cuda.Options) string {
	name := "stream"
	if o.Launch == cuda.Graph {
		name = fmt.Sprintf("graph of width %d", max(o.Width, cuda.DefaultWidth))
	}
	if o.Overlap == cuda.OverlapAlways {
		name += ", overlapping"
	}
	return name
}

// A random stream gives on every way of playing what it gives in order. The
// stand-in plays what is ready in the most contrary order.
func TestProgramsKeepTheStreamsOrder(t *testing.T) {
	t.Parallel()
	const n, commands, times = 5, 40, 3
	for _, o := range ways() {
		t.Run(wayName(o), func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			fo := f.options(t)
			fo.Width, fo.Overlap, fo.Launch = o.Width, o.Overlap, o.Launch
			plan := newPlan(1, commands)
			got := play(t, open(t, fo), n, plan.commands, times)
			for i, want := range plan.result(n, times) {
				if got[i] != want {
					t.Fatalf("word %d is %d, want %d", i, got[i], want)
				}
			}
			for _, what := range []string{"blocks", "execs", "graphs"} {
				if n := f.get(what); n != 0 {
					t.Errorf("%d %s are left", n, what)
				}
			}
			if n := f.get("launched"); n != commands*times {
				t.Errorf("%d launches, want %d", n, commands*times)
			}
			chain := o.Width == 0 && o.Launch == cuda.Graph
			if e := f.get("edges"); chain && e != commands-1 {
				t.Errorf("a chain of %d has %d edges", commands, e)
			}
			overlap := o.Overlap == cuda.OverlapAlways
			if e := f.get("programmatic") + f.get("overlapped"); overlap != (e > 0) || chain && overlap && e != commands-1 {
				t.Errorf("%d launches overlap", e)
			}
		})
	}
}

// Playing a program over and over takes no more events than are in flight at once.
func TestRunsReuseTheirEvents(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f.options(t))
	a, b := alloc(t, d, 40), alloc(t, d, 40)
	p, err := d.Compile(&device.Stream{Commands: []device.Command{step(a, b, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	var before device.Run
	for range 50 {
		r, err := p.Start()
		if err != nil {
			t.Fatal(err)
		}
		if before != nil {
			if _, err := before.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		before = r
	}
	if n := f.get("events"); n != 4 {
		t.Errorf("%d events for two runs in flight", n)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if n := f.get("events"); n != 0 {
		t.Errorf("%d events are left", n)
	}
}

// Only a stream of short launches overlaps by itself, and the same kernel serves
// both kinds.
func TestShortStreamsOverlap(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		overlap cuda.Overlap
		short   bool
		want    bool
	}{
		{"long", cuda.OverlapShort, false, false},
		{"short", cuda.OverlapShort, true, true},
		{"never", cuda.OverlapNever, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			o := f.options(t)
			o.Overlap = row.overlap
			d := open(t, o)
			for _, short := range []bool{!row.short, row.short} { // the other kind is compiled first
				a, b := alloc(t, d, 40), alloc(t, d, 40)
				before := f.get("programmatic")
				p, err := d.Compile(&device.Stream{Commands: []device.Command{step(a, b, 1), step(b, a, 1)}, Short: short})
				if err != nil {
					t.Fatal(err)
				}
				if n := f.get("programmatic") - before; short == row.short && (n > 0) != row.want {
					t.Errorf("%d launches overlap", n)
				}
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
