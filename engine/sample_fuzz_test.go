package engine

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"weir/engine/cpu"
)

// Whatever the logits and settings: a token that may come, or ErrNoToken when
// none may, and the same again for the same seed.
func FuzzChoose(f *testing.F) {
	inf, nan := math.Inf(1), math.NaN()
	for _, s := range []struct{ temperature, topP, minP, repetition, presence float64 }{
		{0, 0, 0, 0, 0}, {1, 0.9, 0.1, 1.1, 1}, {1e-300, 1, 1, 100, -100}, {100, 1e-300, 0, 0, 0}, {5e-324, 0, 0, 1, 0},
	} {
		for _, l := range [][]float64{{1, 2, 3}, {nan, inf, -inf}, {-inf, -inf}, {3e38, -3e38, 0}, {0, 0, 0, 0, 0}} {
			f.Add(float32Bytes(l), s.temperature, s.topP, s.minP, s.repetition, s.presence, uint8(3), uint64(1))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, temperature, topP, minP, repetition, presence float64, topK uint8, seed uint64) {
		s := Sampling{
			Temperature: temperature, TopP: topP, MinP: minP, Repetition: repetition, Presence: presence,
			TopK: int(topK), Seed: seed, Logprobs: true, TopLogprobs: 3,
		}
		logits := make([]float32, len(raw)/4)
		for i := range logits {
			logits[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		if len(logits) == 0 || len(logits) > 300 || s.validate(len(logits)) != nil {
			return
		}
		var runs [2][]int32
		for r := range runs {
			m := newSampler(s, cpu.Best(), len(logits), []int32{0})
			for range 3 {
				id, err := m.choose(logits, []uint64{^uint64(1 << 1), math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64}, true)
				if err != nil {
					break
				}
				if id < 0 || int(id) >= len(logits) || id == 1 || logits[id] != logits[id] {
					t.Fatalf("token %d of %d was chosen", id, len(logits))
				}
				if _, top := m.logprobs(logits, id); len(top) > 3 {
					t.Fatalf("%d alternatives of 3", len(top))
				}
				m.accept(id)
				runs[r] = append(runs[r], id)
			}
		}
		if !slices.Equal(runs[0], runs[1]) {
			t.Fatalf("the same seed gave %v and %v", runs[0], runs[1])
		}
	})
}

func float32Bytes(x []float64) []byte {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
	}
	return b
}
