package checkpoint_test

import (
	"testing"

	"weir/engine/checkpoint"
)

const tinyA = "testdata/tiny-a"

func TestOpenTiny(t *testing.T) {
	t.Parallel()
	c, err := checkpoint.Open(tinyA, checkpoint.Options{AnyDimensions: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cfg := c.Config()
	if cfg.HiddenSize != 128 || cfg.NumLayers() != 4 || cfg.RotaryDim != 16 || !cfg.FullAttention[3] || cfg.FullAttention[2] {
		t.Errorf("config is %+v", cfg)
	}
	for s := range cfg.Tensors() {
		if tensor, ok := c.Tensor(s.Name); !ok || len(tensor.Data) == 0 {
			t.Errorf("%s is not there", s.Name)
		}
	}
	m, ok := c.Matrix("language_model.model.layers.0.mlp.switch_mlp.down_proj")
	if !ok || m.Experts != 8 || m.Rows != 128 || m.Cols != 64 || m.Bits != 4 {
		t.Errorf("down_proj is %d x %d x %d of %d bits", m.Experts, m.Rows, m.Cols, m.Bits)
	}
	if m, _ := c.Matrix("language_model.model.layers.3.mlp.shared_expert_gate"); m.Bits != 8 || m.Rows != 1 || m.Cols != 128 {
		t.Errorf("shared_expert_gate is %d x %d of %d bits", m.Rows, m.Cols, m.Bits)
	}
}

// The real dimensions, without flags and without the bytes.
func TestOpenFullSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := checkpoint.Sparse(dir, checkpoint.Full()); err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var mapped, data int
	for _, m := range c.Shards() {
		mapped += len(m)
	}
	misaligned := 0
	for s := range c.Config().Tensors() {
		x, ok := c.Tensor(s.Name)
		if !ok {
			t.Fatalf("%s is not there", s.Name)
		}
		data += len(x.Data)
		if x.Offset%2 != 0 {
			misaligned++
		}
		if &c.Shards()[x.Shard][x.Offset] != &x.Data[0] {
			t.Fatalf("%s is not where it says", s.Name)
		}
	}
	if len(c.Shards()) != 4 || data != 19_508_787_456 || mapped < data || misaligned == 0 {
		t.Errorf("%d shards, %d bytes of %d mapped, %d tensors at odd offsets", len(c.Shards()), data, mapped, misaligned)
	}
	if m, _ := c.Matrix("language_model.model.layers.39.mlp.switch_mlp.down_proj"); m.Experts != 256 || m.Rows != 2048 || m.Cols != 512 || m.Bits != 4 {
		t.Errorf("down_proj is %d x %d x %d of %d bits", m.Experts, m.Rows, m.Cols, m.Bits)
	}
	if _, ok := c.Matrix("language_model.model.norm"); ok {
		t.Error("a norm is no matrix")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := c.Tensor("language_model.model.norm.weight"); ok {
		t.Error("a closed checkpoint has tensors")
	}
	if err := c.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func BenchmarkOpenFullSize(b *testing.B) {
	dir := b.TempDir()
	if err := checkpoint.Sparse(dir, checkpoint.Full()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c, err := checkpoint.Open(dir, checkpoint.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
