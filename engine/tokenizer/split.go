package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// pattern is the split expression of the vocabulary file. Go's regexp has no
// lookahead, so nextWord follows it by hand; a file with another pattern is
// refused.
const pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// class is what the pattern distinguishes.
type class uint8

const (
	other   class = iota
	letter        // \p{L}
	mark          // \p{M}
	number        // \p{N}
	space         // \s without the next one
	newline       // CR and LF
)

func classOf(r rune) class {
	switch {
	case r < utf8.RuneSelf:
		return asciiClass(byte(r))
	case unicode.Is(unicode.L, r):
		return letter
	case unicode.Is(unicode.M, r):
		return mark
	case unicode.Is(unicode.N, r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

func asciiClass(b byte) class {
	switch {
	case b|0x20 >= 'a' && b|0x20 <= 'z':
		return letter
	case b >= '0' && b <= '9':
		return number
	case b == '\r' || b == '\n':
		return newline
	case b == ' ' || b >= '\t' && b <= '\r':
		return space
	}
	return other
}

// classAt returns the class and length of the character at s[i:], or length 0
// at the end. A byte that is not UTF-8 counts as a character of no class.
func classAt(s string, i int) (class, int) {
	if i >= len(s) {
		return other, 0
	}
	if s[i] < utf8.RuneSelf {
		return asciiClass(s[i]), 1
	}
	r, n := utf8.DecodeRuneInString(s[i:]) // U+FFFD, which has no class either
	return classOf(r), n
}

// run returns the end of the longest run from i of characters in the classes.
func run(s string, i int, in func(class) bool) int {
	for {
		c, n := classAt(s, i)
		if n == 0 || !in(c) {
			return i
		}
		i += n
	}
}

func isWord(c class) bool    { return c == letter || c == mark }
func isSymbol(c class) bool  { return c == other }
func isNewline(c class) bool { return c == newline }
func isSpace(c class) bool   { return c == space || c == newline }

// nextWord returns the length of the first word of s, which is not empty. The
// alternatives of the pattern are tried in its order.
func nextWord(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	first, n := classAt(s, 0)
	// One character that is neither newline, letter nor number, then letters
	// and marks. Where it is a mark itself, the run is the same without it.
	if isWord(first) {
		return run(s, 0, isWord)
	}
	if first == other || first == space {
		if end := run(s, n, isWord); end > n {
			return end
		}
	}
	if first == number {
		return n
	}
	// Symbols, after a blank or not, and the newlines behind them.
	from := 0
	if s[0] == ' ' {
		from = 1
	}
	if end := run(s, from, isSymbol); end > from {
		return run(s, end, isNewline)
	}
	return spaces(s)
}

// spaces returns the length of the word at the start of a run of white space:
// up to its last newline; else all of it at the end of the text; else all but
// the last character, which goes with what follows.
func spaces(s string) int {
	end, afterNewline, last := 0, 0, 0
	for {
		c, n := classAt(s, end)
		if n == 0 || !isSpace(c) {
			break
		}
		last, end = end, end+n
		if c == newline {
			afterNewline = end
		}
	}
	switch {
	case afterNewline > 0:
		return afterNewline
	case end == len(s) || last == 0:
		return end
	}
	return last
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the
// start of s, in either case. U+017F folds to s.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2]|0x20 == 'l' {
			return 3
		}
	}
	if len(s) > 2 && s[1:3] == "ſ" {
		return 3
	}
	return 0
}
