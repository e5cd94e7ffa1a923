package engine

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"weir/engine/cpu"
)

// Sampling says how a token is chosen from logits. The zero value is greedy:
// the greatest logit, the lowest id among equals.
type Sampling struct {
	// Temperature divides the logits; zero, and whatever is below 1e-4, is greedy.
	Temperature float64
	// TopK keeps the k greatest; zero keeps all.
	TopK int
	// TopP keeps the fewest tokens, greatest first, whose probabilities sum to
	// at least it; zero and one keep all.
	TopP float64
	// MinP keeps tokens at least this fraction as probable as the greatest.
	MinP float64
	// Repetition divides positive logits of tokens seen, and multiplies negative
	// ones; zero and one do nothing.
	Repetition float64
	// Frequency is taken off a logit for each time its token was generated,
	// Presence once if it was generated at all.
	Frequency, Presence float64
	// Bias is added to the logits of its tokens; -100 bans, as far as can be.
	Bias map[int32]float64
	// Seed makes sampling repeatable: with the same seed, logits and settings
	// the same tokens come, on a GPU others than on the processor. It does not
	// matter for greedy.
	Seed uint64
	// Logprobs reports how probable each token was, and TopLogprobs that many
	// of the most probable ones at its place.
	Logprobs    bool
	TopLogprobs int
}

// validate refuses what no reading of the settings makes sense of.
func (s *Sampling) validate(vocab int) error {
	for _, c := range []struct {
		name  string
		value float64
		lo    float64
		hi    float64
	}{
		{"temperature", s.Temperature, 0, 100},
		{"top_p", s.TopP, 0, 1},
		{"min_p", s.MinP, 0, 1},
		{"repetition penalty", s.Repetition, 0, 100},
		{"frequency penalty", s.Frequency, -100, 100},
		{"presence penalty", s.Presence, -100, 100},
	} {
		if !(c.value >= c.lo && c.value <= c.hi) { // a NaN is in no range
			return fmt.Errorf("%s %g is not from %g to %g", c.name, c.value, c.lo, c.hi)
		}
	}
	if s.TopK < 0 || s.TopLogprobs < 0 {
		return fmt.Errorf("top_k %d or top_logprobs %d is negative", s.TopK, s.TopLogprobs)
	}
	for id, b := range s.Bias {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("bias for token %d: %w", id, ErrToken)
		}
		if math.IsNaN(b) || math.IsInf(b, 1) {
			return fmt.Errorf("bias %g is not a number to add", b)
		}
	}
	return nil
}

// Logprob is a token and the logarithm of its probability.
type Logprob struct {
	ID int32
	P  float64
}

// sampler chooses the tokens of one reply. Its memory is made once.
type sampler struct {
	Sampling
	k      cpu.Kernels
	rng    *rand.Rand
	logits []float32 // after penalties and bias
	weight []float32 // of each token, that of the most probable being 1
	ids    []int32   // candidates
	seen   map[int32]int
	past   map[int32]bool // tokens of prompt and reply
}

func newSampler(s Sampling, k cpu.Kernels, vocab int, prompt []int32) *sampler {
	m := &sampler{
		Sampling: s, k: k, rng: rand.New(rand.NewPCG(s.Seed, 0x5745_4952)),
		logits: make([]float32, vocab), seen: map[int32]int{}, past: map[int32]bool{},
	}
	if s.Temperature > 0 {
		m.weight, m.ids = make([]float32, vocab), make([]int32, 0, vocab)
	}
	if s.repeats() {
		for _, id := range prompt {
			m.past[id] = true
		}
	}
	return m
}

func (s *Sampling) repeats() bool { return s.Repetition > 0 && s.Repetition != 1 }

// accept notes that a token was generated.
func (m *sampler) accept(id int32) {
	m.seen[id]++
	m.past[id] = true
}

// coldest is the temperature under which the quotients of float32 logits lose
// their meaning, and sampling is greedy for all that matters.
const coldest = 1e-4

// choose picks from logits, if constrained only what allowed has a bit for.
func (m *sampler) choose(logits []float32, allowed []uint64, constrained bool) (int32, error) {
	m.adjust(logits)
	if constrained {
		m.ban(allowed)
	}
	best := greatest(m.logits)
	if best < 0 {
		return 0, ErrNoToken
	}
	if m.Temperature < coldest {
		return best, nil
	}
	return m.draw(best), nil
}

// ban leaves out the tokens that allowed has no bit for.
func (m *sampler) ban(allowed []uint64) {
	never := float32(math.Inf(-1))
	for from := 0; from < len(m.logits); from += 64 {
		word := uint64(0)
		if from/64 < len(allowed) {
			word = allowed[from/64]
		}
		if word == math.MaxUint64 {
			continue
		}
		for i := range m.logits[from:min(from+64, len(m.logits))] {
			if word>>i&1 == 0 {
				m.logits[from+i] = never
			}
		}
	}
}

// adjust copies logits with penalties and bias.
func (m *sampler) adjust(logits []float32) {
	copy(m.logits, logits)
	if m.repeats() {
		r := float32(m.Repetition)
		for id := range m.past {
			if m.logits[id] > 0 {
				m.logits[id] /= r
			} else {
				m.logits[id] *= r
			}
		}
	}
	for id, n := range m.seen {
		m.logits[id] -= float32(m.Frequency*float64(n) + m.Presence)
	}
	for id, b := range m.Bias {
		m.logits[id] += float32(b)
	}
}

// greatest is the lowest id with the greatest logit, or -1 when none is a
// number above minus infinity.
func greatest(logits []float32) int32 {
	best, top := int32(-1), float32(math.Inf(-1))
	for id, x := range logits {
		if x > top {
			best, top = int32(id), x
		}
	}
	return best
}

// draw samples after narrowing: to k tokens, then to those that make up p of
// what is left, then to those near enough to the greatest.
func (m *sampler) draw(best int32) int32 {
	t, top := float32(m.Temperature), m.logits[best]
	if math.IsInf(float64(top), 1) {
		return best
	}
	for id, x := range m.logits {
		m.weight[id] = (x - top) / t
		if x != x {
			m.weight[id] = float32(math.Inf(-1))
		}
	}
	total := float64(m.k.Exp(m.weight, 0))
	if m.TopK == 0 && (m.TopP == 0 || m.TopP == 1) {
		m.gather(float32(m.MinP))
		return m.pick()
	}
	m.narrow(total)
	return m.pick()
}

// narrow leaves the candidates in m.ids. Sorting a whole vocabulary takes
// longer than a step of a small model; nearly always the few tokens above the
// first floors are enough.
func (m *sampler) narrow(total float64) {
	enough := func() bool {
		if m.TopK > 0 {
			return len(m.ids) >= m.TopK
		}
		return m.mass(m.ids) >= m.TopP*total
	}
	for _, floor := range []float32{1e-2, 1e-4, 1e-8, 0} {
		if m.gather(floor); enough() {
			break
		}
	}
	slices.SortFunc(m.ids, func(a, b int32) int {
		return cmp.Or(cmp.Compare(m.weight[b], m.weight[a]), cmp.Compare(a, b))
	})
	if m.TopK > 0 {
		m.ids = m.ids[:min(m.TopK, len(m.ids))]
		total = m.mass(m.ids)
	}
	sum := 0.0
	for i, id := range m.ids {
		w := float64(m.weight[id])
		if i > 0 && w < m.MinP { // the greatest has weight 1
			m.ids = m.ids[:i]
			return
		}
		if sum += w; m.TopP > 0 && sum >= m.TopP*total {
			m.ids = m.ids[:i+1]
			return
		}
	}
}

// gather takes the ids with at least this weight, and more than none.
func (m *sampler) gather(floor float32) {
	m.ids = m.ids[:0]
	for id, w := range m.weight {
		if w >= floor && w > 0 {
			m.ids = append(m.ids, int32(id))
		}
	}
}

func (m *sampler) mass(ids []int32) float64 {
	sum := 0.0
	for _, id := range ids {
		sum += float64(m.weight[id])
	}
	return sum
}

// pick draws one of the candidates by weight.
func (m *sampler) pick() int32 {
	at := m.rng.Float64() * m.mass(m.ids)
	for _, id := range m.ids {
		if at -= float64(m.weight[id]); at < 0 {
			return id
		}
	}
	return m.ids[len(m.ids)-1]
}

// logprobs reports id and the most probable tokens by the model's own logits,
// without temperature, penalties or bias.
func (m *sampler) logprobs(logits []float32, id int32) (own Logprob, top []Logprob) {
	if !m.Logprobs {
		return Logprob{ID: id, P: math.NaN()}, nil
	}
	greatest := float64(slices.Max(logits))
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - greatest)
	}
	norm := greatest + math.Log(sum)
	n := min(m.TopLogprobs, len(logits))
	for i, x := range logits {
		p := Logprob{int32(i), float64(x) - norm}
		if n == 0 || (len(top) == n && p.P <= top[n-1].P) {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, p, func(a, b Logprob) int {
			return cmp.Or(cmp.Compare(b.P, a.P), cmp.Compare(a.ID, b.ID))
		})
		top = slices.Insert(top, at, p)[:min(len(top)+1, n)]
	}
	return Logprob{id, float64(logits[id]) - norm}, top
}
