package engine

import (
	"errors"
	"fmt"
	"math"

	"weir/engine/checkpoint"
	"weir/engine/cpu"
)

func newDims(c checkpoint.Config) (dims, error) {
	d := dims{
		vocab: c.VocabSize, hidden: c.HiddenSize, layers: c.NumLayers(), full: c.FullAttention,
		heads: c.NumHeads, kvHeads: c.NumKVHeads, headDim: c.HeadDim, rotary: c.RotaryDim, theta: c.RopeTheta,
		keyHeads: c.LinearKeyHeads, valueHeads: c.LinearValueHeads, keyDim: c.LinearKeyDim, valueDim: c.LinearValueDim,
		experts: c.NumExperts, topK: c.ExpertsPerToken, width: c.ExpertWidth, sharedWide: c.SharedWidth,
		eps: float32(c.RMSEps), maxContext: c.MaxPositions,
	}
	for _, id := range c.EOS {
		d.stop = append(d.stop, int32(id))
	}
	switch {
	case c.ConvKernel != convTaps:
		return d, fmt.Errorf("convolution over %d steps: only %d are known", c.ConvKernel, convTaps)
	case d.valueHeads%d.keyHeads != 0 || d.heads%d.kvHeads != 0:
		return d, errors.New("heads do not divide into groups")
	case d.topK > d.experts:
		return d, fmt.Errorf("%d experts for a token of only %d", d.topK, d.experts)
	}
	return d, nil
}

// loader reads tensors and keeps the first error.
type loader struct {
	file *checkpoint.Checkpoint
	err  error
}

func (l *loader) fail(name string, err error) {
	if l.err == nil {
		l.err = fmt.Errorf("load %s: %w", name, err)
	}
}

// stack is a matrix for each expert.
func (l *loader) stack(name string) []cpu.Matrix {
	m, ok := l.file.Matrix(name)
	if !ok {
		l.fail(name, errors.New("missing"))
		return make([]cpu.Matrix, 1)
	}
	all, err := cpu.NewMatrix(m.Experts*m.Rows, m.Cols, m.Bits, m.Codes, m.Scales, m.Biases)
	if err != nil {
		l.fail(name, err)
		return make([]cpu.Matrix, 1)
	}
	parts := make([]cpu.Matrix, m.Experts)
	for i := range parts {
		parts[i] = all.Part(i*m.Rows, m.Rows)
	}
	return parts
}

func (l *loader) matrix(name string) cpu.Matrix { return l.stack(name)[0] }

// vector widens a bfloat16 tensor. A value that is no number would spread
// through every token: it is refused here, where its place can be named.
func (l *loader) vector(name string) []float32 {
	t, ok := l.file.Tensor(name)
	if !ok {
		l.fail(name, errors.New("missing"))
		return nil
	}
	v := make([]float32, len(t.Data)/2)
	for i := range v {
		v[i] = checkpoint.FromBF16(uint16(t.Data[2*i]) | uint16(t.Data[2*i+1])<<8)
		if f := float64(v[i]); math.IsNaN(f) || math.IsInf(f, 0) {
			l.fail(name, fmt.Errorf("element %d is not a finite number", i))
		}
	}
	return v
}

func load(file *checkpoint.Checkpoint, d *dims) (*weights, error) {
	l := &loader{file: file}
	w := &weights{
		embed: l.matrix("language_model.model.embed_tokens"),
		norm:  l.vector("language_model.model.norm.weight"),
		head:  l.matrix("language_model.lm_head"),
		layer: make([]layer, d.layers),
	}
	for i := range w.layer {
		p := fmt.Sprintf("language_model.model.layers.%d.", i)
		w.layer[i] = layer{
			inNorm:   l.vector(p + "input_layernorm.weight"),
			postNorm: l.vector(p + "post_attention_layernorm.weight"),
			moe:      l.moe(p + "mlp."),
		}
		if d.full[i] {
			w.layer[i].attention = l.attention(p + "self_attn.")
		} else {
			w.layer[i].delta = l.delta(p + "linear_attn.")
		}
	}
	return w, l.err
}

func (l *loader) delta(p string) *deltaWeights {
	w := &deltaWeights{
		qkv: l.matrix(p + "in_proj_qkv"), z: l.matrix(p + "in_proj_z"),
		b: l.matrix(p + "in_proj_b"), a: l.matrix(p + "in_proj_a"),
		out:   l.matrix(p + "out_proj"),
		decay: l.vector(p + "A_log"), dtBias: l.vector(p + "dt_bias"), norm: l.vector(p + "norm.weight"),
	}
	for i, x := range w.decay {
		w.decay[i] = float32(math.Exp(float64(x)))
	}
	taps := l.vector(p + "conv1d.weight") // [channels, taps, 1]
	for j := range w.conv {
		w.conv[j] = make([]float32, len(taps)/convTaps)
		for c := range w.conv[j] {
			w.conv[j][c] = taps[c*convTaps+j]
		}
	}
	return w
}

func (l *loader) attention(p string) *attentionWeights {
	return &attentionWeights{
		q: l.matrix(p + "q_proj"), k: l.matrix(p + "k_proj"), v: l.matrix(p + "v_proj"), out: l.matrix(p + "o_proj"),
		qNorm: l.vector(p + "q_norm.weight"), kNorm: l.vector(p + "k_norm.weight"),
	}
}

func (l *loader) moe(p string) moeWeights {
	return moeWeights{
		router: l.matrix(p + "gate"), sharedGate: l.matrix(p + "shared_expert_gate"),
		gate: l.stack(p + "switch_mlp.gate_proj"), up: l.stack(p + "switch_mlp.up_proj"), down: l.stack(p + "switch_mlp.down_proj"),
		sGate: l.matrix(p + "shared_expert.gate_proj"), sUp: l.matrix(p + "shared_expert.up_proj"),
		sDown: l.matrix(p + "shared_expert.down_proj"),
	}
}
