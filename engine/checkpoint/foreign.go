package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// foreignFiles names the format of a path whose files show that it is not a
// safetensors checkpoint, or returns "".
func foreignFiles(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if !info.IsDir() {
		if isGGUF(path) {
			return "a GGUF file"
		}
		return "a single file, not a checkpoint folder"
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return ""
	}
	found := ""
	for _, e := range entries {
		switch ext := strings.ToLower(filepath.Ext(e.Name())); {
		case ext == ".safetensors" || e.Name() == indexFile:
			return ""
		case ext == ".gguf" || isGGUF(filepath.Join(path, e.Name())):
			found = "a GGUF file"
		case ext == ".bin" && strings.HasPrefix(e.Name(), "pytorch_model"), ext == ".pt", ext == ".pth":
			found = "PyTorch pickles"
		case ext == ".onnx":
			found = "an ONNX model"
		case ext == ".npz":
			found = "weights in NumPy's format"
		}
	}
	return found
}

func isGGUF(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	n, _ := f.Read(magic[:])
	return string(magic[:n]) == "GGUF"
}

// foreignConfig names the model or the format that a config.json is for, if it
// is plainly another one, or returns "". Sizes are not looked at.
func foreignConfig(raw []byte) string {
	var c struct {
		Type    string            `json:"model_type"`
		MLX     *mlxQuantization  `json:"quantization"`
		Foreign *quantizationNote `json:"quantization_config"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return "" // the parser says what is wrong
	}
	switch c.Type {
	case "qwen3_5_moe", "":
	case "qwen3_5", "qwen3_5_text":
		return "a dense model of the Qwen3.5 family"
	case "qwen3_5_moe_text":
		return "a text-only export of the Qwen3.5 mixture-of-experts family"
	default:
		return fmt.Sprintf("a model of type %q", brief(jsontext.Value(c.Type)))
	}
	switch {
	case c.MLX != nil:
		return c.MLX.foreign()
	case c.Foreign != nil && c.Foreign.Method != "":
		return c.Foreign.words()
	case c.Foreign == nil && c.Type != "":
		return "weights that are not quantized (bfloat16 or float32)"
	}
	return ""
}

type mlxQuantization struct {
	Bits  int    `json:"bits"`
	Group int    `json:"group_size"`
	Mode  string `json:"mode"`
}

func (q mlxQuantization) foreign() string {
	switch {
	case q.Mode != "" && q.Mode != "affine":
		return fmt.Sprintf("MLX weights in mode %q", brief(jsontext.Value(q.Mode)))
	case q.Bits != 0 && q.Bits != WeightBits:
		return fmt.Sprintf("MLX weights of %d bits", q.Bits)
	case q.Group != 0 && q.Group != GroupSize:
		return fmt.Sprintf("MLX weights in groups of %d", q.Group)
	}
	return ""
}

// quantizationNote is what other tools write in quantization_config.
type quantizationNote struct {
	Method string `json:"quant_method"`
	Bits   int    `json:"bits"`
	Int8   bool   `json:"load_in_8bit"`
	Format string `json:"format"`
}

func (q quantizationNote) words() string {
	switch {
	case q.Method == "awq", q.Method == "gptq":
		return fmt.Sprintf("%s weights of %d bits", strings.ToUpper(q.Method), q.Bits)
	case q.Method == "fp8", q.Method == "fbgemm_fp8":
		return "fp8 weights"
	case q.Method == "bitsandbytes" && q.Int8, strings.HasPrefix(q.Format, "int-quantized"):
		return fmt.Sprintf("int8 weights (%s)", q.Method)
	}
	return fmt.Sprintf("weights quantized by %q", brief(jsontext.Value(q.Method)))
}
