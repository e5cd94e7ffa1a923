package checkpoint_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/engine/checkpoint"
)

// shards is how many bytes of data the files of corrupted checkpoints have.
const shards = 200_000

// edit rewrites a file.
func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := change(bytes.Clone(raw))
	if string(changed) == string(raw) {
		t.Fatalf("%s was not changed", path)
	}
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
}

func replace(old, with string) func([]byte) []byte {
	return func(b []byte) []byte { return []byte(strings.Replace(string(b), old, with, 1)) }
}

func rotary(part string) func([]byte) []byte {
	return func(b []byte) []byte {
		return []byte(strings.ReplaceAll(string(b), `"partial_rotary_factor": 0.25`, `"partial_rotary_factor": `+part))
	}
}

// header changes the JSON header of a safetensors file and its length.
func header(change func(string) string) func([]byte) []byte {
	return func(b []byte) []byte {
		n := binary.LittleEndian.Uint64(b)
		h := change(string(b[8 : 8+n]))
		out := binary.LittleEndian.AppendUint64(nil, uint64(len(h)))
		return append(append(out, h...), b[8+n:]...)
	}
}

func swap(old, with string) func([]byte) []byte {
	return header(func(h string) string { return strings.Replace(h, old, with, 1) })
}

const first = "model-00001-of-00008.safetensors"

// Each row is one fault in a checkpoint that is right otherwise, and words
// that the error must have.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	type change struct {
		file string
		edit func([]byte) []byte
	}
	rows := map[string]struct {
		changes []change
		want    string
	}{
		"shard cut short":         {[]change{{first, func(b []byte) []byte { return b[:len(b)-1] }}}, "cut short"},
		"shard empty":             {[]change{{first, func([]byte) []byte { return nil }}}, "too few for a safetensors header"},
		"shard has grown":         {[]change{{first, func(b []byte) []byte { return append(b, 0) }}}, "belong to no tensor"},
		"header length huge":      {[]change{{first, func(b []byte) []byte { b[7] = 0xff; return b }}}, "not a safetensors file"},
		"header length past file": {[]change{{first, func(b []byte) []byte { b[3] = 1; return b }}}, "not a safetensors file"},
		"header no object":        {[]change{{first, swap("{", "[")}}, "does not begin with an object"},
		"header no JSON":          {[]change{{first, swap(`"dtype"`, `"dtype`)}}, "not valid JSON"},
		"a tensor twice":          {[]change{{first, swap(`{"__metadata__"`, `{"language_model.model.embed_tokens.weight":{"dtype":"U32","shape":[0],"data_offsets":[0,0]},"__metadata__"`)}}, "not valid JSON"},
		"offsets overlap":         {[]change{{first, swap(`"data_offsets":[16384,`, `"data_offsets":[16380,`)}}, "data_offsets give it"},
		"offsets overlap whole":   {[]change{{first, swap(`"data_offsets":[16384,17408]`, `"data_offsets":[0,1024]`)}}, "overlaps"},
		"offsets backwards":       {[]change{{first, swap(`"data_offsets":[16384,17408]`, `"data_offsets":[17408,16384]`)}}, "has data_offsets"},
		"offsets negative":        {[]change{{first, swap(`"data_offsets":[0,`, `"data_offsets":[-4,`)}}, "has data_offsets"},
		"shape overflows":         {[]change{{first, swap(`"shape":[256,16]`, `"shape":[4611686018427387904,16]`)}}, "impossible shape"},
		"shape negative":          {[]change{{first, swap(`"shape":[256,16]`, `"shape":[-256,16]`)}}, "impossible shape"},
		"too many dimensions":     {[]change{{first, swap(`"shape":[256,16]`, `"shape":[256,16,1,1,1,1,1,1,1]`)}}, "impossible shape"},
		"a hole":                  {[]change{{first, swap(`"data_offsets":[16384,17408]`, `"data_offsets":[16386,17410]`)}}, "belong to no tensor"},
		"unknown type":            {[]change{{first, swap(`"U32"`, `"U33"`)}}, "unknown type"},
		"shape missing":           {[]change{{first, swap(`"shape":[256,16],`, ``)}}, "has not the members"},
		"unknown member":          {[]change{{first, swap(`"dtype":"U32",`, `"dtype":"U32","x":1,`)}}, "has not the members"},
		"wrong shape, same bytes": {[]change{{first, swap(`"shape":[256,16]`, `"shape":[16,256]`)}}, "must be U32[256 16]"},
		"wrong type, same bytes":  {[]change{{first, swap(`"dtype":"U32"`, `"dtype":"I32"`)}}, "is I32[256 16], must be U32"},
		"other bits": {[]change{{first, header(func(h string) string {
			return strings.Replace(h, `"dtype":"U32","shape":[256,16]`, `"dtype":"U32","shape":[128,32]`, 1)
		})}}, "has 8 bits a weight, must have 4"},
		"renamed tensor": {[]change{
			{first, swap("embed_tokens.weight", "embed_tokens.w8ight")},
			{"model.safetensors.index.json", replace("embed_tokens.weight", "embed_tokens.w8ight")},
		}, "embed_tokens.w8ight is not part of this model"},
		"renamed in the shard only": {[]change{{first, swap("embed_tokens.weight", "embed_tokens.w8ight")}}, "the index has it in nowhere"},
		"index with another file":   {[]change{{"model.safetensors.index.json", replace(`"language_model.lm_head.weight": "model-00008`, `"language_model.lm_head.weight": "model-00007`)}}, "the index has it in model-00007"},
		"index leads outside":       {[]change{{"model.safetensors.index.json", replace(first, "../secret.safetensors")}}, "not a safetensors file of this folder"},
		"index leads to no weights": {[]change{{"model.safetensors.index.json", replace(first, "config.json")}}, "not a safetensors file of this folder"},
		"index leads nowhere":       {[]change{{"model.safetensors.index.json", replace(first, "model-00009-of-00008.safetensors")}}, "model-00009-of-00008.safetensors is missing"},
		"index unreadable":          {[]change{{"model.safetensors.index.json", replace("{", "")}}, "no readable weight_map"},
		"config no JSON":            {[]change{{"config.json", replace("{", "")}}, "not valid JSON"},
		"config names twice":        {[]change{{"config.json", replace(`"text_config"`, `"model_type": "qwen3_5_moe", "text_config"`)}}, "stands twice"},
		"config other width":        {[]change{{"config.json", replace(`"hidden_size": 128`, `"hidden_size": 192`)}}, "must be U32[256 24]"},
		"config text width":         {[]change{{"config.json", replace(`"hidden_size": 128`, `"hidden_size": "128"`)}}, "hidden_size is \"128\", not a int"},
		"config odd width":          {[]change{{"config.json", replace(`"hidden_size": 128`, `"hidden_size": 100`)}}, "which 64 does not divide"},
		"config zero":               {[]change{{"config.json", replace(`"num_experts": 4`, `"num_experts": 0`)}}, "not a dimension"},
		"config missing":            {[]change{{"config.json", replace(`"num_experts": 4,`, ``)}}, "num_experts is missing"},
		"config unknown":            {[]change{{"config.json", replace(`"num_experts": 4,`, `"num_experts": 4, "clamp": 7,`)}}, "text_config.clamp is not known"},
		"weights not renormalised":  {[]change{{"config.json", replace(`"num_experts": 4,`, `"num_experts": 4, "norm_topk_prob": false,`)}}, "norm_topk_prob is false"},
		"other activation":          {[]change{{"config.json", replace(`"silu"`, `"gelu"`)}}, "hidden_act is \"gelu\""},
		"other rope":                {[]change{{"config.json", replace(`"default"`, `"yarn"`)}}, "rope_type is \"yarn\""},
		"odd rotary dimensions":     {[]change{{"config.json", rotary("0.0234375")}}, "not an even number of dimensions"},
		"half a rotary dimension":   {[]change{{"config.json", rotary("0.2501")}}, "not an even number of dimensions"},
		"no rotary dimensions":      {[]change{{"config.json", rotary("0.0")}}, "not an even number of dimensions"},
		"rotary beyond the head":    {[]change{{"config.json", rotary("1.25")}}, "not an even number of dimensions"},
		"rotary factors differ":     {[]change{{"config.json", replace(`"partial_rotary_factor": 0.25`, `"partial_rotary_factor": 0.5`)}}, "differs from the one in rope_parameters"},
		"layer kinds":               {[]change{{"config.json", replace(`"full_attention"`, `"sliding_attention"`)}}, "neither full_attention nor linear_attention"},
		"eos beyond vocabulary":     {[]change{{"config.json", replace("255", "256")}}, "outside the vocabulary"},
		"gate of 4 bits":            {[]change{{"config.json", replace(`"bits": 8`, `"bits": 4`)}}, "is not 8 bits in groups of 64"},
		"quantization notes differ": {[]change{{"config.json", func(b []byte) []byte {
			i := strings.LastIndex(string(b), `"bits": 8`)
			return append(append(append([]byte(nil), b[:i]...), `"bits": 6`...), b[i+9:]...)
		}}}, "quantization_config differs"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := synth(t, tiny(), checkpoint.SynthOptions{ShardBytes: shards})
			for _, c := range row.changes {
				edit(t, filepath.Join(dir, c.file), c.edit)
			}
			_, err := checkpoint.Open(dir, checkpoint.Options{AnyDimensions: true})
			var p *checkpoint.Problems
			if !errors.As(err, &p) || !strings.Contains(strings.Join(p.List, "\n"), row.want) {
				t.Errorf("got %v\nwant %q", err, row.want)
			}
		})
	}
}

// Several faults at once must all be named.
func TestOpenReportsAll(t *testing.T) {
	t.Parallel()
	dir := synth(t, tiny(), checkpoint.SynthOptions{ShardBytes: shards})
	edit(t, filepath.Join(dir, "config.json"), replace(`"silu"`, `"gelu"`))
	edit(t, filepath.Join(dir, "config.json"), replace(`"affine"`, `"other"`))
	if _, err := checkpoint.Open(dir, checkpoint.Options{AnyDimensions: true}); !strings.Contains(err.Error(), "other") {
		t.Errorf("another mode is another format: %v", err)
	}
	edit(t, filepath.Join(dir, "config.json"), replace(`"other"`, `"affine"`))
	edit(t, filepath.Join(dir, first), func(b []byte) []byte { return b[:len(b)/2] })
	if err := os.Remove(filepath.Join(dir, "model-00003-of-00008.safetensors")); err != nil {
		t.Fatal(err)
	}
	_, err := checkpoint.Open(dir, checkpoint.Options{AnyDimensions: true})
	for _, want := range []string{"hidden_act", first + ": file is cut short", "model-00003-of-00008.safetensors is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error: %v", want, err)
		}
	}
}

// Without the flag, each dimension that differs is named.
func TestOpenDimensions(t *testing.T) {
	t.Parallel()
	_, err := checkpoint.Open(tinyA, checkpoint.Options{})
	for _, want := range []string{"another model of the Qwen3.5 mixture-of-experts family", "hidden_size is 128, Qwen3.6-35B-A3B has 2048", "num_experts is 8", "num_hidden_layers is 4", "eos_token_id is [511 510]"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error: %v", want, err)
		}
	}
}

// Models of other kinds are named for what they are.
func TestOpenForeign(t *testing.T) {
	t.Parallel()
	awq := `{"model_type":"qwen3_5_moe","quantization_config":{"quant_method":"awq","bits":4}}`
	rows := map[string]struct{ file, content, want string }{
		"gguf by name":     {"model-Q4_K_M.gguf", "x", "a GGUF file"},
		"gguf by content":  {"model", "GGUF\x03\x00\x00\x00", "a GGUF file"},
		"pickles":          {"pytorch_model-00001-of-00002.bin", "x", "PyTorch pickles"},
		"onnx":             {"model.onnx", "x", "an ONNX model"},
		"awq":              {"config.json", awq, "AWQ weights of 4 bits"},
		"gptq":             {"config.json", strings.Replace(awq, "awq", "gptq", 1), "GPTQ weights of 4 bits"},
		"fp8":              {"config.json", strings.Replace(awq, "awq", "fp8", 1), "fp8 weights"},
		"int8":             {"config.json", `{"model_type":"qwen3_5_moe","quantization_config":{"quant_method":"compressed-tensors","format":"int-quantized"}}`, "int8 weights"},
		"int8, bnb":        {"config.json", `{"model_type":"qwen3_5_moe","quantization_config":{"quant_method":"bitsandbytes","load_in_8bit":true}}`, "int8 weights"},
		"another method":   {"config.json", strings.Replace(awq, "awq", "hqq", 1), `quantized by "hqq"`},
		"bf16":             {"config.json", `{"model_type":"qwen3_5_moe","text_config":{"dtype":"bfloat16"}}`, "not quantized"},
		"mlx 8 bits":       {"config.json", `{"model_type":"qwen3_5_moe","quantization":{"bits":8,"group_size":64}}`, "MLX weights of 8 bits"},
		"mlx groups of 32": {"config.json", `{"model_type":"qwen3_5_moe","quantization":{"bits":4,"group_size":32}}`, "groups of 32"},
		"mlx mxfp4":        {"config.json", `{"model_type":"qwen3_5_moe","quantization":{"bits":4,"group_size":32,"mode":"mxfp4"}}`, `mode "mxfp4"`},
		"dense":            {"config.json", `{"model_type":"qwen3_5"}`, "a dense model"},
		"other model":      {"config.json", `{"model_type":"llama"}`, `type "llama"`},
	}
	for name, row := range rows {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, row.file), []byte(row.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := checkpoint.Open(dir, checkpoint.Options{AnyDimensions: true})
		var f *checkpoint.FormatError
		if !errors.As(err, &f) || !strings.Contains(f.Found, row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
	file := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(file, []byte("GGUF...."), 0o600); err != nil {
		t.Fatal(err)
	}
	var f *checkpoint.FormatError
	if _, err := checkpoint.Open(file, checkpoint.Options{}); !errors.As(err, &f) {
		t.Errorf("a path to a GGUF file: %v", err)
	}
}

func TestOpenAbsent(t *testing.T) {
	t.Parallel()
	if _, err := checkpoint.Open(filepath.Join(t.TempDir(), "none"), checkpoint.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	var p *checkpoint.Problems
	if _, err := checkpoint.Open(t.TempDir(), checkpoint.Options{}); !errors.As(err, &p) || !strings.Contains(err.Error(), "config.json is missing") {
		t.Errorf("an empty folder: %v", err)
	}
}

// The vision tower is skipped, whatever is in it.
func TestOpenSkipsVision(t *testing.T) {
	t.Parallel()
	dir := synth(t, tiny(), checkpoint.SynthOptions{})
	edit(t, filepath.Join(dir, "model.safetensors"), func(b []byte) []byte {
		n := int64(len(b)) - 8 - int64(binary.LittleEndian.Uint64(b))
		at, err := json.Marshal([]int64{n, n + 6})
		if err != nil {
			t.Fatal(err)
		}
		b = swap(`{"__metadata__"`, `{"vision_tower.pos_embed.weight":{"dtype":"F16","shape":[3],"data_offsets":`+string(at)+`},"__metadata__"`)(b)
		return append(b, 1, 2, 3, 4, 5, 6)
	})
	c, err := checkpoint.Open(dir, checkpoint.Options{AnyDimensions: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
}

func TestCheckFinite(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]float64{"nan": math.NaN(), "infinity": math.Inf(-1)} {
		dir := synth(t, tiny(), checkpoint.SynthOptions{})
		c, err := checkpoint.Open(dir, checkpoint.Options{AnyDimensions: true})
		if err != nil {
			t.Fatal(err)
		}
		var at []int64
		for _, tensor := range []string{"language_model.model.norm.weight", "language_model.lm_head.scales"} {
			x, ok := c.Tensor(tensor)
			if !ok {
				t.Fatalf("%s is missing", tensor)
			}
			at = append(at, x.Offset+2*int64(x.Len()-1)) // the last one: nothing may be left out
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		edit(t, filepath.Join(dir, "model.safetensors"), func(b []byte) []byte {
			for _, i := range at {
				binary.LittleEndian.PutUint16(b[i:], checkpoint.ToBF16(float32(bad)))
			}
			return b
		})
		if c, err = checkpoint.Open(dir, checkpoint.Options{AnyDimensions: true}); err != nil {
			t.Fatal(err)
		}
		var p *checkpoint.Problems
		if err := c.CheckFinite(t.Context()); !errors.As(err, &p) || len(p.List) != 2 || !strings.Contains(err.Error(), "norm.weight: element 127") {
			t.Errorf("%s: got %v", name, err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever a header says, no tensor may reach beyond the file.
func FuzzHeader(f *testing.F) {
	file := func(header, data string) {
		f.Add(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header+data...))
	}
	file(`{}`, "")
	file(`{"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}`, "1234")
	file(`{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"b":{"dtype":"I64","shape":[0,9],"data_offsets":[1,1]},"__metadata__":{"k":"v"}}  `, "1")
	f.Fuzz(func(t *testing.T, raw []byte) {
		data, ends, err := checkpoint.ReadHeader(raw)
		if err != nil {
			return
		}
		last := int64(0)
		for _, end := range ends {
			last = max(last, end)
		}
		if data+last != int64(len(raw)) {
			t.Fatalf("%d tensors end at %d of %d bytes", len(ends), data+last, len(raw))
		}
	})
}

func FuzzReadConfig(f *testing.F) {
	raw, err := os.ReadFile(filepath.Join(tinyA, "config.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"model_type":"qwen3_5_moe","quantization":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := checkpoint.ReadConfig(dir, true)
		if err == nil && (c.NumLayers() == 0 || c.HiddenSize%checkpoint.GroupSize != 0 || !jsontext.Value(raw).IsValid()) {
			t.Fatalf("accepted: %+v", c)
		}
	})
}
