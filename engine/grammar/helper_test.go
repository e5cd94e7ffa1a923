package grammar_test

import (
	"math/bits"
	"math/rand/v2"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/engine/grammar"
)

// stop ends a reply of the test vocabulary.
const stop = 0

// vocabulary has every byte and pieces of JSON, words and characters cut in
// odd places, as a real one has.
func vocabulary() *grammar.Vocab {
	tokens := testTokens()
	return grammar.NewVocab(tokens, len(tokens)+3)
}

// tokenTexts are the bytes of each id.
func tokenTexts() (out []string) {
	for _, t := range testTokens() {
		out = append(out, t.Text)
	}
	return out
}

func testTokens() []grammar.Token {
	tokens := []grammar.Token{{Text: "<|end|>", Markup: true}, {Text: "<tool_call>", Markup: true}, {Text: "</tool_call>", Markup: true}}
	add := func(s string) { tokens = append(tokens, grammar.Token{Text: s}) }
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	for _, s := range strings.Split(`{" "} ": ", "," "], {"a": "} {} [] [{ }] }, ]} ":" ":{" ":[" true false null tru ue nul 10 -1 0. .5 e5 12345 \" \\ \n \u00 \ud8 \u d83d \u0022 `+
		`abc hello world name value id a1 The cat 2024-02- T12:00 é ä漢 漢字 😀 日本 <function= <parameter= </parameter> </function> > =x "\n "b" "a","a" "a":1,"a":`, " ") {
		add(s)
	}
	for _, s := range []string{" ", "  ", "    ", "\n", "\n\n", "\n  ", "\t", "\n\t", " \"", ": ", ", ", ",\n", "{\n  \"", "\xe6\xbc", "\xa2", "\xf0\x9f", "\x98\x80", "\xed\xa0", ">\n", "</parameter>\n", "\n</"} {
		add(s)
	}
	add(strings.Repeat("x", 40)) // longer than what is counted apart
	add("\"" + strings.Repeat("y", 20))
	return tokens
}

func compile(tb failer, v *grammar.Vocab, schema string) *grammar.Grammar {
	tb.Helper()
	g, err := grammar.Compile(v, grammar.Spec{Answer: jsontext.Value(schema), Thought: true})
	if err != nil {
		tb.Fatalf("%s: %v", schema, err)
	}
	return g
}

// failer is what tests, benchmarks, fuzz targets and properties have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// accepts reports whether the grammar takes a text to its end.
func accepts(g *grammar.Grammar, text string) bool {
	m := g.Start([]int32{stop})
	defer m.Close()
	return m.Text(text) && m.Done()
}

// allowed are the ids of a mask.
func allowed(mask []uint64) (ids []int32) {
	for i, w := range mask {
		for ; w != 0; w &= w - 1 {
			ids = append(ids, int32(i*64+bits.TrailingZeros64(w)))
		}
	}
	return ids
}

// drive lets random tokens come, of those that may, and returns the text. After
// some it takes the shortest way to the end. It fails if there is none.
func drive(tb failer, v []string, g *grammar.Grammar, r *rand.Rand, steps int) string {
	tb.Helper()
	m := g.Start([]int32{stop})
	defer m.Close()
	var out strings.Builder
	for range steps {
		ids := allowed(m.Mask())
		if len(ids) == 0 {
			tb.Fatalf("nothing may come after %q", out.String())
		}
		id := ids[r.IntN(len(ids))]
		if !m.Accept(id) {
			tb.Fatalf("token %q was in the mask after %q and is not taken", v[id], out.String())
		}
		if id == stop {
			return out.String()
		}
		out.WriteString(v[id])
	}
	rest, ok := m.Finish(100_000)
	if !ok {
		tb.Fatalf("no end is found after %q", out.String())
	}
	return out.String() + rest
}
