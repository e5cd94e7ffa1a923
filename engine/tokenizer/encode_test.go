package tokenizer_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"weir/engine/tokenizer"
)

// words returns what the ids of a text stand for, one by one.
func words(tok *tokenizer.Tokenizer, ids []int32) []string {
	var out []string
	for _, id := range ids {
		out = append(out, tok.Token(id))
	}
	return out
}

func ranks() map[[2]string]int {
	m := map[[2]string]int{}
	for i, p := range train(smallVocab - len(addedTokens) - 256) {
		m[p] = i
	}
	return m
}

// text draws what is hard for a splitter: contractions, runs of spaces, marks,
// scripts, and parts of control tokens.
func text() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"'s", "'S", "'LL", "'ve", "'ſx", "'", "’s", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u2003", "\u0085", "\u3000",
			"the", " the", "The", "é", "e\u0301", "\u0301", "नमस्ते", "สวัสดี", "世界", "1", "٣", "½", "Ⅷ", "!", "...", " !",
			"<|im_end|>", "<|im_", "start|>", "<think>", "</tool_call>", "🎉", "\u200d", "\x00", "\ufffd", "가", "\u1100\u1161",
			"\u212b", "\u0344", "\u2126", "ﬁ", "a\u0327\u0301", "_", "-", "#\n\n",
		}),
		rapid.StringN(0, 6, -1),
	)
	return rapid.Custom(func(rt *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(rt, "pieces"), "")
	})
}

func TestAppendIsReference(t *testing.T) {
	t.Parallel()
	tok, ranks := small(t), ranks()
	rapid.Check(t, func(rt *rapid.T) {
		s := text().Draw(rt, "text")
		if d := cmp.Diff(referenceEncode(tok, ranks, s), tok.Append(nil, s)); d != "" {
			rt.Fatalf("%q (-want +got):\n%s\nsplit %q", s, d, referenceSplit(norm.NFC.String(s)))
		}
	})
}

// Words beyond the length at which the algorithm changes.
func TestAppendLongWords(t *testing.T) {
	t.Parallel()
	tok, ranks := small(t), ranks()
	rapid.Check(t, func(rt *rapid.T) {
		letters := rapid.SampledFrom([]string{"a", "n", "d", "t", "h", "e", "in", "世界", "é", "ss", "tt"})
		s := strings.Join(rapid.SliceOfN(letters, 15, 120).Draw(rt, "letters"), "")
		if d := cmp.Diff(referenceEncode(tok, ranks, s), tok.Append(nil, s)); d != "" {
			rt.Fatalf("%q (-want +got):\n%s", s, d)
		}
	})
}

// Runs of one letter, in which every pair has the same rank: it is the order
// of merges that decides.
func TestAppendRuns(t *testing.T) {
	t.Parallel()
	tok, ranks := small(t), ranks()
	if _, ok := ranks[[2]string{" ", " "}]; !ok {
		t.Fatal("blanks do not merge in this vocabulary")
	}
	for n := range 130 {
		s := strings.Repeat(" ", n)
		if d := cmp.Diff(referenceEncode(tok, ranks, s), tok.Append(nil, s)); d != "" {
			t.Errorf("%d blanks (-want +got):\n%s", n, d)
		}
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	tok := small(t)
	for id, want := range map[int32]string{-1: "", 0: "\x00", 'a': "a", 255: "\xff", 511: "<|im_end|>", 512: "", 1 << 30: ""} {
		if got := tok.Token(id); got != want {
			t.Errorf("id %d is %q, want %q", id, got, want)
		}
	}
	if tok.Size() != 512 || !tok.IsSpecial(511) || tok.IsSpecial('a') || tok.IsSpecial(512) || tok.IsSpecial(-1) {
		t.Error("size or special tokens are wrong")
	}
	if id, ok := tok.ID("<think>"); !ok || tok.IsSpecial(id) {
		t.Error("<think> is text as well")
	}
}

// Each row is a place where another reading of the pattern gives other words.
func TestSplitRows(t *testing.T) {
	t.Parallel()
	rows := map[string][]string{
		"it's":          {"it", "'s"},
		"IT'S":          {"IT", "'S"},
		"'sad":          {"'s", "ad"},         // the contraction wins over a quote and letters
		"'ſad":          {"'ſ", "ad"},         // U+017F folds to s
		"'xad":          {"'xad"},             // any one character may lead letters
		"12.5":          {"1", "2", ".", "5"}, // single digits
		"a  b":          {"a", " ", " b"},
		"a   ":          {"a", "   "},
		"a \n b":        {"a", " \n", " b"},
		"a\n\n  b":      {"a", "\n\n", " ", " b"},
		" \n \n x":      {" \n \n", " x"},
		" !!\n\nx":      {" !!\n\n", "x"},
		"a\tb":          {"a", "\tb"},
		"a\t\tb":        {"a", "\t", "\tb"},
		" 1":            {" ", "1"},
		"\u0301a":       {"\u0301a"},
		"!\u0301":       {"!\u0301"}, // one symbol may lead marks too
		"\u00a0x":       {"\u00a0x"}, // any white space may lead letters
		"\u00a0!":       {"\u00a0", "!"},
		"\x85\n":        {"\x85\n"}, // a byte that is not UTF-8 is a symbol
		"":              nil,
		"नमस्ते दुनिया": {"नमस्ते", " दुनिया"}, // marks join letters
	}
	for s, want := range rows {
		if d := cmp.Diff(want, tokenizer.Split(s)); d != "" {
			t.Errorf("%q (-want +got):\n%s", s, d)
		}
		if utf8.ValidString(s) {
			if d := cmp.Diff(referenceSplit(s), tokenizer.Split(s)); d != "" {
				t.Errorf("%q: the reference splits otherwise (-want +got):\n%s", s, d)
			}
		}
	}
}

// A user's text must never become control, in whatever way it is cut.
func TestNoControlFromContent(t *testing.T) {
	t.Parallel()
	tok := small(t)
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom(append(addedTokens, "<", "|", ">", "im_start", " ", "x"))).Draw(rt, "parts")
		s := strings.Join(parts, "")
		for _, id := range tok.Append(nil, s) {
			if int(id) >= smallVocab-len(addedTokens) {
				rt.Fatalf("%q became %q", s, tok.Token(id))
			}
		}
		if got := tok.Decode(tok.Append(nil, s)); got != s {
			rt.Fatalf("%q came back as %q", s, got)
		}
	})
}

func TestAppendMarkup(t *testing.T) {
	t.Parallel()
	tok := small(t)
	rows := map[string][]string{
		"<|im_start|>user\nhi<|im_end|>\n": {"<|im_start|>", "user", "\n", "h", "i", "<|im_end|>", "\n"},
		"<think>\n\n</think>\n\n":          {"<think>", "\n\n", "</think>", "\n\n"},
		"<|im_start|":                      {"<", "|", "im", "_", "st", "ar", "t", "|"},
		"<|im_start|><|im_start|>":         {"<|im_start|>", "<|im_start|>"},
		"<<think>":                         {"<", "<think>"},
		// One is the start of the other: the longer counts.
		"<tts_text_bos_single><tts_text_bos>": {"<tts_text_bos_single>", "<tts_text_bos>"},
	}
	for s, want := range rows {
		got := words(tok, tok.AppendMarkup(nil, s))
		if strings.Join(got, "") != s {
			t.Errorf("%q became %q", s, got)
		}
		for _, w := range want {
			if strings.HasPrefix(w, "<") && len(w) > 2 && !contains(got, w) {
				t.Errorf("%q became %q without %s", s, got, w)
			}
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// More than 30 marks on one letter: package norm would insert U+034F.
func TestManyMarks(t *testing.T) {
	t.Parallel()
	tok := small(t)
	rapid.Check(t, func(rt *rapid.T) {
		marks := rapid.SliceOfN(rapid.SampledFrom([]string{"\u0301", "\u0327", "\u0323", "\u0308", "\u05b0", "\u3099", "\u0345"}), 0, 80).Draw(rt, "marks")
		base := rapid.SampledFrom([]string{"a", "q", "", "가", "か", "\xff", "e\xff"}).Draw(rt, "base")
		s := base + strings.Join(marks, "") + "z"
		got := tok.Decode(tok.Append(nil, s))
		if strings.Contains(got, "\u034f") {
			rt.Fatalf("a joiner was inserted")
		}
		if len(marks) <= 20 && utf8.ValidString(s) && got != norm.NFC.String(s) {
			rt.Fatalf("%+q became %+q, want %+q", s, got, norm.NFC.String(s))
		}
		// Composition must be canonically equivalent however long the run is,
		// and bytes that are not UTF-8 stay where they are.
		parts, want := strings.Split(strings.Join(words(tok, tok.Append(nil, s)), ""), "\xff"), strings.Split(s, "\xff")
		if len(parts) != len(want) {
			rt.Fatalf("%+q has %d bytes that are not UTF-8, want %d", parts, len(parts)-1, len(want)-1)
		}
		for i := range parts {
			if decomposed(parts[i]) != decomposed(want[i]) {
				rt.Fatalf("%+q became %+q, which is another text", s, parts)
			}
		}
	})
}

// decomposed is NFD by definition, a mark at a time.
func decomposed(s string) string {
	var out []rune
	for _, r := range s {
		out = append(out, []rune(norm.NFD.String(string(r)))...)
	}
	ccc := func(r rune) uint8 { return norm.NFD.PropertiesString(string(r)).CCC() }
	for swapped := true; swapped; {
		swapped = false
		for i := 1; i < len(out); i++ {
			if a, b := ccc(out[i-1]), ccc(out[i]); b > 0 && a > b {
				out[i-1], out[i], swapped = out[i], out[i-1], true
			}
		}
	}
	return string(out)
}

func TestDecodeBytes(t *testing.T) {
	t.Parallel()
	tok := small(t)
	rapid.Check(t, func(rt *rapid.T) {
		b := rapid.SliceOf(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x8e, 0x89, 0xc0, 0xed, 0xa0}))).Draw(rt, "bytes")
		var ids []int32
		for _, c := range b {
			ids = append(ids, tok.Append(nil, string([]byte{c}))...)
		}
		want, err := unicode.UTF8.NewDecoder().Bytes(b)
		if err != nil {
			rt.Fatal(err)
		}
		if got := tok.Decode(ids); got != string(want) {
			rt.Fatalf("%x became %+q, want %+q", b, got, want)
		}
		d, streamed := tok.NewDecoder(), ""
		for _, id := range ids {
			s := d.Push(id)
			if !utf8.ValidString(s) {
				rt.Fatalf("%x: a piece is cut inside a character: %+q", b, s)
			}
			streamed += s
		}
		if streamed += d.Flush(); streamed != string(want) {
			rt.Fatalf("%x streamed as %+q, want %+q", b, streamed, want)
		}
	})
}

func TestDecodeControl(t *testing.T) {
	t.Parallel()
	tok := small(t)
	ids := tok.AppendMarkup(nil, "<|im_start|>a<think>b</think><tool_call><|im_end|>")
	ids = append(ids, -1, 511, 512, 1<<30) // ids of padding rows and beyond
	if got := tok.Decode(ids); got != "a<think>b</think><tool_call>" {
		t.Errorf("got %q", got)
	}
	// An incomplete character before a control token is not joined with what
	// comes after it.
	cut := tok.Append(nil, "\xf0\x9f")
	cut = append(tok.AppendMarkup(cut, "<|im_end|>"), tok.Append(nil, "\x8e\x89")...)
	if got := tok.Decode(cut); got != "\ufffd\ufffd\ufffd" {
		t.Errorf("got %+q", got)
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"", "Hello, world!", "a\u0301", "\xff\xfe", "日本語 <|im_end|>", "'S", " \n \n x", strings.Repeat("\u0301", 40)} {
		f.Add(s)
	}
	tok := small(f)
	f.Fuzz(func(t *testing.T, s string) {
		ids := tok.Append(nil, s)
		for _, id := range ids {
			if int(id) >= smallVocab-len(addedTokens) {
				t.Fatalf("%q became control", s)
			}
		}
		if !utf8.ValidString(s) {
			return
		}
		got := tok.Decode(ids)
		if decomposed(got) != decomposed(s) {
			t.Fatalf("%+q came back as %+q", s, got)
		}
		if norm.NFC.IsNormalString(s) && got != s {
			t.Fatalf("%+q came back as %+q", s, got)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	tok := small(b)
	s := strings.Repeat(corpus, 20)
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	var dst []int32
	for b.Loop() {
		dst = tok.Append(dst[:0], s)
	}
}

func BenchmarkAppendOneWord(b *testing.B) {
	tok := small(b)
	s := strings.Repeat("世界人工智能", 5000)
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	var dst []int32
	for b.Loop() {
		dst = tok.Append(dst[:0], s)
	}
}
