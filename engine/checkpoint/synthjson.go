package checkpoint

import (
	"fmt"
	"math"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// writeJSON writes a small file as published checkpoints have it.
func writeJSON(path string, v any) error {
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("    "))
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return os.WriteFile(path, raw, 0o644)
}

func indexJSON(files map[string]string, total int64) any {
	return map[string]any{
		"metadata":   map[string]int64{"total_size": total},
		"weight_map": files,
	}
}

// json is the configuration as config.json says it.
func (c Config) json() any {
	quantization := map[string]any{"group_size": GroupSize, "bits": WeightBits, "mode": "affine"}
	kinds := make([]string, c.NumLayers())
	for i, full := range c.FullAttention {
		kinds[i] = "linear_attention"
		if full {
			kinds[i] = "full_attention"
		}
		for _, gate := range []string{"mlp.gate", "mlp.shared_expert_gate"} {
			quantization[fmt.Sprintf("%s%d.%s", layerPrefix, i, gate)] = map[string]int{"group_size": GroupSize, "bits": RouterBits}
		}
	}
	// Dividing and multiplying again must give the same number of dimensions.
	part := float64(c.RotaryDim) / float64(c.HeadDim)
	for int(part*float64(c.HeadDim)) < c.RotaryDim {
		part = math.Nextafter(part, 1)
	}
	return map[string]any{
		"architectures":       []string{"Qwen3_5MoeForConditionalGeneration"},
		"model_type":          "qwen3_5_moe",
		"eos_token_id":        c.EOS,
		"tie_word_embeddings": false,
		"quantization":        quantization,
		"quantization_config": quantization,
		"text_config":         c.textJSON(kinds, part),
	}
}

func (c Config) textJSON(kinds []string, part float64) any {
	return map[string]any{
		"model_type": "qwen3_5_moe_text", "attention_bias": false, "attn_output_gate": true, "hidden_act": "silu",
		"tie_word_embeddings": false, "mamba_ssm_dtype": "float32", "dtype": "bfloat16",
		"hidden_size": c.HiddenSize, "vocab_size": c.VocabSize, "max_position_embeddings": c.MaxPositions,
		"rms_norm_eps": c.RMSEps, "num_hidden_layers": c.NumLayers(), "layer_types": kinds,
		"num_attention_heads": c.NumHeads, "num_key_value_heads": c.NumKVHeads, "head_dim": c.HeadDim,
		"linear_num_key_heads": c.LinearKeyHeads, "linear_num_value_heads": c.LinearValueHeads,
		"linear_key_head_dim": c.LinearKeyDim, "linear_value_head_dim": c.LinearValueDim,
		"linear_conv_kernel_dim": c.ConvKernel, "num_experts": c.NumExperts, "num_experts_per_tok": c.ExpertsPerToken,
		"moe_intermediate_size": c.ExpertWidth, "shared_expert_intermediate_size": c.SharedWidth,
		"partial_rotary_factor": part,
		"rope_parameters": map[string]any{
			"rope_type": "default", "rope_theta": c.RopeTheta, "partial_rotary_factor": part,
		},
	}
}
