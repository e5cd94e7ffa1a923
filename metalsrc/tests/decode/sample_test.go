package decode_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

// philox is Philox 4x32-10.
func philox(c [4]uint32, k [2]uint32) [4]uint32 {
	for range 10 {
		a, b := uint64(c[0])*0xd2511f53, uint64(c[2])*0xcd9e8d57
		c = [4]uint32{uint32(b>>32) ^ c[1] ^ k[0], uint32(b), uint32(a>>32) ^ c[3] ^ k[1], uint32(a)}
		k[0], k[1] = k[0]+0x9e3779b9, k[1]+0xbb67ae85
	}
	return c
}

// The published answers, so that reference and kernel are not wrong alike.
func TestPhiloxAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{
			[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
			[2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := philox(c.counter, c.key); got != c.want {
			t.Errorf("philox %x = %x, want %x", c.counter, got, c.want)
		}
	}
}

// kept is what the settings leave, as engine.Sampling defines it, and the
// weights of all tokens.
func kept(logits []float32, how kernels.Sampling) (ids []int, weight []float64) {
	top := float64(slices.Max(logits))
	weight = make([]float64, len(logits))
	for i, x := range logits {
		weight[i] = math.Exp((float64(x) - top) / float64(how.Temperature))
		ids = append(ids, i)
	}
	slices.SortFunc(ids, func(a, b int) int { return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b)) })
	if how.TopK > 0 {
		ids = ids[:min(int(how.TopK), len(ids))]
	}
	total := 0.0
	for _, id := range ids {
		total += weight[id]
	}
	sum := 0.0
	for i, id := range ids {
		if i > 0 && weight[id] < float64(how.MinP) {
			return ids[:i], weight
		}
		if sum += weight[id]; how.TopP > 0 && how.TopP < 1 && sum >= float64(how.TopP)*total {
			return ids[:i+1], weight
		}
	}
	return ids, weight
}

// race is which of the ids wins, and by how many octaves.
func race(ids []int, weight []float64, how kernels.Sampling, pos uint32) (winner int, lead float64) {
	best := math.Inf(-1)
	for _, id := range ids {
		r := philox([4]uint32{uint32(id / 4), pos, 0, 0}, [2]uint32{how.SeedLow, how.SeedHigh})[id%4]
		score := math.Log2(weight[id]) - math.Log2(-math.Log1p(-(float64(r)+0.5)/(1<<32)))
		if score > best {
			winner, lead, best = id, score-best, score
		} else {
			lead = min(lead, best-score)
		}
	}
	return winner, lead
}

type sampler struct {
	b          *devicetest.Bench
	step, ring device.Arg
	program    device.Program
}

// newSampler records one stream over logits, whose steps begin at position 1000:
// it plays over the end of the ring.
func newSampler(t *testing.T, b *devicetest.Bench, logits []float32, how kernels.Sampling, groups int) *sampler {
	t.Helper()
	s := &sampler{b: b, step: devicetest.In(b, []uint32{1, 1000, 1, 0}), ring: devicetest.In(b, make([]uint32, kernels.TokenRing))}
	best := make([]uint32, 2*groups)
	for i := range groups {
		best[2*i] = math.Float32bits(float32(math.Inf(-1)))
	}
	for i, x := range logits { // as head_argmax leaves them: one that has the greatest
		if g := i % groups; x > math.Float32frombits(best[2*g]) {
			best[2*g], best[2*g+1] = math.Float32bits(x), uint32(i)
		}
	}
	settings := []uint32{
		math.Float32bits(how.Temperature), math.Float32bits(how.TopP), math.Float32bits(how.MinP), how.TopK, how.SeedLow, how.SeedHigh,
	}
	stream := &device.Stream{Commands: kernels.Sample(devicetest.In(b, logits), devicetest.In(b, best), devicetest.In(b, settings),
		s.step, s.ring, devicetest.In(b, make([]uint32, kernels.SampleWords)), devicetest.In(b, make([]uint32, 2*groups)), len(logits), groups)}
	p, err := b.Device.Compile(stream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	s.program = p
	return s
}

// play draws a token by playing the recorded stream once more.
func (s *sampler) play(t *testing.T) int {
	t.Helper()
	r, err := s.program.Start()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Wait(); err != nil {
		t.Fatal(err)
	}
	now := devicetest.Out[uint32](s.b, s.step, 4)
	slot := devicetest.Out[uint32](s.b, s.ring, kernels.TokenRing)[(now[1]-1)%kernels.TokenRing]
	if slot != now[0] || now[2] != 1 {
		t.Fatalf("step %v, ring has %d", now, slot)
	}
	return int(now[0])
}

func sampleLogits(r *rand.Rand, n int, spread float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(spread * r.NormFloat64())
	}
	return x
}

// Every draw is the one that the reference draws.
func TestSample(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(21, 1))
	hard := sampleLogits(r, 300, 1)
	hard[0], hard[7], hard[299] = float32(math.Inf(-1)), hard[8], 4.5
	for name, c := range map[string]struct {
		logits []float32
		how    kernels.Sampling
		groups int
	}{
		"everything":          {sampleLogits(r, 300, 1), kernels.Sampling{Temperature: 1}, 3},
		"cold":                {sampleLogits(r, 64, 1), kernels.Sampling{Temperature: 0.1, SeedLow: 5}, 1},
		"hot":                 {sampleLogits(r, 300, 3), kernels.Sampling{Temperature: 5, SeedHigh: 9}, 2},
		"top-k":               {sampleLogits(r, 1025, 2), kernels.Sampling{Temperature: 1, TopK: 20}, 4},
		"top-k of one":        {sampleLogits(r, 70, 2), kernels.Sampling{Temperature: 1, TopK: 1}, 2},
		"top-k of more":       {sampleLogits(r, 10, 2), kernels.Sampling{Temperature: 1, TopK: 20}, 1},
		"top-p":               {sampleLogits(r, 900, 2), kernels.Sampling{Temperature: 1, TopP: 0.9}, 5},
		"small top-p":         {sampleLogits(r, 300, 2), kernels.Sampling{Temperature: 1, TopP: 1e-6}, 1},
		"top-p, flat":         {sampleLogits(r, 2000, 1e-2), kernels.Sampling{Temperature: 1, TopP: 0.5}, 2},
		"min-p":               {sampleLogits(r, 300, 1), kernels.Sampling{Temperature: 1, MinP: 0.2}, 3},
		"as the card says":    {sampleLogits(r, 2000, 3), kernels.Sampling{Temperature: 0.6, TopP: 0.95, TopK: 20, SeedLow: 77}, 3},
		"all three":           {sampleLogits(r, 500, 2), kernels.Sampling{Temperature: 0.8, TopP: 0.8, TopK: 50, MinP: 0.05}, 3},
		"odd logits":          {hard, kernels.Sampling{Temperature: 1, TopP: 0.99}, 3},
		"greedy":              {sampleLogits(r, 300, 1), kernels.Sampling{Temperature: 0}, 3},
		"greedy of the least": {sampleLogits(r, 300, 1), kernels.Sampling{Temperature: 9e-5, TopK: 4}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
				s := newSampler(t, b, c.logits, c.how, c.groups)
				draws := 6
				if b.Fast() {
					draws = 200
				}
				for i := range draws {
					got := s.play(t)
					if c.how.Temperature < 1e-4 {
						if want := slices.Index(c.logits, slices.Max(c.logits)); got != want {
							t.Fatalf("greedy drew %d, want %d", got, want)
						}
						continue
					}
					ids, weight := kept(c.logits, c.how)
					if want, lead := race(ids, weight, c.how, uint32(1000+i)); got != want && lead > 1e-4 {
						t.Fatalf("draw %d is %d, want %d", i, got, want)
					}
				}
			})
		})
	}
}

// The frequencies are those of the softmax, over seeds: a wrong variate could
// be wrong in the reference too.
func TestSampleDistribution(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		logits := []float32{0, 1, 2, 0.5, 1.5, -1, 2, -0.2}
		how := kernels.Sampling{Temperature: 0.7, TopK: 6, SeedLow: 31, SeedHigh: 4}
		s := newSampler(t, b, logits, how, 1)
		draws := 150
		if b.Fast() {
			draws = 20000
		}
		seen := make([]float64, len(logits))
		for range draws {
			seen[s.play(t)]++
		}
		ids, weight := kept(logits, how)
		total, chi := 0.0, 0.0
		for _, id := range ids {
			total += weight[id]
		}
		for _, id := range ids {
			want := float64(draws) * weight[id] / total
			chi += (seen[id] - want) * (seen[id] - want) / want
			seen[id] = 0
		}
		if slices.Max(seen) > 0 {
			t.Fatalf("drawn although cut: %v", seen)
		}
		if chi > 20.5 { // one seed in 1000 at 5 degrees of freedom; ours is fixed
			t.Fatalf("chi square %g over %d draws", chi, draws)
		}
	})
}

// The draw does not depend on how many threadgroups share the work.
func TestSampleGroups(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		logits := sampleLogits(rand.New(rand.NewPCG(3, 3)), 5000, 2)
		how := kernels.Sampling{Temperature: 1, TopP: 0.97, SeedLow: 8}
		var first string
		for _, groups := range []int{1, 2, 7, 20} {
			s, drawn := newSampler(t, b, logits, how, groups), ""
			for range 3 {
				drawn += fmt.Sprint(" ", s.play(t))
			}
			if first == "" {
				first = drawn
			}
			if drawn != first {
				t.Fatalf("%d groups drew%s, one drew%s", groups, drawn, first)
			}
		}
	})
}
