package engine_test

import (
	"path/filepath"
	"testing"

	"weir/engine"
	"weir/engine/checkpoint"
)

// odd is a model whose numbers are not those that kernels like: an odd number
// of groups, heads that fill no register, one expert wider than the others'.
func odd() checkpoint.Config {
	c := checkpoint.Full()
	c.HiddenSize, c.VocabSize, c.MaxPositions = 192, 320, 512
	c.FullAttention = []bool{false, true, false}
	c.NumHeads, c.NumKVHeads, c.HeadDim, c.RotaryDim = 8, 2, 40, 10
	c.LinearKeyHeads, c.LinearValueHeads, c.LinearKeyDim, c.LinearValueDim = 2, 8, 24, 40
	c.NumExperts, c.ExpertsPerToken, c.ExpertWidth, c.SharedWidth = 5, 3, 64, 192
	c.EOS = []int{1}
	return c
}

// wide is a model whose rows have whole blocks, as the real one's, and a rest.
func wide() checkpoint.Config {
	c := checkpoint.Full()
	c.HiddenSize, c.VocabSize, c.MaxPositions = 576, 256, 512
	c.FullAttention = []bool{false, false, true}
	c.NumHeads, c.NumKVHeads, c.HeadDim, c.RotaryDim = 4, 1, 128, 32
	c.LinearKeyHeads, c.LinearValueHeads, c.LinearKeyDim, c.LinearValueDim = 2, 4, 128, 128
	c.NumExperts, c.ExpertsPerToken, c.ExpertWidth, c.SharedWidth = 3, 2, 512, 64
	c.EOS = []int{1}
	return c
}

// Levels agree on shapes that the reference models do not have, and so do cuts.
func TestOtherShapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]checkpoint.Config{"odd": odd(), "wide": wide()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "model")
			if err := checkpoint.Synth(t.Context(), dir, c, checkpoint.SynthOptions{Seed: 5}); err != nil {
				t.Fatal(err)
			}
			tokens := make([]int32, 20)
			for i := range tokens {
				tokens[i] = int32(i * 37 % 250)
			}
			run := func(o engine.Options) []float32 {
				t.Helper()
				o.AnySize = true
				e, err := engine.Open(dir, o)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := e.Close(); err != nil {
						t.Error(err)
					}
				}()
				s := e.NewSession()
				extend(t, s, tokens)
				return s.Logits()
			}
			want := run(engine.Options{Exact: true, Kernels: "plain", Threads: 1})
			for _, k := range []string{"avx2", "avx512", ""} {
				e, err := engine.Open(dir, engine.Options{AnySize: true, Kernels: k})
				if err != nil {
					continue // this processor lacks it
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if d := apart(run(engine.Options{Exact: true, Kernels: k, Threads: 3}), want); !(d < near) {
					t.Errorf("kernels %q: logits are %.2g from plain ones", k, d)
				}
				whole := run(engine.Options{Kernels: k, Threads: 1})
				if !sameBits(run(engine.Options{Kernels: k, Threads: 3, Chunk: 11}), whole) {
					t.Errorf("kernels %q: chunks of 11 by 3 threads change bits", k)
				}
			}
		})
	}
}
