package checkpoint

import (
	"fmt"
	"iter"
	"strings"
)

const (
	layerPrefix  = "language_model.model.layers."
	visionPrefix = "vision_tower."
)

// Spec is a tensor that the layout asks for.
type Spec struct {
	Name  string
	DType DType
	Shape []int
	// Bits is that of the quantized matrix the tensor is a part of, 0 for a
	// tensor that is not quantized.
	Bits int
}

// layout collects what a configuration asks for.
type layout struct{ yield func(Spec) bool }

// plain is an unquantized BF16 tensor.
func (l layout) plain(name string, shape ...int) bool {
	return l.yield(Spec{Name: name, DType: BF16, Shape: shape})
}

// matrix is a quantized one: codes, scales and biases. The last of its
// dimensions is the input's.
func (l layout) matrix(name string, bits int, shape ...int) bool {
	last := len(shape) - 1
	with := func(n int) []int { return append(append([]int(nil), shape[:last]...), n) }
	return l.yield(Spec{name + ".weight", U32, with(shape[last] * bits / 32), bits}) &&
		l.yield(Spec{name + ".scales", BF16, with(shape[last] / GroupSize), bits}) &&
		l.yield(Spec{name + ".biases", BF16, with(shape[last] / GroupSize), bits})
}

// Tensors yields every tensor that a checkpoint with this configuration has,
// in the order in which the converter fills its shards. Names outside it are errors, apart from those that begin
// with "vision_tower.".
func (c Config) Tensors() iter.Seq[Spec] {
	return func(yield func(Spec) bool) {
		l := layout{yield}
		ok := l.matrix("language_model.model.embed_tokens", WeightBits, c.VocabSize, c.HiddenSize)
		for i := 0; ok && i < c.NumLayers(); i++ {
			ok = c.layer(l, fmt.Sprintf("%s%d.", layerPrefix, i), c.FullAttention[i])
		}
		_ = ok && l.plain("language_model.model.norm.weight", c.HiddenSize) &&
			l.matrix("language_model.lm_head", WeightBits, c.VocabSize, c.HiddenSize)
	}
}

func (c Config) layer(l layout, name string, full bool) bool {
	mixer := c.deltaNet
	if full {
		mixer = c.attention
	}
	return mixer(l, name) &&
		l.plain(name+"input_layernorm.weight", c.HiddenSize) &&
		l.plain(name+"post_attention_layernorm.weight", c.HiddenSize) &&
		c.experts(l, name+"mlp.")
}

func (c Config) deltaNet(l layout, layer string) bool {
	n := layer + "linear_attn."
	values := c.LinearValueHeads * c.LinearValueDim
	return l.plain(n+"conv1d.weight", c.ConvChannels(), c.ConvKernel, 1) &&
		l.matrix(n+"in_proj_qkv", WeightBits, c.ConvChannels(), c.HiddenSize) &&
		l.matrix(n+"in_proj_z", WeightBits, values, c.HiddenSize) &&
		l.matrix(n+"in_proj_b", WeightBits, c.LinearValueHeads, c.HiddenSize) &&
		l.matrix(n+"in_proj_a", WeightBits, c.LinearValueHeads, c.HiddenSize) &&
		l.plain(n+"dt_bias", c.LinearValueHeads) &&
		l.plain(n+"A_log", c.LinearValueHeads) &&
		l.plain(n+"norm.weight", c.LinearValueDim) &&
		l.matrix(n+"out_proj", WeightBits, c.HiddenSize, values)
}

func (c Config) attention(l layout, layer string) bool {
	n := layer + "self_attn."
	heads, kv := c.NumHeads*c.HeadDim, c.NumKVHeads*c.HeadDim
	return l.matrix(n+"q_proj", WeightBits, 2*heads, c.HiddenSize) && // a query and a gate each
		l.matrix(n+"k_proj", WeightBits, kv, c.HiddenSize) &&
		l.matrix(n+"v_proj", WeightBits, kv, c.HiddenSize) &&
		l.plain(n+"q_norm.weight", c.HeadDim) &&
		l.plain(n+"k_norm.weight", c.HeadDim) &&
		l.matrix(n+"o_proj", WeightBits, c.HiddenSize, heads)
}

func (c Config) experts(l layout, n string) bool {
	return l.matrix(n+"gate", RouterBits, c.NumExperts, c.HiddenSize) &&
		l.matrix(n+"switch_mlp.gate_proj", WeightBits, c.NumExperts, c.ExpertWidth, c.HiddenSize) &&
		l.matrix(n+"switch_mlp.up_proj", WeightBits, c.NumExperts, c.ExpertWidth, c.HiddenSize) &&
		l.matrix(n+"switch_mlp.down_proj", WeightBits, c.NumExperts, c.HiddenSize, c.ExpertWidth) &&
		l.matrix(n+"shared_expert_gate", RouterBits, 1, c.HiddenSize) &&
		l.matrix(n+"shared_expert.gate_proj", WeightBits, c.SharedWidth, c.HiddenSize) &&
		l.matrix(n+"shared_expert.up_proj", WeightBits, c.SharedWidth, c.HiddenSize) &&
		l.matrix(n+"shared_expert.down_proj", WeightBits, c.HiddenSize, c.SharedWidth)
}

// checkTensors notes every difference between the tensors that are there and
// those of the layout.
func checkTensors(c Config, have map[string]Tensor, p *Problems) {
	want := map[string]bool{}
	for s := range c.Tensors() {
		want[s.Name] = true
		t, ok := have[s.Name]
		switch {
		case !ok:
			p.addf("%s is missing", s.Name)
		case !t.is(s.DType, s.Shape):
			p.addf("%s is %s%v, must be %s%v%s", s.Name, t.DType, t.Shape, s.DType, s.Shape, otherBits(s, t))
		}
	}
	for _, name := range sortedKeys(have) {
		if !want[name] && !strings.HasPrefix(name, visionPrefix) {
			p.addf("%s is not part of this model", name)
		}
	}
}

// otherBits explains a wrong shape of codes by the bits it would be right for.
func otherBits(s Spec, t Tensor) string {
	last := len(s.Shape) - 1
	if s.DType != U32 || t.DType != U32 || len(t.Shape) != len(s.Shape) || t.Shape[last] == s.Shape[last] {
		return ""
	}
	if bits := t.Shape[last] * s.Bits / s.Shape[last]; bits*s.Shape[last] == t.Shape[last]*s.Bits {
		return fmt.Sprintf(" (it has %d bits a weight, must have %d)", bits, s.Bits)
	}
	return ""
}
