//go:build realtokenizer

package tokenizer_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/engine/tokenizer"
)

var realFile = flag.String("tokenizer", "", "tokenizer.json of Qwen3.6-35B-A3B, to test what only the real vocabulary can show")

// It is built only with the tag realtokenizer, and then it does not skip:
//
//	go test -tags realtokenizer ./engine/tokenizer -run RealVocabulary -tokenizer FILE
//
// The vectors come from the goldens of pplx-garden's lily (Apache-2.0) and
// from llama.cpp on the same vocabulary. The file has 20 MB and is not in the
// repository: "weir engine pull" fetches it.
func TestRealVocabulary(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(*realFile)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(raw)
	if err != nil {
		t.Fatal(err)
	}
	if tok.Size() != 248077 {
		t.Errorf("the vocabulary has %d ids", tok.Size())
	}
	for token, want := range map[string]int32{
		"<|endoftext|>": 248044, "<|im_start|>": 248045, "<|im_end|>": 248046, "<tool_call>": 248058, "</tool_call>": 248059,
		"<think>": 248068, "</think>": 248069, "<|audio_pad|>": 248076,
	} {
		if id, ok := tok.ID(token); !ok || id != want {
			t.Errorf("%s is %d, want %d", token, id, want)
		}
	}
	for text, want := range map[string][]int32{
		"The capital of France is": {760, 6511, 314, 9338, 369},
		"transformers":             {4549, 382},
		"人工智能":                     {109015},
		"สวัสดี":                   {34469, 168607},
		"สวัสดีครับ ผมชื่ออเล็กซ์": {34469, 168607, 153295, 173922, 153380, 22216, 151752, 172769},
		"你好，世界！今天是2026年8月13日 🎉":    {109266, 3709, 96748, 6115, 113128, 17, 15, 17, 21, 95859, 23, 96212, 16, 18, 95971, 10838, 236, 231},
		"<|im_start|>": {27, 91, 316, 4747, 91, 29},
		"\n":           {198},
		"\n\n":         {271},
		"user":         {846},
		"assistant":    {74455},
		"1 2 3":        {16, 220, 17, 220, 18},
	} {
		if d := cmp.Diff(want, tok.Append(nil, text)); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
		if got := tok.Decode(want); got != text {
			t.Errorf("%v decodes to %q", want, got)
		}
	}
	p, err := tokenizer.Chat{Messages: []tokenizer.Message{{Role: tokenizer.User, Content: "Name the two colors of a chessboard."}}}.Render()
	if err != nil {
		t.Fatal(err)
	}
	want := []int32{248045, 846, 198, 657, 279, 1330, 7736, 314, 264, 31634, 2402, 13, 248046, 198, 248045, 74455, 198, 248068, 198}
	if d := cmp.Diff(want, tok.AppendPrompt(nil, p)); d != "" {
		t.Errorf("chat (-want +got):\n%s", d)
	}
}
