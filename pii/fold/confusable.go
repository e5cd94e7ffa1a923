package fold

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:generate go run ./gen -in confusables.txt.gz -out confusables_gen.go

// confusable is a code point outside ASCII and the ASCII character it passes
// for.
type confusable struct {
	from rune
	to   byte
}

// lookAlike returns the ASCII character that r passes for.
func lookAlike(r rune) (byte, bool) {
	i, ok := slices.BinarySearchFunc(confusables[:], r, func(c confusable, r rune) int { return int(c.from - r) })
	if !ok {
		return 0, false
	}
	return confusables[i].to, true
}

// unmaskLetters replaces foreign letters that pass for ASCII ones.
//
// Replacing every such letter would wreck honest Cyrillic and Greek, where
// "сор" is a word. So a word is changed only if all its foreign letters have an
// ASCII twin, and it either holds ASCII letters or digits itself, or stands in
// a longer token (an address, a key) whose other words are ASCII.
func unmaskLetters(s string) (string, []edit) {
	var b builder
	for i := 0; i < len(s); {
		end := tokenEnd(s, i)
		if end == i {
			_, n := utf8.DecodeRuneInString(s[i:])
			i += n
			continue
		}
		unmaskToken(&b, s, i, end)
		i = end
	}
	return b.finish(s)
}

// census counts the letters of a word or token.
type census struct {
	ascii   int // ASCII letters and digits
	twins   int // foreign letters with an ASCII twin
	foreign int // foreign letters without one
	weak    int // twins that are only taken for ASCII among ASCII letters
}

// weakTwins look less like an ASCII letter than others, and make up many honest
// words.
const weakTwins = "кмтпнв"

func (c *census) add(d census) {
	c.ascii += d.ascii
	c.twins += d.twins
	c.foreign += d.foreign
	c.weak += d.weak
}

func unmaskToken(b *builder, s string, start, end int) {
	var whole census
	for i := start; i < end; {
		c, next := countWord(s, i, end)
		whole.add(c)
		i = next
	}
	if whole.twins == 0 {
		return
	}
	inASCII := whole.foreign == 0 && whole.ascii > 0
	for i := start; i < end; {
		c, next := countWord(s, i, end)
		if c.twins > 0 && c.foreign == 0 && (c.ascii > 0 || inASCII && c.weak == 0) {
			unmaskWord(b, s, i, next)
		}
		i = next
	}
}

func unmaskWord(b *builder, s string, start, end int) {
	for i := start; i < end; {
		r, n := utf8.DecodeRuneInString(s[i:end])
		if r >= utf8.RuneSelf {
			if to, ok := lookAlike(r); ok {
				b.replace(s, i, i+n, string(rune(to)))
			}
		}
		i += n
	}
}

// countWord counts the word at i and returns where the next one begins. What
// lies between words belongs to the word before.
func countWord(s string, i, end int) (census, int) {
	var c census
	inWord := true
	for i < end {
		r, n := utf8.DecodeRuneInString(s[i:end])
		letter := unicode.IsLetter(r) || unicode.IsDigit(r)
		if letter && !inWord {
			break
		}
		switch {
		case !letter:
			inWord = false
			if _, ok := lookAlike(r); ok && r >= utf8.RuneSelf {
				c.twins++
				inWord = true
			}
		case r < utf8.RuneSelf:
			c.ascii++
		default:
			if _, ok := lookAlike(r); !ok {
				c.foreign++
				break
			}
			c.twins++
			if strings.ContainsRune(weakTwins, r) {
				c.weak++
			}
		}
		i += n
	}
	return c, i
}

// tokenEnd returns the end of the run of non-blank, non-quoting characters that
// begins at i.
func tokenEnd(s string, i int) int {
	for i < len(s) {
		c := s[i]
		if c < utf8.RuneSelf {
			if c <= ' ' || c == '"' || c == '\'' || c == '<' || c == '>' || c == '(' || c == ')' || c == ',' || c == ';' || c == '[' || c == ']' || c == '{' || c == '}' {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if unicode.IsSpace(r) {
			return i
		}
		i += n
	}
	return i
}
