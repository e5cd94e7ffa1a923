package checkpoint

import (
	"fmt"
	"math"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// parseConfig reads config.json, noting every member that is missing, of the
// wrong type, or that asks for a computation other than ours.
func parseConfig(raw []byte, p *Problems) Config {
	top := newObject("", raw, p)
	top.fixed("model_type", `"qwen3_5_moe"`)
	top.fixed("architectures", `["Qwen3_5MoeForConditionalGeneration"]`)
	top.fixed("tie_word_embeddings", `false`)
	top.inert("image_token_id", "video_token_id", "vision_config", "vision_start_token_id", "vision_end_token_id")

	var text jsontext.Value
	c := Config{EOS: stopIDs(top)}
	if top.get("text_config", &text) {
		parseText(newObject("text_config.", text, p), &c)
	}
	parseQuantization(top, c.NumLayers(), p)
	top.rest()
	return c
}

// stopIDs reads eos_token_id, which is one id or a list. The one at the top
// level counts; text_config has a shorter one that does not end a chat reply.
func stopIDs(o *object) []int {
	o.known["eos_token_id"] = true
	raw, ok := o.members["eos_token_id"]
	if !ok {
		o.p.addf("config.json: eos_token_id is missing")
		return nil
	}
	var ids []int
	if err := json.Unmarshal(raw, &ids); err == nil && len(ids) > 0 {
		return ids
	}
	var id int
	if err := json.Unmarshal(raw, &id); err != nil || raw.Kind() != '0' {
		o.p.addf("config.json: eos_token_id is %s, not a list of ids", brief(raw))
		return nil
	}
	return []int{id}
}

func parseText(o *object, c *Config) {
	o.fixed("model_type", `"qwen3_5_moe_text"`)
	o.fixed("attention_bias", `false`)
	o.fixed("attn_output_gate", `true`)
	o.fixed("hidden_act", `"silu"`)
	o.fixed("tie_word_embeddings", `false`)
	o.fixed("norm_topk_prob", `true`)
	o.fixed("decoder_sparse_step", `1`)
	o.fixed("mlp_only_layers", `[]`)
	o.fixed("sliding_window", `null`)
	o.fixed("use_sliding_window", `false`)
	o.inert("attention_dropout", "eos_token_id", "initializer_range", "intermediate_size", "mamba_ssm_dtype",
		"mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "output_router_logits", "router_aux_loss_coef", "use_cache")

	c.HiddenSize = o.positive("hidden_size")
	c.VocabSize = o.positive("vocab_size")
	c.MaxPositions = o.positive("max_position_embeddings")
	c.RMSEps = o.number("rms_norm_eps")
	c.NumHeads = o.positive("num_attention_heads")
	c.NumKVHeads = o.positive("num_key_value_heads")
	c.HeadDim = o.positive("head_dim")
	c.LinearKeyHeads = o.positive("linear_num_key_heads")
	c.LinearValueHeads = o.positive("linear_num_value_heads")
	c.LinearKeyDim = o.positive("linear_key_head_dim")
	c.LinearValueDim = o.positive("linear_value_head_dim")
	c.ConvKernel = o.positive("linear_conv_kernel_dim")
	c.NumExperts = o.positive("num_experts")
	c.ExpertsPerToken = o.positive("num_experts_per_tok")
	c.ExpertWidth = o.positive("moe_intermediate_size")
	c.SharedWidth = o.positive("shared_expert_intermediate_size")
	c.FullAttention = layerKinds(o)
	parseRope(o, c)
	o.rest()
}

// layerKinds reads layer_types, or makes it from full_attention_interval as
// the framework does when it is absent.
func layerKinds(o *object) []bool {
	layers := o.positive("num_hidden_layers")
	o.inert("full_attention_interval")
	if layers > 1<<16 {
		o.p.addf("config.json: text_config.num_hidden_layers is %d", layers)
		return nil
	}
	if _, ok := o.members["layer_types"]; !ok {
		every := o.positive("full_attention_interval")
		full := make([]bool, layers)
		for i := range full {
			full[i] = every > 0 && (i+1)%every == 0
		}
		return full
	}
	var types []string
	if !o.get("layer_types", &types) {
		return nil
	}
	if len(types) != layers {
		o.p.addf("config.json: text_config.layer_types has %d entries for %d layers", len(types), layers)
	}
	full := make([]bool, len(types))
	for i, t := range types {
		full[i] = t == "full_attention"
		if !full[i] && t != "linear_attention" {
			o.p.addf("config.json: text_config.layer_types[%d] is neither full_attention nor linear_attention", i)
		}
	}
	return full
}

// parseRope reads the rotary embedding. The sections of its three position
// streams do not matter for text, where the streams are equal.
func parseRope(o *object, c *Config) {
	var raw jsontext.Value
	if !o.get("rope_parameters", &raw) {
		return
	}
	r := newObject("text_config.rope_parameters.", raw, o.p)
	r.fixed("rope_type", `"default"`)
	r.inert("mrope_interleaved", "mrope_section")
	c.RopeTheta = r.number("rope_theta")
	part := r.number("partial_rotary_factor")
	r.rest()
	o.known["partial_rotary_factor"] = true
	if outer, ok := o.members["partial_rotary_factor"]; ok && !sameJSON(outer, r.members["partial_rotary_factor"]) {
		o.p.addf("config.json: text_config.partial_rotary_factor differs from the one in rope_parameters")
	}
	dim := part * float64(c.HeadDim)
	c.RotaryDim = int(dim)
	if dim != math.Trunc(dim) || dim < 2 || c.RotaryDim%2 != 0 || c.RotaryDim > c.HeadDim {
		o.p.addf("config.json: partial_rotary_factor %v of head_dim %d is not an even number of dimensions", part, c.HeadDim)
	}
}

// parseQuantization checks the layout: groups of 64, 4 bits, affine, and 8
// bits for exactly the two gates of each layer.
func parseQuantization(top *object, layers int, p *Problems) {
	var raw jsontext.Value
	if !top.get("quantization", &raw) {
		return
	}
	top.known["quantization_config"] = true
	if again, ok := top.members["quantization_config"]; ok && !sameJSON(again, raw) {
		p.addf("config.json: quantization_config differs from quantization")
	}
	q := newObject("quantization.", raw, p)
	q.fixed("group_size", fmt.Sprint(GroupSize))
	q.fixed("bits", fmt.Sprint(WeightBits))
	q.fixed("mode", `"affine"`)
	for _, key := range []string{"group_size", "bits"} {
		if _, ok := q.members[key]; !ok {
			p.addf("config.json: quantization.%s is missing", key)
		}
	}
	var want []string
	for i := range layers {
		for _, gate := range []string{"mlp.gate", "mlp.shared_expert_gate"} {
			want = append(want, fmt.Sprintf("%s%d.%s", layerPrefix, i, gate))
		}
	}
	for _, key := range want {
		var over jsontext.Value
		if !q.get(key, &over) {
			continue
		}
		o := newObject("quantization."+key+".", over, p)
		if o.positive("bits") != RouterBits || o.positive("group_size") != GroupSize {
			p.addf("config.json: quantization.%s is not %d bits in groups of %d", key, RouterBits, GroupSize)
		}
		o.fixed("mode", `"affine"`)
		o.rest()
	}
	q.rest()
}

// checkDimensions notes dimensions that do not fit one another.
func checkDimensions(c Config, p *Problems) {
	for what, n := range map[string]int{
		"hidden_size": c.HiddenSize, "vocab_size": c.VocabSize, "max_position_embeddings": c.MaxPositions,
		"num_hidden_layers": c.NumLayers(), "num_attention_heads": c.NumHeads, "head_dim": c.HeadDim,
		"linear_num_value_heads": c.LinearValueHeads, "linear_key_head_dim": c.LinearKeyDim,
		"linear_value_head_dim": c.LinearValueDim, "linear_conv_kernel_dim": c.ConvKernel, "num_experts": c.NumExperts,
		"num_experts_per_tok": c.ExpertsPerToken, "moe_intermediate_size": c.ExpertWidth,
		"shared_expert_intermediate_size": c.SharedWidth,
	} {
		if n < 1 {
			p.addf("config.json: %s is %d", what, n)
		}
	}
	if c.RotaryDim < 2 || c.RotaryDim%2 != 0 || c.RotaryDim > c.HeadDim {
		p.addf("config.json: %d rotary dimensions of head_dim %d", c.RotaryDim, c.HeadDim)
	}
	divides := func(what string, n, by int) {
		if by == 0 || n%by != 0 {
			p.addf("config.json: %s is %d, which %d does not divide", what, n, by)
		}
	}
	divides("num_attention_heads", c.NumHeads, c.NumKVHeads)
	divides("linear_num_value_heads", c.LinearValueHeads, c.LinearKeyHeads)
	divides("hidden_size", c.HiddenSize, GroupSize)
	divides("num_attention_heads x head_dim", c.NumHeads*c.HeadDim, GroupSize)
	divides("linear_num_value_heads x linear_value_head_dim", c.LinearValueHeads*c.LinearValueDim, GroupSize)
	divides("moe_intermediate_size", c.ExpertWidth, GroupSize)
	divides("shared_expert_intermediate_size", c.SharedWidth, GroupSize)
	if c.ExpertsPerToken > c.NumExperts {
		p.addf("config.json: num_experts_per_tok is %d of %d experts", c.ExpertsPerToken, c.NumExperts)
	}
	if !(c.RMSEps > 0 && c.RMSEps < 1) {
		p.addf("config.json: rms_norm_eps is %v", c.RMSEps)
	}
	if !(c.RopeTheta > 1) {
		p.addf("config.json: rope_theta is %v", c.RopeTheta)
	}
	for _, id := range c.EOS {
		if id < 0 || id >= c.VocabSize {
			p.addf("config.json: eos_token_id %d is outside the vocabulary of %d", id, c.VocabSize)
		}
	}
}

// checkPinned notes each dimension that differs from Qwen3.6-35B-A3B's.
func checkPinned(c Config, p *Problems) {
	f := Full()
	named := false
	differ := func(key string, have, want any) {
		if have != want && !named {
			named = true
			p.addf("it is another model of the Qwen3.5 mixture-of-experts family, or a part of one: %d layers of width %d with %d experts",
				c.NumLayers(), c.HiddenSize, c.NumExperts)
		}
		if have != want {
			p.addf("config.json: %s is %v, Qwen3.6-35B-A3B has %v", key, have, want)
		}
	}
	differ("hidden_size", c.HiddenSize, f.HiddenSize)
	differ("vocab_size", c.VocabSize, f.VocabSize)
	differ("max_position_embeddings", c.MaxPositions, f.MaxPositions)
	differ("rms_norm_eps", c.RMSEps, f.RMSEps)
	differ("num_hidden_layers", c.NumLayers(), f.NumLayers())
	differ("num_attention_heads", c.NumHeads, f.NumHeads)
	differ("num_key_value_heads", c.NumKVHeads, f.NumKVHeads)
	differ("head_dim", c.HeadDim, f.HeadDim)
	differ("rotary dimensions", c.RotaryDim, f.RotaryDim)
	differ("rope_theta", c.RopeTheta, f.RopeTheta)
	differ("linear_num_key_heads", c.LinearKeyHeads, f.LinearKeyHeads)
	differ("linear_num_value_heads", c.LinearValueHeads, f.LinearValueHeads)
	differ("linear_key_head_dim", c.LinearKeyDim, f.LinearKeyDim)
	differ("linear_value_head_dim", c.LinearValueDim, f.LinearValueDim)
	differ("linear_conv_kernel_dim", c.ConvKernel, f.ConvKernel)
	differ("num_experts", c.NumExperts, f.NumExperts)
	differ("num_experts_per_tok", c.ExpertsPerToken, f.ExpertsPerToken)
	differ("moe_intermediate_size", c.ExpertWidth, f.ExpertWidth)
	differ("shared_expert_intermediate_size", c.SharedWidth, f.SharedWidth)
	if c.NumLayers() == f.NumLayers() && !slices.Equal(c.FullAttention, f.FullAttention) {
		p.addf("config.json: layer_types is not three linear_attention and one full_attention in turn")
	}
	if !slices.Equal(c.EOS, f.EOS) {
		p.addf("config.json: eos_token_id is %v, Qwen3.6-35B-A3B has %v", c.EOS, f.EOS)
	}
}
