package decode_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

// modelDims are a model's, layers in groups of three of the delta rule and one
// of attention.
type modelDims struct {
	hidden, vocab, groups       int
	attention                   kernels.Attention
	delta                       kernels.Delta
	experts, top, width, shared int
	positions                   int
}

// tinyDims are those of the first reference model, realDims the real one's.
func tinyDims() modelDims {
	return modelDims{
		hidden: 128, vocab: 512, groups: 1, positions: 64,
		attention: kernels.Attention{Heads: 4, KVHeads: 2, HeadDim: 64, Rotary: 16, Eps: testEps},
		delta:     kernels.Delta{KeyHeads: 2, ValueHeads: 4, KeyDim: 32, ValueDim: 32},
		experts:   8, top: 2, width: 64, shared: 64,
	}
}

func realDims(caps device.Caps, positions int) modelDims {
	return modelDims{
		hidden: 2048, vocab: 248320, groups: 10, positions: positions,
		attention: kernels.Attention{Heads: 16, KVHeads: 2, HeadDim: 256, Rotary: 64, Eps: testEps, Caps: caps},
		delta:     kernels.Delta{KeyHeads: 16, ValueHeads: 32, KeyDim: 128, ValueDim: 128},
		experts:   256, top: 8, width: 512, shared: 512,
	}
}

// tokenStream is a whole step, and how many bytes each of its launches reads
// and writes.
type tokenStream struct {
	device.Stream
	bytes      []int
	step, ring device.Arg
	state      []device.Arg
}

func (s *tokenStream) launch(bytes int, c device.Command) {
	s.Add(c)
	s.bytes = append(s.bytes, bytes)
}

// maker makes what a step works on: weights drawn at random for small models,
// zeros for the real one, whose time does not depend on them.
type maker struct {
	b     *devicetest.Bench
	r     *rand.Rand
	zeros bool
}

func (m *maker) memory(bytes int) device.Arg {
	m.b.Helper()
	buf, err := m.b.Device.Alloc(int64(bytes))
	if err != nil {
		m.b.Fatal(err)
	}
	m.b.Cleanup(buf.Free)
	return device.Whole(buf)
}

func (m *maker) matrix(rows, cols, bits int) kernels.Matrix {
	if !m.zeros {
		return newQuantised(m.r, rows, cols, bits).on(m.b)
	}
	return kernels.Matrix{
		Codes: m.memory(rows * cols * bits / 8), Scales: m.memory(rows * cols / 32), Biases: m.memory(rows * cols / 32),
		Rows: rows, Cols: cols, Bits: bits,
	}
}

// experts is a matrix of n experts, each of rows.
func (m *maker) experts(n, rows, cols int) kernels.Matrix {
	a := m.matrix(n*rows, cols, 4)
	a.Rows = rows
	return a
}

func (m *maker) floats(n int) device.Arg {
	if m.zeros {
		return m.memory(4 * n)
	}
	return devicetest.In(m.b, randomF32(m.r, n))
}

func (m *maker) gain(n int) device.Arg {
	if m.zeros {
		return m.memory(2 * n)
	}
	return devicetest.In(m.b, randomBF(m.r, n, 0.5, 1.5))
}

func weightBytes(m kernels.Matrix) int { return m.Rows * m.Cols * (m.Bits*2 + 1) / 16 }

func newTokenStream(m *maker, d modelDims, pos, splits int) *tokenStream {
	caps := m.b.Device.Caps()
	H, a, dl := d.hidden, d.attention, d.delta
	s := &tokenStream{step: devicetest.In(m.b, []uint32{5, uint32(pos), 1, 0}), ring: devicetest.In(m.b, make([]uint32, kernels.TokenRing))}
	high, low := kernels.RopeTables(a.Rotary/2, 1e7)
	h, rope := m.memory(4*H), m.memory(4*a.Rotary)
	s.launch(H*5, kernels.EmbedRow(m.matrix(d.vocab, H, 4), s.step, h))
	s.launch(0, kernels.RopeRows(devicetest.In(m.b, high), devicetest.In(m.b, low), s.step, rope, a.Rotary/2, 1))
	queries, kv := a.Heads*a.HeadDim, a.KVHeads*a.HeadDim
	values := dl.ValueHeads * dl.ValueDim
	parts, stats := m.memory(4*a.Heads*splits*a.HeadDim), m.memory(8*a.Heads*splits)
	deltaIn := dl.Channels() + values + 2*dl.ValueHeads
	proj, x := m.memory(4*max(deltaIn, 2*queries+2*kv)), m.memory(4*max(values, queries))
	logits, gate, sact, act := m.memory(4*d.experts), m.memory(4), m.memory(4*d.shared), m.memory(4*d.top*d.width)
	pick, weight := m.memory(4*d.top), m.memory(4*d.top)
	for i := range 4 * d.groups {
		norm := m.gain(H)
		if i%4 < 3 {
			in, out := m.matrix(deltaIn, H, 4), m.matrix(H, values, 4)
			ring, state := m.memory(16*dl.Channels()), m.memory(4*dl.ValueHeads*dl.KeyDim*dl.ValueDim)
			s.state = append(s.state, ring, state)
			s.launch(weightBytes(in), kernels.QmvNorm(in, h, norm, proj, testEps, caps))
			s.launch(8*dl.ValueHeads*dl.KeyDim*dl.ValueDim, dl.DeltaStep(proj, m.floats(4*dl.Channels()), m.floats(dl.ValueHeads), m.floats(dl.ValueHeads), s.step,
				ring, state, x, dl.Channels()+values, dl.Channels()+values+dl.ValueHeads, 1e-6))
			z := device.Part(proj.Buf, int64(4*dl.Channels()), int64(4*values))
			s.launch(weightBytes(out), kernels.QmvDeltaOut(out, x, z, m.floats(dl.ValueDim), h, dl.ValueDim, testEps, caps.Units))
		} else {
			in, out := m.matrix(2*queries+2*kv, H, 4), m.matrix(H, queries, 4)
			keys, vals := m.memory(2*d.positions*kv), m.memory(2*d.positions*kv)
			s.state = append(s.state, keys, vals)
			s.launch(weightBytes(in), kernels.QmvNorm(in, h, norm, proj, testEps, caps))
			s.launch(4*(pos+1)*kv, a.AttendSplit(proj, m.gain(a.HeadDim), m.gain(a.HeadDim), rope, s.step, keys, vals, parts, stats, splits))
			s.launch(4*splits*queries, a.AttendCombine(parts, stats, proj, x, splits))
			s.launch(weightBytes(out), kernels.QmvAdd(out, x, h, caps.Units))
		}
		norm = m.gain(H)
		router, sgate, shared := m.matrix(d.experts, H, 8), m.matrix(1, H, 8), m.matrix(2*d.shared, H, 4)
		up, gt := m.experts(d.experts, d.width, H), m.experts(d.experts, d.width, H)
		down, sdown := m.experts(d.experts, H, d.width), m.matrix(H, d.shared, 4)
		s.launch(weightBytes(router)+weightBytes(shared), kernels.MoeIn(router, sgate, shared, h, norm, logits, gate, sact, testEps))
		s.launch(2*d.top*weightBytes(up), kernels.MoeGateUp(gt, up, d.experts, d.top, h, norm, logits, act, pick, weight, testEps, caps))
		s.launch(d.top*weightBytes(down)+weightBytes(sdown), kernels.MoeDownAdd(down, sdown, d.top, act, sact, gate, pick, weight, h))
	}
	head := m.matrix(d.vocab, H, 4)
	groups := kernels.HeadGroups(head, caps.Units)
	best := m.memory(kernels.BestBytes * groups)
	s.launch(weightBytes(head), kernels.HeadArgmax(head, h, m.gain(H), m.memory(4*d.vocab), best, testEps, groups, caps))
	s.launch(0, kernels.ArgmaxFinal(best, s.step, s.ring, groups))
	return s
}

// One recorded step, played again and again, makes the tokens that its launches
// make when each is waited for.
func TestTokenReplay(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		const tokens = 3
		m := &maker{b: b, r: rand.New(rand.NewPCG(31, 1))}
		s := newTokenStream(m, tinyDims(), 0, 2)
		p, err := b.Device.Compile(&s.Stream)
		if err != nil {
			t.Fatal(err)
		}
		var runs []device.Run
		for range tokens { // all under way before the first is waited for
			r, err := p.Start()
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, r)
		}
		for _, r := range runs {
			if _, err := r.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if now := devicetest.Out[uint32](b, s.step, 4); now[1] != tokens || now[2] != 1 {
			t.Fatalf("step %v after %d tokens", now, tokens)
		}
		played := devicetest.Out[uint32](b, s.ring, tokens)

		write := func(to device.Arg, n int, first ...byte) {
			if err := b.Device.Write(to.Buf, to.At, append(first, make([]byte, n-len(first))...)); err != nil {
				t.Fatal(err)
			}
		}
		write(s.step, 16, 5, 0, 0, 0, 0, 0, 0, 0, 1)
		write(s.ring, 4*kernels.TokenRing)
		for _, a := range s.state {
			write(a, int(a.End()-a.At))
		}
		for range tokens {
			for i := range s.Commands {
				if err := b.Try(s.Commands[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if waited := devicetest.Out[uint32](b, s.ring, tokens); !slices.Equal(played, waited) {
			t.Fatalf("played %v, one by one %v", played, waited)
		}
		if slices.Max(played) == slices.Min(played) {
			t.Fatalf("the same token always: %v", played)
		}
	})
}

// Rates of a step of the real size, logged: no claim, a figure to look at.
func TestTokenRate(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		if !b.Fast() {
			newTokenStream(&maker{b: b, r: rand.New(rand.NewPCG(1, 1))}, tinyDims(), 3, 1) // it can be recorded
			return
		}
		caps := b.Device.Caps()
		for _, context := range []int{1024, 32768, 131072} {
			d := realDims(caps, context+512)
			s := newTokenStream(&maker{b: b, zeros: true}, d, context, d.attention.Splits(context+512, caps.Units))
			total := 0
			for _, n := range s.bytes {
				total += n
			}
			took := replay(t, b, s, 64)
			t.Logf("context %d: %.0f us a token, %.0f tokens/s, %.0f GB/s over %d launches",
				context, float64(took.Nanoseconds())/1e3, 1/took.Seconds(), float64(total)/float64(took.Nanoseconds()), len(s.Commands))
			logProfile(t, b, s)
		}
	})
}

// replay is the time of a token of a row of them.
func replay(t *testing.T, b *devicetest.Bench, s *tokenStream, tokens int) time.Duration {
	t.Helper()
	p, err := b.Device.Compile(&s.Stream)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	var best time.Duration
	for range 3 {
		began, runs := time.Now(), []device.Run(nil)
		for range tokens {
			r, err := p.Start()
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, r)
		}
		for _, r := range runs {
			if _, err := r.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began) / time.Duration(tokens); best == 0 || took < best {
			best = took
		}
	}
	return best
}

// logProfile logs the time of each kind of launch by itself, from cold caches.
func logProfile(t *testing.T, b *devicetest.Bench, s *tokenStream) {
	t.Helper()
	prof, ok := b.Device.(device.Profiler)
	if !ok {
		return
	}
	times, err := prof.ProfileCold(&s.Stream, 5)
	if err != nil {
		t.Fatal(err)
	}
	type sum struct {
		n, bytes int
		took     time.Duration
	}
	kinds, names := map[string]sum{}, []string(nil)
	for i, c := range s.Commands {
		k, was := kinds[c.Kernel]
		if !was {
			names = append(names, c.Kernel)
		}
		kinds[c.Kernel] = sum{k.n + 1, k.bytes + s.bytes[i], k.took + times[i]}
	}
	for _, name := range names {
		k := kinds[name]
		t.Logf("  %-20s %3d x %6.1f us, %8.0f KB, %5.0f GB/s", name, k.n, float64(k.took.Nanoseconds())/1e3/float64(k.n),
			float64(k.bytes)/float64(k.n)/1e3, float64(k.bytes)/float64(k.took.Nanoseconds()))
	}
}
