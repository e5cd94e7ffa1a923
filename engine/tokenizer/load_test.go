package tokenizer_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/engine/tokenizer"
)

func BenchmarkLoad(b *testing.B) {
	raw := smallFile(b)
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
