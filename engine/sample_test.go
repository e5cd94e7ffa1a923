package engine

import (
	"math"
	"slices"
	"testing"

	"weir/engine/cpu"
)

// draws samples n times and counts.
func draws(t *testing.T, s Sampling, logits []float32, n int, prompt ...int32) []int {
	t.Helper()
	m := newSampler(s, cpu.Best(), len(logits), prompt)
	count := make([]int, len(logits))
	for range n {
		id, err := m.choose(logits, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		count[id]++
	}
	return count
}

func logs(p ...float64) []float32 {
	l := make([]float32, len(p))
	for i, x := range p {
		l[i] = float32(math.Log(x))
	}
	return l
}

func TestSamplingFollowsProbabilities(t *testing.T) {
	t.Parallel()
	p := []float64{0.05, 0.5, 0.25, 0.15, 0.05}
	const n = 40000
	for _, c := range []struct {
		why  string
		s    Sampling
		want []float64 // zero: must not come at all
	}{
		{"temperature one is the distribution", Sampling{Temperature: 1}, p},
		{"a low temperature sharpens", Sampling{Temperature: 0.5}, []float64{.0025 / .34, .25 / .34, .0625 / .34, .0225 / .34, .0025 / .34}},
		{"top_k keeps two", Sampling{Temperature: 1, TopK: 2}, []float64{0, .5 / .75, .25 / .75, 0, 0}},
		{"top_k over the vocabulary keeps all", Sampling{Temperature: 1, TopK: 99}, p},
		{"top_k keeps the lower id of a tie", Sampling{Temperature: 1, TopK: 4}, []float64{.05 / .95, .5 / .95, .25 / .95, .15 / .95, 0}},
		{"top_p stops at the sum", Sampling{Temperature: 1, TopP: 0.7}, []float64{0, .5 / .75, .25 / .75, 0, 0}},
		{"top_p keeps one at least", Sampling{Temperature: 1, TopP: 1e-9}, []float64{0, 1, 0, 0, 0}},
		{"top_p counts within top_k", Sampling{Temperature: 1, TopK: 2, TopP: 0.6}, []float64{0, 1, 0, 0, 0}},
		{"min_p is relative to the greatest", Sampling{Temperature: 1, MinP: 0.2}, []float64{0, .5 / .9, .25 / .9, .15 / .9, 0}},
		{"min_p after top_p", Sampling{Temperature: 1, TopP: 0.95, MinP: 0.4}, []float64{0, .5 / .75, .25 / .75, 0, 0}},
		{"a bias of -100 bans", Sampling{Temperature: 1, Bias: map[int32]float64{1: -100}}, []float64{.1, 0, .5, .3, .1}},
	} {
		got := draws(t, c.s, logs(p...), n)
		for id, w := range c.want {
			sigma := math.Sqrt(w * (1 - w) / n)
			if d := math.Abs(float64(got[id])/n - w); d > 5*sigma {
				t.Errorf("%s: token %d came %d times of %d, want %.3f", c.why, id, got[id], n, w)
			}
		}
	}
}

func TestGreedyTakesLowestOfEquals(t *testing.T) {
	t.Parallel()
	if got := draws(t, Sampling{}, []float32{1, 3, 2, 3}, 3); got[1] != 3 {
		t.Errorf("choices %v", got)
	}
}

func TestNoNumbersGiveNoToken(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, temperature := range []float64{0, 1} {
		m := newSampler(Sampling{Temperature: temperature}, cpu.Best(), 2, nil)
		if _, err := m.choose([]float32{nan, nan}, nil, false); err == nil {
			t.Error("chose among no numbers")
		}
		if id, err := m.choose([]float32{nan, -2}, nil, false); err != nil || id != 1 {
			t.Errorf("chose %d, %v beside no number", id, err)
		}
		if id, err := m.choose([]float32{0, inf}, nil, false); err != nil || id != 1 {
			t.Errorf("chose %d, %v beside infinity", id, err)
		}
	}
}

func TestPenalties(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why  string
		s    Sampling
		want []int32
	}{
		{"without any, the greatest repeats", Sampling{}, []int32{0, 0, 0, 0}},
		{"frequency grows with each time", Sampling{Frequency: 0.3}, []int32{0, 0, 1, 0}},
		{"presence counts once", Sampling{Presence: 0.6}, []int32{0, 1, 0, 0}},
		// 2/2 < 1.5, then 1.5/2 < 2/2.
		{"repetition counts the prompt", Sampling{Repetition: 2}, []int32{1, 0, 0, 0}},
	} {
		m := newSampler(c.s, cpu.Best(), 3, []int32{0})
		logits := []float32{2, 1.5, -9}
		var got []int32
		for range c.want {
			id, err := m.choose(logits, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			m.accept(id)
			got = append(got, id)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
	}
}

func TestSeedRepeats(t *testing.T) {
	t.Parallel()
	logits := make([]float32, 300)
	row := func(seed uint64) []int32 {
		m := newSampler(Sampling{Temperature: 1, Seed: seed}, cpu.Best(), len(logits), nil)
		var ids []int32
		for range 20 {
			id, err := m.choose(logits, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		return ids
	}
	if !slices.Equal(row(1), row(1)) {
		t.Error("the same seed gave other tokens")
	}
	if slices.Equal(row(1), row(2)) {
		t.Error("another seed gave the same tokens")
	}
}

func TestLogprobs(t *testing.T) {
	t.Parallel()
	m := newSampler(Sampling{Logprobs: true, TopLogprobs: 3, Bias: map[int32]float64{3: 50}}, cpu.Best(), 4, nil)
	own, top := m.logprobs(logs(0.2, 0.4, 0.2, 0.2), 3)
	if math.Abs(own.P-math.Log(0.2)) > 1e-6 || own.ID != 3 {
		t.Errorf("own %v: a bias must not change what is reported", own)
	}
	var order []int32
	for _, l := range top {
		order = append(order, l.ID)
	}
	if !slices.Equal(order, []int32{1, 0, 2}) {
		t.Errorf("top tokens %v, want the greatest first and lower ids of equals", order)
	}
}
