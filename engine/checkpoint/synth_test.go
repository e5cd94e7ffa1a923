package checkpoint_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/engine/checkpoint"
)

// tiny is a configuration small enough to be written for each test.
func tiny() checkpoint.Config {
	c := checkpoint.Small()
	c.HiddenSize, c.VocabSize, c.NumExperts = 128, 256, 4
	c.FullAttention = []bool{false, true}
	c.EOS = []int{255}
	return c
}

func synth(t testing.TB, c checkpoint.Config, o checkpoint.SynthOptions) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := checkpoint.Synth(t.Context(), dir, c, o); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSynthOpens(t *testing.T) {
	t.Parallel()
	rows := map[string]checkpoint.SynthOptions{
		"one file": {},
		// Small shards divide many triples.
		"shards": {ShardBytes: 20_000},
	}
	for name, o := range rows {
		dir := synth(t, tiny(), o)
		c, err := checkpoint.Open(dir, checkpoint.Options{AnyDimensions: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(tiny(), c.Config()); d != "" {
			t.Errorf("%s: config differs (-want +got):\n%s", name, d)
		}
		if err := c.CheckFinite(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "shards" && len(c.Shards()) < 10 {
			t.Errorf("only %d shards", len(c.Shards()))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A number that changes here changes every benchmark made with a seed.
func TestSynthDeterministic(t *testing.T) {
	t.Parallel()
	digest := func(o checkpoint.SynthOptions) string {
		raw, err := os.ReadFile(filepath.Join(synth(t, tiny(), o), "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(raw)
		return hex.EncodeToString(sum[:8])
	}
	one := digest(checkpoint.SynthOptions{Seed: 1})
	if want := "7fd54e2a8410eb6f"; one != want {
		t.Errorf("seed 1 has digest %s, want %s", one, want)
	}
	if digest(checkpoint.SynthOptions{Seed: 1}) != one || digest(checkpoint.SynthOptions{Seed: 2}) == one {
		t.Error("the seed does not decide the weights")
	}
}

// Weights must be centred and of the size that keeps activations finite.
func TestSynthSpread(t *testing.T) {
	t.Parallel()
	c, err := checkpoint.Open(synth(t, tiny(), checkpoint.SynthOptions{}), checkpoint.Options{AnyDimensions: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for module, want := range map[string]float64{
		"language_model.model.embed_tokens":                      1,
		"language_model.lm_head":                                 1 / math.Sqrt(128),
		"language_model.model.layers.0.mlp.gate":                 2 / math.Sqrt(128),
		"language_model.model.layers.0.linear_attn.out_proj":     1 / math.Sqrt(1024),
		"language_model.model.layers.1.mlp.switch_mlp.down_proj": 1 / math.Sqrt(256),
	} {
		m, ok := c.Matrix(module)
		if !ok {
			t.Fatalf("%s is missing", module)
		}
		w := make([]float32, m.Experts*m.Rows*m.Cols)
		checkpoint.Dequantize(w, m.Codes, m.Scales, m.Biases, m.Bits)
		var sum, squares float64
		for _, x := range w {
			sum, squares = sum+float64(x), squares+float64(x)*float64(x)
		}
		mean, std := sum/float64(len(w)), math.Sqrt(squares/float64(len(w)))
		if math.Abs(mean) > 0.15*want || std < 0.8*want || std > 1.2*want {
			t.Errorf("%s: mean %v, deviation %v, want 0 and %v", module, mean, std, want)
		}
	}
}

func TestSynthRefuses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.Synth(ctx, used, tiny(), checkpoint.SynthOptions{}); err == nil {
		t.Error("a folder with files was taken")
	}
	bad := tiny()
	bad.HiddenSize = 100
	var p *checkpoint.Problems
	if err := checkpoint.Synth(ctx, t.TempDir(), bad, checkpoint.SynthOptions{}); !errors.As(err, &p) {
		t.Errorf("hidden size 100: %v", err)
	}
	if err := checkpoint.Synth(ctx, t.TempDir(), checkpoint.Config{}, checkpoint.SynthOptions{}); !errors.As(err, &p) {
		t.Errorf("no dimensions: %v", err)
	}
}

// A run that was cancelled must not leave something that opens.
func TestSynthCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	err := checkpoint.Synth(ctx, dir, tiny(), checkpoint.SynthOptions{Progress: func(done, _ int64) {
		if done > 100_000 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := checkpoint.Open(dir, checkpoint.Options{AnyDimensions: true}); err == nil {
		t.Error("half a checkpoint opens")
	}
}

// Memory must not grow with the model: 44 MB are written here.
func TestSynthMemory(t *testing.T) {
	c := checkpoint.Small()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	synth(t, c, checkpoint.SynthOptions{})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 40<<20 {
		t.Errorf("allocated %d bytes", n) // a header and blocks of 256 kB
	}
}

func BenchmarkSynth(b *testing.B) {
	b.ReportAllocs()
	var total int64
	for b.Loop() {
		synth(b, checkpoint.Small(), checkpoint.SynthOptions{Progress: func(_, n int64) { total = n }})
	}
	b.SetBytes(total)
}
