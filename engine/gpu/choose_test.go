package gpu_test

import (
	"math"
	"slices"
	"testing"

	"weir/engine/device/devicetest"
	"weir/engine/device/emulator"
	"weir/engine/gpu"
)

// What the device draws has the distribution that settings leave of the logits,
// a seed and a place draw the same again, and the most probable token is still
// taken by those who ask for that.
func TestFeedDraws(t *testing.T) {
	t.Parallel()
	dev := devicetest.Watch(open(t, emulator.Options{Seed: 3}))
	m, ref := openModel(t, small(t, false), dev, gpu.Options{Chunk: 32, Block: 64}), openReference(t)
	start := newState(t, m)
	extend(t, m, start, ref.tokens[:4], 4)
	draw := func(n int, how gpu.Sampling) ([]int32, []float32) {
		t.Helper()
		s, err := start.Clone(false)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Free()
		var got []int32
		logits := make([]float32, vocab)
		if _, err := m.Feed(t.Context(), s, ref.tokens[4], n, how, logits, func(id int32) bool {
			got = append(got, id)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		return got, logits
	}
	_, logits := draw(1, gpu.Sampling{})
	order := make([]int32, vocab)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		if logits[a] > logits[b] {
			return -1
		}
		return 1
	})
	const k, n, hot = 4, 120, 0.7
	total, weight := 0.0, map[int32]float64{}
	for _, id := range order[:k] {
		weight[id] = math.Exp(float64(logits[id]-logits[order[0]]) / hot)
		total += weight[id]
	}
	seen := map[int32]int{}
	for seed := range uint32(n) {
		got, after := draw(1, gpu.Sampling{Temperature: hot, TopK: k, SeedLow: seed})
		if weight[got[0]] == 0 || !slices.Equal(after, logits) {
			t.Fatalf("seed %d: token %d is not among the %d greatest, or logits differ", seed, got[0], k)
		}
		seen[got[0]]++
	}
	chi := 0.0
	for id, w := range weight {
		want := n * w / total
		chi += (float64(seen[id]) - want) * (float64(seen[id]) - want) / want
	}
	if chi > 16.3 { // one in a thousand with three degrees of freedom
		t.Errorf("chi² is %.1f: %v, want shares %v of %.3f", chi, seen, weight, total)
	}
	how := gpu.Sampling{Temperature: 3, TopP: 0.9, SeedHigh: 7}
	first, _ := draw(6, how)
	again, _ := draw(6, how)
	how.SeedHigh++
	if other, _ := draw(6, how); !slices.Equal(first, again) || slices.Equal(first, other) {
		t.Errorf("%v, the same again %v, and with another seed %v", first, again, other)
	}
	greedy, _ := draw(4, gpu.Sampling{})
	if one, _ := draw(4, gpu.Sampling{Temperature: 1, TopK: 1}); !slices.Equal(one, greedy) {
		t.Errorf("of one token %v is drawn, and the most probable are %v", one, greedy)
	}
	if err := dev.Wrong(); err != nil {
		t.Error(err)
	}
}
