package checkpoint_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/engine/checkpoint"
)

// filled makes a folder with what a hub has.
func (h *hub) filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range h.content {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestVerify(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		change func(t *testing.T, dir string)
		want   []string // words of the error; none if it is right
	}{
		"right": {func(*testing.T, string) {}, nil},
		"another file beside them": {func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "README.md"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, nil},
		"one missing, one short": {func(t *testing.T, dir string) {
			if err := errors.Join(os.Remove(filepath.Join(dir, "config.json")), os.Truncate(filepath.Join(dir, "model-1.safetensors"), 5)); err != nil {
				t.Fatal(err)
			}
		}, []string{"config.json is missing", "model-1.safetensors has 5 bytes, revision 01234567 has 1234567"}},
		"one byte in two files": {func(t *testing.T, dir string) {
			for _, name := range []string{"model-1.safetensors", "model-2.safetensors"} {
				edit(t, filepath.Join(dir, name), func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
			}
		}, []string{"model-1.safetensors has SHA-256", "model-2.safetensors has SHA-256"}},
	}
	for name, row := range rows {
		h := newHub(t)
		dir := h.filled(t)
		row.change(t, dir)
		var last checkpoint.Progress
		err := checkpoint.Verify(t.Context(), dir, h.manifest, func(p checkpoint.Progress) { last = p })
		var p *checkpoint.Problems
		if len(row.want) == 0 && (err != nil || last.Done != h.manifest.Bytes()) {
			t.Errorf("%s: got %v, read %d bytes", name, err, last.Done)
		}
		if len(row.want) > 0 && (!errors.As(err, &p) || len(p.List) != len(row.want)) {
			t.Errorf("%s: got %v", name, err)
		}
		for _, want := range row.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}
	h := newHub(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := checkpoint.Verify(ctx, h.filled(t), h.manifest, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := checkpoint.Verify(t.Context(), filepath.Join(h.filled(t), "config.json"), h.manifest, nil); err == nil {
		t.Error("a file is no folder")
	}
}

// panics reports whether f does.
func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

func TestFileTensors(t *testing.T) {
	t.Parallel()
	f, err := checkpoint.OpenFile(filepath.Join(tinyA, "ref.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tokens, ok := f.Tensor("tokens")
	if !ok || tokens.DType != checkpoint.I32 || tokens.Len() != 200 {
		t.Fatalf("tokens are %s, %d", tokens.DType, tokens.Len())
	}
	for i, id := range tokens.Uint32s() {
		if id >= 512 {
			t.Errorf("token %d is %d", i, id)
		}
	}
	logits, _ := f.Tensor("logits.1")
	if x := logits.Float32s(); len(x) != 512 || x[0] == 0 || x[0] == x[1] {
		t.Errorf("logits are %d numbers", len(x))
	}
	if !panics(func() { tokens.Float32s() }) || !panics(func() { logits.Uint32s() }) {
		t.Error("numbers were read as another type")
	}
	var last int64
	for tensor := range f.Tensors() {
		if tensor.Offset < last {
			t.Errorf("%s is out of order", tensor.Name)
		}
		last = tensor.Offset
	}
}

func TestQuantizePanics(t *testing.T) {
	t.Parallel()
	rows := map[string]struct{ codes, scales, biases, n, bits int }{
		"not a group":      {16, 2, 2, 32, 4},
		"other bits":       {16, 2, 2, 64, 2},
		"codes too long":   {64, 2, 2, 64, 4},
		"scales too short": {32, 1, 2, 64, 4},
		"biases too short": {32, 2, 1, 64, 4},
	}
	for name, r := range rows {
		codes, scales, biases, w := make([]byte, r.codes), make([]byte, r.scales), make([]byte, r.biases), make([]float32, r.n)
		if !panics(func() { _ = checkpoint.Quantize(codes, scales, biases, w, r.bits) }) {
			t.Errorf("%s: Quantize does not object", name)
		}
		if !panics(func() { checkpoint.Dequantize(w, codes, scales, biases, r.bits) }) {
			t.Errorf("%s: Dequantize does not object", name)
		}
	}
}
