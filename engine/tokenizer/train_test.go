package tokenizer_test

import (
	"cmp"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/engine/tokenizer"
)

var update = flag.Bool("update", false, "write testdata/tokenizer.json anew")

// corpus is what the small vocabulary is trained on: words of several scripts,
// so that merges cross the bytes of characters.
const corpus = `The user asked the assistant what the weather in the north of the country will be like, and
the assistant answered that there are no tools for that. It's what we've always said; they're sure you'd agree, I'll bet.
func main() { fmt.Println("hello, world") } // for i := range 10 { total += i * i }
{"name": "search", "arguments": {"query": "open the window", "limit": 10, "strict": true}}
Straße, größer, schön, müde, für, über. Élève, où, ça, français, déjà vu. El niño está aquí. Привет, мир! как дела?
世界 世界 你好 你好 人工智能 人工智能 日本語 日本語 สวัสดี สวัสดี مرحبا مرحبا नमस्ते नमस्ते 안녕하세요 🎉🎉 🎉
the the the and and that that which which is is in in to to of of a a assistant assistant user user system system
    indented by four
        indented by eight


three lines apart 2026 08 13 1 2 3 10 100 1000
`

// addedTokens are those of the model in their order. The small vocabulary puts
// them at its end, and swaps two, so that the stop ids are those of tiny-a:
// 511 and 510.
var addedTokens = strings.Fields(`<|im_start|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|>
	<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>
	<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|>
	<tool_response> </tool_response> <think> </think> <|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos>
	<tts_text_eod> <tts_text_bos_single> <|audio_pad|> <|endoftext|> <|im_end|>`)

func notSpecial(token string) bool {
	return slices.Contains(strings.Fields(`<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|>
		<|repo_name|> <|file_sep|> <tool_response> </tool_response> <think> </think>`), token)
}

const smallVocab = 512

// spell writes a byte as the vocabulary file does.
func spell(b byte) rune {
	n := rune(256)
	for c := range 256 {
		if c >= 33 && c <= 126 || c >= 161 && c <= 172 || c >= 174 {
			if c == int(b) {
				return rune(c)
			}
			continue
		}
		if c == int(b) {
			return n
		}
		n++
	}
	return -1
}

func spellAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(spell(s[i]))
	}
	return b.String()
}

// train learns merges in the plainest way: count all pairs, join the most
// frequent one, begin again.
func train(n int) (merges [][2]string) {
	var words [][]string
	for _, w := range referenceSplit(corpus) {
		var parts []string
		for i := range len(w) {
			parts = append(parts, w[i:i+1])
		}
		words = append(words, parts)
	}
	for len(merges) < n {
		count := map[[2]string]int{}
		for _, w := range words {
			for i := 1; i < len(w); i++ {
				count[[2]string{w[i-1], w[i]}]++
			}
		}
		best := [2]string{}
		for p, c := range count {
			if cmp.Or(cmp.Compare(c, count[best]), strings.Compare(best[0]+"\x00"+best[1], p[0]+"\x00"+p[1])) > 0 {
				best = p
			}
		}
		merges = append(merges, best)
		for i, w := range words {
			words[i] = joinPair(w, best)
		}
	}
	return merges
}

func joinPair(w []string, p [2]string) []string {
	var out []string
	for i := 0; i < len(w); i++ {
		if i+1 < len(w) && w[i] == p[0] && w[i+1] == p[1] {
			out = append(out, p[0]+p[1])
			i++
			continue
		}
		out = append(out, w[i])
	}
	return out
}

// smallFile makes a tokenizer.json in the model's form with 512 ids.
func smallFile(t testing.TB) []byte {
	t.Helper()
	vocab := map[string]int{}
	for b := range 256 {
		vocab[string(spell(byte(b)))] = len(vocab)
	}
	var merges [][2]string
	for _, p := range train(smallVocab - len(addedTokens) - 256) {
		merges = append(merges, [2]string{spellAll(p[0]), spellAll(p[1])})
		vocab[spellAll(p[0]+p[1])] = len(vocab)
	}
	var added []any
	for i, token := range addedTokens {
		added = append(added, map[string]any{
			"id": len(vocab) + i, "content": token, "single_word": false, "lstrip": false,
			"rstrip": false, "normalized": false, "special": !notSpecial(token),
		})
	}
	level := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}
	raw, err := json.Marshal(map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added,
		"normalizer": map[string]any{"type": "NFC"},
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]any{"Regex": splitPattern}, "behavior": "Isolated", "invert": false},
			level,
		}},
		"post_processor": level, "decoder": level,
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": "", "end_of_word_suffix": "",
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": merges,
		},
	}, json.Deterministic(true), jsontext.WithIndent(" "))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// splitPattern is written out, not taken from the package under test.
const splitPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

const smallPath = "testdata/tokenizer.json"

// small loads the vocabulary of 512 ids.
func small(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	raw, err := os.ReadFile(smallPath)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestSmallFileCurrent(t *testing.T) {
	t.Parallel()
	made := smallFile(t)
	if *update {
		if err := os.WriteFile(smallPath, made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(smallPath)
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) != string(made) {
		t.Errorf("%s is not what this file makes: run with -update", smallPath)
	}
}
