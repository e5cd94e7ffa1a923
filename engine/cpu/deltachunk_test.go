package cpu_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir/engine/cpu"
)

// Chunks of any lengths, from any state, give what the steps give.
func TestChunkedDeltaIsTheRecurrence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		K, V := rapid.SampledFrom([]int{8, 32}).Draw(t, "keys"), rapid.SampledFrom([]int{16, 20}).Draw(t, "values")
		T := rapid.IntRange(1, 100).Draw(t, "tokens")
		k := cpu.Best()
		if rapid.Bool().Draw(t, "plain") {
			k = cpu.Kernels{}
		}
		key, q, v := normals(rng, T*K), normals(rng, T*K), normals(rng, T*V)
		decay, beta := make([]float32, T), make([]float32, T)
		strength := rapid.SampledFrom([]float64{0, 0.01, 1, 200}).Draw(t, "decay") // none, to everything at once
		for i := range T {
			k.L2Norm(key[i*K:(i+1)*K], 1e-6, 1)
			decay[i], beta[i] = float32(-strength*rng.Float64()), rng.Float32()
		}
		state := normals(rng, K*V)
		stepped := slices.Clone(state)
		want, got := make([]float32, T*V), make([]float32, T*V)
		for i := range T {
			k.Delta(want[i*V:(i+1)*V], stepped, key[i*K:(i+1)*K], q[i*K:(i+1)*K], v[i*V:(i+1)*V],
				float32(math.Exp(float64(decay[i]))), beta[i])
		}
		c := cpu.NewDeltaChunk(K, V)
		for lo := 0; lo < T; {
			hi := lo + rapid.IntRange(1, min(cpu.ChunkTokens, T-lo)).Draw(t, "chunk")
			c.Run(k, cpu.Rows{Data: got[lo*V:], Stride: V}, state, cpu.Rows{Data: key[lo*K:], Stride: K},
				cpu.Rows{Data: q[lo*K:], Stride: K}, cpu.Rows{Data: v[lo*V:], Stride: V}, decay[lo:hi], beta[lo:hi])
			lo = hi
		}
		if a, b := apart(got, want), apart(state, stepped); !(a < 2e-5) || !(b < 2e-5) {
			t.Fatalf("output is %.2g and state %.2g from the steps", a, b)
		}
	})
}
