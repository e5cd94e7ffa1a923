package grammar_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"weir/engine/grammar"
)

// realSize makes 248,044 tokens with about the make-up of a large byte-level
// vocabulary: words with and without a blank before them, code, numbers by the
// digit, white space, other scripts whole and cut within characters. Lengths
// are about 6 bytes on average and 256 at most.
func realSize() []grammar.Token {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	var tokens []grammar.Token
	add := func(s string) {
		if !seen[s] {
			seen[s] = true
			tokens = append(tokens, grammar.Token{Text: s})
		}
	}
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	for n := 1; n <= 128; n++ {
		add(strings.Repeat(" ", n))
		add(strings.Repeat("\n", n/8+1) + strings.Repeat(" ", n%8))
		add(strings.Repeat("\t", n/4+1))
	}
	letters := "etaoinshrdlucmfwypvbgkjqxzETAOINSRH"
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(letters[min(r.IntN(len(letters)), r.IntN(len(letters)))])
		}
		return b.String()
	}
	scripts := [][2]rune{{0xC0, 0x17F}, {0x400, 0x45F}, {0x600, 0x64A}, {0x900, 0x970}, {0xE01, 0xE3A}, {0x3041, 0x30FF}, {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3}, {0x1F300, 0x1F6FF}}
	marks := []string{"\"", "\",", "\":", "\": \"", "\"}", "\"\n", "\",\n", "{\"", "[\"", "],", "},", "{", "}", "[", "]", ":", ",", ";", "()", "();\n", "\\", "\\n", "\\\"", "/", ".", "-", "_", "->", "==", "//", "<", ">", "</", "='", "'s"}
	for _, m := range marks {
		add(m)
		add(" " + m)
	}
	for len(tokens) < 248_044 {
		switch k := r.IntN(100); {
		case k < 52: // words
			w := word(2 + r.IntN(4) + r.IntN(6))
			if r.IntN(3) > 0 {
				w = " " + w
			}
			add(w)
		case k < 60: // code
			add(marks[r.IntN(len(marks))] + word(r.IntN(5)))
		case k < 64:
			add(word(1+r.IntN(5)) + marks[r.IntN(len(marks))])
		default: // other scripts
			s := scripts[r.IntN(len(scripts))]
			var b strings.Builder
			for range 1 + r.IntN(5) {
				b.WriteRune(s[0] + r.Int32N(s[1]-s[0]))
			}
			t := b.String()
			if r.IntN(25) == 0 { // cut within a character
				t = t[:len(t)-1]
			}
			add(t)
		}
	}
	for _, name := range []string{"<|endoftext|>", "<|im_end|>", "<tool_call>", "</tool_call>"} {
		tokens = append(tokens, grammar.Token{Text: name, Markup: true})
	}
	return tokens
}

type sized struct {
	tokens []grammar.Token
	vocab  *grammar.Vocab
}

// large is made once for all benchmarks.
var large = sync.OnceValue(func() sized {
	tokens := realSize()
	return sized{tokens, grammar.NewVocab(tokens, 248_320)}
})

// encode cuts a text into the longest tokens, as well as a merge list would.
func (s sized) encode(text string) (ids []int32) {
	byText := map[string]int32{}
	for id, t := range s.tokens {
		byText[t.Text] = int32(id)
	}
	for len(text) > 0 {
		for n := min(len(text), 24); n > 0; n-- {
			if id, ok := byText[text[:n]]; ok {
				ids, text = append(ids, id), text[n:]
				break
			}
		}
	}
	return ids
}

const person = `{"type":"object","properties":{"name":{"type":"string","maxLength":60},"code":{"type":"string","pattern":"^[A-Z]{2}-[0-9]{4}$"},"bio":{"type":"string"},
"age":{"type":"integer","minimum":0,"maximum":150},"tags":{"type":"array","items":{"enum":["red","green","blue"]},"maxItems":5},"born":{"type":"string","format":"date"},
"home":{"anyOf":[{"type":"null"},{"type":"object","properties":{"street":{"type":"string"},"slug":{"type":"string","pattern":"^[a-z0-9-]{1,40}$"}},"required":["street","slug"],"additionalProperties":false}]}},
"required":["name","code","bio","age","tags","born","home"],"additionalProperties":false}`

const personText = `{"name": "Mara Lindqvist of the northern harbour", "code": "SE-0042", "bio": "She mends nets, \"mostly\" at night, and writes about it in three languages: svenska, 日本語 and русский.\nHer boat has a name of its own, which she keeps to herself.", ` +
	`"age": 47, "tags": ["red", "blue"], "born": "1979-02-28", "home": {"street": "Quay 7, second door behind the smokehouse", "slug": "quay-7-second-door"}}`

// BenchmarkReply is masks and tokens of a whole reply, after the first one
// with the same grammar. The figure that matters is ns/token.
func BenchmarkReply(b *testing.B) {
	s := large()
	for name, schema := range map[string]string{"schema": person, "json": `{"type":"object"}`} {
		ids := s.encode(personText)
		g := compile(b, s.vocab, schema)
		run := func() {
			m := g.Start([]int32{248_045})
			defer m.Close()
			for _, id := range ids {
				m.Mask()
				if !m.Accept(id) {
					b.Fatalf("token %q is not taken", s.tokens[id].Text)
				}
			}
			m.Mask()
		}
		run()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ids)), "ns/token")
			b.ReportMetric(float64(len(ids)), "tokens")
		})
	}
}

// BenchmarkFirstReply is the same with a grammar that was never used, compiling
// it included.
func BenchmarkFirstReply(b *testing.B) {
	s := large()
	for name, schema := range map[string]string{"schema": person, "json": `{"type":"object"}`} {
		ids := s.encode(personText)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := compile(b, s.vocab, schema).Start([]int32{248_045})
				for _, id := range ids {
					m.Mask()
					if !m.Accept(id) {
						b.Fatalf("token %q is not taken", s.tokens[id].Text)
					}
				}
				m.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ids)), "ns/token")
		})
	}
}

// BenchmarkPattern is a mask that is made for the first time, in the middle of a
// string of many common characters whose length is bounded: the slowest there is.
func BenchmarkPattern(b *testing.B) {
	s := large()
	b.ReportAllocs()
	for b.Loop() {
		m := compile(b, s.vocab, `{"type":"string","pattern":"^[\\w .,-]{1,300}$"}`).Start([]int32{248_045})
		if !m.Text(`"she`) {
			b.Fatal("not taken")
		}
		m.Mask()
		m.Close()
	}
}

func BenchmarkCompile(b *testing.B) {
	v := vocabulary()
	b.ReportAllocs()
	for b.Loop() {
		compile(b, v, person)
	}
}

func BenchmarkNewVocab(b *testing.B) {
	tokens := large().tokens
	b.ReportAllocs()
	for b.Loop() {
		grammar.NewVocab(tokens, 248_320)
	}
}
