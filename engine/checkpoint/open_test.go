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
