package check_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/engine/device"
	"weir/engine/device/check"
	"weir/metalsrc/msl"
)

const text = `
struct Args {
  uint rows, cols;
  float eps[2];
};
struct Half {
  half h;
};
kernel void norm(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    constant Args &args [[buffer(2)]],
    threadgroup float *s [[threadgroup(0)]],
    uint tid [[thread_index_in_threadgroup]]) {
}
kernel void copy(
    device const uint *x [[buffer(0)]],
    device uint *y [[buffer(1)]]) {
}
kernel void copy4(
    device const uint4 *x [[buffer(0)]],
    device uint4 *y [[buffer(1)]]) {
}
kernel void add(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    constant uint *table [[buffer(2)]]) {
}
kernel void odd(
    device float *y [[buffer(0)]],
    constant Half &h [[buffer(1)]]) {
}
`

type args struct {
	rows, cols uint32
	_          [2]float32
}

// remote is memory that the host does not see.
type remote struct{ n int64 }

func (b *remote) Size() int64   { return b.n }
func (b *remote) Bytes() []byte { return nil }
func (b *remote) Free()         {}

// local is memory that it sees.
type local struct{ p []byte }

func (b *local) Size() int64   { return int64(len(b.p)) }
func (b *local) Bytes() []byte { return b.p }
func (b *local) Free()         {}

func kernels(t testing.TB) func(string) (msl.Kernel, bool) {
	t.Helper()
	ks, err := msl.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return func(name string) (msl.Kernel, bool) {
		i := slices.IndexFunc(ks, func(k msl.Kernel) bool { return k.Name == name })
		if i < 0 {
			return msl.Kernel{}, false
		}
		return ks[i], true
	}
}

func caps() device.Caps { return device.Caps{Shared: 32 << 10} }

func norm(x, y device.Arg) device.Command {
	return device.Command{
		Kernel: "norm", Groups: [3]int{4, 1, 1}, Threads: [3]int{64, 1, 1}, Shared: []int{256},
		Args: []device.Arg{x, y, device.Value(args{rows: 4, cols: 8})},
	}
}

func copyTo(x, y device.Arg) device.Command {
	return device.Command{Kernel: "copy", Groups: [3]int{4, 1, 1}, Threads: [3]int{64, 1, 1}, Args: []device.Arg{x, y}}
}

// Every row spoils a launch that is right in one way.
func TestLaunchFaults(t *testing.T) {
	t.Parallel()
	b := &remote{1024}
	x, y := device.Part(b, 0, 256), device.Part(b, 256, 256)
	for _, r := range []struct {
		name  string
		spoil func(c *device.Command)
		want  string // empty: nothing is wrong
	}{
		{"as it should be", func(*device.Command) {}, ""},
		{"a misspelt kernel", func(c *device.Command) { c.Kernel = "norms" }, `no kernel "norms"`},
		{"an argument forgotten at the end", func(c *device.Command) { c.Args = c.Args[:2] }, "buffer(2) args is not bound"},
		{"an argument forgotten in the middle", func(c *device.Command) { c.Args[1] = device.Arg{} }, "buffer(1) y is not bound"},
		{"one too many", func(c *device.Command) { c.Args = append(c.Args, x) }, "buffer(3) is bound and not declared"},
		{"bytes for memory", func(c *device.Command) { c.Args[0] = device.Value(args{}) }, "gets bytes by value"},
		{"memory for a struct", func(c *device.Command) { c.Args[2] = x }, "gets a buffer"},
		{"a struct with a field less", func(c *device.Command) { c.Args[2] = device.Value([3]uint32{}) }, "gets 12 bytes, struct Args has 16"},
		{"a range that begins before the buffer", func(c *device.Command) { c.Args[0].At = -16 }, "bytes -16 to"},
		{"a range past the end", func(c *device.Command) { c.Args[0] = device.Part(b, 960, 128) }, "bytes 960 to 1088 of a buffer of 1024"},
		{"an empty range", func(c *device.Command) { c.Args[0] = device.Part(b, 1024, 0) }, "bytes 1024 to 1024"},
		{"an offset between two elements", func(c *device.Command) { c.Args[0] = device.Part(b, 10, 64) }, "not aligned to 4, as float must be"},
		{"an offset between two vectors", func(c *device.Command) { *c = copyTo(device.Part(b, 8, 64), y); c.Kernel = "copy4" }, "not aligned to 16, as uint4 must be"},
		{"an offset that suits the element", func(c *device.Command) { c.Args[0] = device.Part(b, 8, 64) }, ""},
		{"threads that are no multiple of 32", func(c *device.Command) { c.Threads[0] = 48 }, "48 threads"},
		{"too many threads", func(c *device.Command) { c.Threads = [3]int{64, 32, 1} }, "2048 threads"},
		{"no threads in a dimension", func(c *device.Command) { c.Threads[2] = 0 }, "0 threads along dimension 2"},
		{"no threadgroups", func(c *device.Command) { c.Groups[1] = 0 }, "0 threadgroups along dimension 1"},
		{"more along z than CUDA takes", func(c *device.Command) { c.Groups[2] = 65536 }, "65536 threadgroups along dimension 2"},
		{"threadgroup memory forgotten", func(c *device.Command) { c.Shared = nil }, "threadgroup(0) s has no length"},
		{"threadgroup memory of odd length", func(c *device.Command) { c.Shared[0] = 40 }, "multiple of 16"},
		{"too much threadgroup memory", func(c *device.Command) { c.Shared[0] = 33 << 10 }, "33792 bytes of threadgroup memory"},
		{"threadgroup memory that nobody declared", func(c *device.Command) { c.Shared = append(c.Shared, 16) }, "threadgroup(1) is given and not declared"},
		{"a ninth threadgroup argument", func(c *device.Command) { c.Shared = append(c.Shared, 0, 0, 0, 0, 0, 0, 0, 16) }, "threadgroup(8)"},
		{"a struct that the host cannot mirror", func(c *device.Command) {
			*c = device.Command{Kernel: "odd", Groups: [3]int{1, 1, 1}, Threads: [3]int{32, 1, 1}, Args: []device.Arg{y, device.Value(uint16(1))}}
		}, "size of struct Half is not known"},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			c := norm(x, y)
			r.spoil(&c)
			err := check.Stream(&device.Stream{Commands: []device.Command{c}}, []bool{false}, kernels(t), caps())
			switch {
			case r.want == "" && err != nil:
				t.Fatal(err)
			case r.want != "" && (err == nil || !strings.Contains(err.Error(), r.want)):
				t.Fatalf("got %v, want %q", err, r.want)
			}
		})
	}
}

func TestBarriers(t *testing.T) {
	t.Parallel()
	b, other := &remote{1024}, &remote{1024}
	memory := make([]byte, 4096)
	low, high, all := &local{memory[:2048]}, &local{memory[2048:]}, &local{memory}
	part := device.Part
	for _, r := range []struct {
		name     string
		commands []device.Command
		barrier  []bool
		want     string
	}{
		{"what was written is read", []device.Command{copyTo(part(b, 0, 64), part(b, 64, 64)), copyTo(part(b, 64, 64), part(b, 128, 64))}, []bool{false, false}, "commands 0 (copy, y) and 1 (copy, x)"},
		{"what was read is written", []device.Command{copyTo(part(b, 0, 64), part(b, 64, 64)), copyTo(part(b, 128, 64), part(b, 0, 64))}, []bool{false, false}, "commands 0 (copy, x) and 1 (copy, y)"},
		{"written twice, in one byte", []device.Command{copyTo(part(b, 0, 64), part(b, 64, 65)), copyTo(part(b, 0, 64), part(b, 128, 64))}, []bool{false, false}, "commands 0 (copy, y) and 1 (copy, y)"},
		{"read twice", []device.Command{copyTo(part(b, 0, 64), part(b, 64, 64)), copyTo(part(b, 0, 64), part(b, 128, 64))}, []bool{false, false}, ""},
		{"another buffer", []device.Command{copyTo(part(b, 0, 64), part(b, 64, 64)), copyTo(part(other, 64, 64), part(other, 0, 64))}, []bool{false, false}, ""},
		{"within one launch", []device.Command{copyTo(part(b, 0, 64), part(b, 0, 64))}, []bool{false}, ""},
		{"a barrier for nothing", []device.Command{copyTo(part(b, 0, 64), part(b, 64, 64)), copyTo(part(b, 0, 64), part(b, 128, 64))}, []bool{false, true}, "before command 1 (copy) separates nothing"},
		{"a barrier before everything", []device.Command{copyTo(part(b, 0, 64), part(b, 64, 64))}, []bool{true}, "before command 0"},
		{"a barrier too late", []device.Command{copyTo(part(b, 0, 64), part(b, 64, 64)), copyTo(part(b, 64, 64), part(b, 128, 64)), copyTo(part(other, 0, 64), part(other, 64, 64))}, []bool{false, false, true}, "commands 0 (copy, y) and 1"},
		{"a constant table that was written", []device.Command{
			copyTo(part(b, 0, 64), part(b, 64, 64)),
			{Kernel: "add", Groups: [3]int{1, 1, 1}, Threads: [3]int{32, 1, 1}, Args: []device.Arg{part(other, 0, 64), part(other, 64, 64), part(b, 64, 64)}},
		}, []bool{false, false}, "and 1 (add, table)"},
		{"two buffers over the same memory", []device.Command{copyTo(part(low, 0, 64), part(low, 1024, 64)), copyTo(part(all, 1024, 64), part(high, 0, 64))}, []bool{false, false}, "commands 0 (copy, y) and 1 (copy, x)"},
		{"two buffers side by side", []device.Command{copyTo(part(low, 0, 64), part(low, 1984, 64)), copyTo(part(low, 0, 64), part(high, 0, 64))}, []bool{false, false}, ""},
		{"a barrier less than commands", []device.Command{copyTo(part(b, 0, 64), part(b, 64, 64))}, nil, "0 barriers for 1 commands"},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			err := check.Stream(&device.Stream{Commands: r.commands}, r.barrier, kernels(t), caps())
			switch {
			case r.want == "" && err != nil:
				t.Fatal(err)
			case r.want != "" && (err == nil || !strings.Contains(err.Error(), r.want)):
				t.Fatalf("got %v, want %q", err, r.want)
			}
		})
	}
}

// Of whatever stream, the planner's barriers pass; without any one of them,
// or with any more, they do not.
func TestPlannerAndCheckAgree(t *testing.T) {
	t.Parallel()
	kernel := kernels(t)
	memory := make([]byte, 4096)
	buffers := []device.Buffer{&remote{512}, &remote{512}, &local{memory[:512]}, &local{memory[64:576]}}
	rapid.Check(t, func(t *rapid.T) {
		var s device.Stream
		arg := func() device.Arg {
			b := rapid.SampledFrom(buffers).Draw(t, "buffer")
			from := 16 * rapid.IntRange(0, 12).Draw(t, "from")
			return device.Part(b, int64(from), int64(rapid.IntRange(1, 128).Draw(t, "bytes")))
		}
		for range rapid.IntRange(1, 14).Draw(t, "commands") {
			if rapid.Bool().Draw(t, "norm") {
				s.Add(norm(arg(), arg()))
			} else {
				s.Add(copyTo(arg(), arg()))
			}
		}
		barrier, err := device.Order(&s, kernel)
		if err != nil {
			t.Fatal(err)
		}
		if err := check.Stream(&s, barrier, kernel, caps()); err != nil {
			t.Fatal(err)
		}
		testGraph(t, &s, kernel)
		for i := range barrier {
			barrier[i] = !barrier[i]
			if err := check.Stream(&s, barrier, kernel, caps()); err == nil {
				// A barrier more may save a later one, which then has no effect,
				// or move one to an earlier place: only then is it in order.
				if !barrier[i] {
					t.Fatalf("nobody misses the barrier before command %d", i)
				}
				if !moved(&s, barrier, kernel, i) {
					t.Fatalf("one barrier more, before command %d, is not noticed", i)
				}
			}
			barrier[i] = !barrier[i]
		}
	})
}

// testGraph takes away and adds to what commands wait for.
func testGraph(t *rapid.T, s *device.Stream, kernel func(string) (msl.Kernel, bool)) {
	waits, err := device.Dependencies(s, kernel)
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Graph(s, waits, kernel, caps()); err != nil {
		t.Fatal(err)
	}
	for i, list := range waits {
		for k := range list {
			waits[i] = slices.Delete(slices.Clone(list), k, k+1)
			if check.Graph(s, waits, kernel, caps()) == nil {
				t.Fatalf("nobody misses that command %d waits for %d", i, list[k])
			}
			waits[i] = list
		}
		for more := range i {
			waits[i] = append(slices.Clone(list), more)
			if check.Graph(s, waits, kernel, caps()) == nil && !slices.Contains(list, more) {
				t.Fatalf("nobody notices that command %d waits for %d", i, more)
			}
			waits[i] = list
		}
	}
}

// What commands wait for must come before them, and be told of each.
func TestGraphFaults(t *testing.T) {
	t.Parallel()
	b := &remote{1024}
	c := copyTo(device.Part(b, 0, 64), device.Part(b, 64, 64))
	s := &device.Stream{Commands: []device.Command{c, c}}
	for want, waits := range map[string][][]int{
		"":                                {nil, {0}},
		"of 2":                            {nil},
		"do not wait for one another":     {nil, nil},
		"waits for command 1, which does": {nil, {1}},
		"waits for command 0 twice":       {nil, {0}, {0, 1}},
	} {
		s := s
		if len(waits) == 3 {
			s = &device.Stream{Commands: []device.Command{c, c, c}}
		}
		err := check.Graph(s, waits, kernels(t), caps())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: got %v, want %q", waits, err, want)
		}
	}
}

// moved says that a barrier at i separates some command before it, since the
// barrier before, from one after it.
func moved(s *device.Stream, barrier []bool, kernel func(string) (msl.Kernel, bool), i int) bool {
	from, to := i-1, i
	for from > 0 && !barrier[from] {
		from--
	}
	for to+1 < len(barrier) && !barrier[to+1] {
		to++
	}
	for a := max(from, 0); a < i; a++ {
		for b := i; b <= to; b++ {
			pair := &device.Stream{Commands: []device.Command{s.Commands[a], s.Commands[b]}}
			if o, err := device.Order(pair, kernel); err == nil && o[1] {
				return true
			}
		}
	}
	return false
}

// What a check costs: a decode step has some 280 launches.
func BenchmarkStream(b *testing.B) {
	kernel := kernels(b)
	x, y := &remote{1 << 20}, &remote{1 << 20}
	var s device.Stream
	for i := range int64(140) {
		s.Add(norm(device.Part(x, i*1024, 1024), device.Part(y, 0, 4096)))
		s.Add(copyTo(device.Part(y, 0, 4096), device.Part(x, 1<<19, 4096)))
	}
	barrier, err := device.Order(&s, kernel)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := check.Stream(&s, barrier, kernel, caps()); err != nil {
			b.Fatal(err)
		}
	}
}
