package tokenizer_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/engine/tokenizer"
)

var realFile = flag.String("tokenizer", "", "tokenizer.json of Qwen3.6-35B-A3B, to test what only the real vocabulary can show")

// The vectors come from the goldens of pplx-garden's lily (Apache-2.0) and
// from llama.cpp on the same vocabulary. The file has 20 MB and is not in the
// repository: "weir engine pull" fetches it.
func TestRealVocabulary(t *testing.T) {
	t.Parallel()
	if *realFile == "" {
		t.Skip("needs -tokenizer FILE, the tokenizer.json of the pinned revision")
	}
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

func BenchmarkLoad(b *testing.B) {
	raw := smallFile(b)
	if *realFile != "" {
		var err error
		if raw, err = os.ReadFile(*realFile); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tokenizer.Load(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	good := string(smallFile(t))
	// Each row is one change of a good file, and what must be said about it.
	rows := map[string]struct{ old, with, want string }{
		"another pattern":         {`[\\p{L}\\p{M}]+|\\p{N}|`, `\\p{L}+|\\p{N}|`, "splits in another way"},
		"another normalizer":      {`"NFC"`, `"NFKC"`, "normalizer is not NFC"},
		"a prefix space":          {`"add_prefix_space": false`, `"add_prefix_space": true`, "splits in another way"}, // in each step
		"word pieces":             {`"BPE"`, `"WordPiece"`, "model is not BPE"},
		"byte fallback":           {`"byte_fallback": false`, `"byte_fallback": true`, "unknown tokens"},
		"merges ignored":          {`"ignore_merges": false`, `"ignore_merges": true`, "ignores merges"},
		"dropout":                 {`"dropout": null`, `"dropout": 0.1`, "dropout"},
		"truncation":              {`"truncation": null`, `"truncation": {}`, "truncates"},
		"a token that strips":     {`"lstrip": false`, `"lstrip": true`, "strips"},
		"a merge of no tokens":    {`"merges": [`, `"merges": [["zz", "zz"],`, "merge 0"},
		"a merge of half a token": {`"merges": [`, `"merges": [["a", "zz"],`, "merge 0"},
		"a merge to no token":     {`"merges": [`, `"merges": [["Q", "Q"],`, "merge 0"},
		"a merge twice":           {`"merges": [`, `"merges": [["Ġ", "t"],`, "stands twice"},
		"a merge without a pair":  {`"merges": [`, `"merges": ["zz",`, "not readable"},
		"no byte":                 {`"!": 33,`, ``, "no token for byte 0x21"},
		"an id twice":             {`"!": 33,`, `"!": 34,`, "stands twice"},
		"a huge id":               {`"!": 33,`, `"!": 1000000000,`, "beyond any vocabulary"},
		"a negative id":           {`"!": 33,`, `"!": -5,`, "negative"},
		"a foreign character":     {`"!": 33,`, `"!": 33, "世": 600,`, "byte alphabet"},
		"a name twice":            {`"!": 33,`, `"!": 33, "!": 33,`, "not readable"},
		"cut short":               {`"vocab"`, `"vocab`, "not readable"},
		"a text twice":            {`"content": "<|im_end|>"`, `"content": "<|im_start|>"`, "text of another"},
	}
	for name, row := range rows {
		n := 1
		if strings.Contains(row.old, "prefix_space") {
			n = -1
		}
		bad := strings.Replace(good, row.old, row.with, n)
		if bad == good {
			t.Errorf("%s: nothing was changed", name)
			continue
		}
		if _, err := tokenizer.Load([]byte(bad)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
}

// Older files write a merge as one string.
func TestLoadOldMerges(t *testing.T) {
	t.Parallel()
	good := smallFile(t)
	pairs := regexp.MustCompile(`\[\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\s*\]`)
	old := pairs.ReplaceAll(good, []byte(`"$1 $2"`))
	if len(old) >= len(good) {
		t.Fatal("nothing was changed")
	}
	tok, err := tokenizer.Load(old)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(small(t).Append(nil, corpus), tok.Append(nil, corpus)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		_, _ = tokenizer.Load(raw) // must not panic
	})
}
