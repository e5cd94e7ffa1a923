package tokenizer_test

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"weir/engine/tokenizer"
)

// referenceSplit follows the pattern with Go's regexp, as far as that goes:
// the alternative with the lookahead is spelled out. White_Space is written as
// a class, because \s in Go is ASCII.
func referenceSplit(s string) []string {
	var words []string
	for len(s) > 0 {
		n := len(upTo.FindString(s))
		if n == 0 {
			run := whitespace.FindString(s)
			n = len(run)
			if _, last := utf8.DecodeLastRuneInString(run); n < len(s) && n > last {
				n -= last // \s+(?!\S) gives one back; alone, it matches \s+
			}
		}
		words = append(words, s[:n])
		s = s[n:]
	}
	return words
}

const sp = `\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`

var (
	upTo = regexp.MustCompile(`^(?:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^` + sp +
		`\p{L}\p{M}\p{N}]+[\r\n]*|[` + sp + `]*[\r\n]+)`)
	whitespace = regexp.MustCompile(`^[` + sp + `]+`)
)

// referenceEncode is BPE by definition: join the pair of lowest rank, leftmost
// first, until there is none.
func referenceEncode(tok *tokenizer.Tokenizer, ranks map[[2]string]int, text string) []int32 {
	ids := map[string]int32{}
	for id := range int32(tok.Size()) {
		ids[tok.Token(id)] = id
	}
	var out []int32
	for _, w := range referenceSplit(norm.NFC.String(text)) {
		parts := strings.Split(w, "")
		parts = parts[:0]
		for i := range len(w) {
			parts = append(parts, w[i:i+1])
		}
		for {
			best, at := len(ranks), -1
			for i := 1; i < len(parts); i++ {
				if r, ok := ranks[[2]string{parts[i-1], parts[i]}]; ok && r < best {
					best, at = r, i
				}
			}
			if at < 0 {
				break
			}
			parts = append(append(append([]string(nil), parts[:at-1]...), parts[at-1]+parts[at]), parts[at+1:]...)
		}
		for _, p := range parts {
			out = append(out, ids[p])
		}
	}
	return out
}
