// Package feature turns text into what the tagger's network reads: tokens, and
// for each token the rows of the embedding table that are summed for it.
//
// Begin at [Tokens] and [Extractor.IDs]. Training and inference both use this
// package, so there is one account of what a feature is. A feature depends on
// its token and on at most one token and three characters before and behind it.
//
// It promises linear time, no allocation beyond the caller's buffers, and any
// bytes as input. [Version] changes whenever the features of a text do.
package feature

import (
	"unicode"
	"unicode/utf8"
)

// Version identifies the features. Weights name the one they were trained with.
const Version = 2

// The embedding table has Rows rows in three regions. Row 0 is all zero.
const (
	Rows     = 65536
	wordFrom = 1                                      // whole words
	gramFrom = 24576                                  // runs of three and four characters
	listFrom = 57344                                  // what the lists say
	miscFrom = listFrom + endFrom + maxPart*listFlags // shapes, signs, gaps
)

// The rows of lists, from listFrom on: a word's flags and case; the flags of the
// words that begin at a character of a script without blanks, by length; and of
// those that end there.
const (
	beginFrom = listFlags * shapes
	endFrom   = beginFrom + maxPart*listFlags
)

// MaxIDs bounds the rows of a token.
const MaxIDs = 26

// maxRunes is how much of a word is looked at.
const maxRunes = 24

// Kind is the class of a token.
type Kind uint8

// The classes of tokens.
const (
	Word   Kind = iota // letters
	Number             // digits
	Mixed              // letters and digits, changing more than once
	Sign               // one sign, or three and more of the same
	Solid              // one character of a script that does not separate words
)

// Token is a piece of text: bytes [Start,End).
type Token struct {
	Start, End uint32
	Kind       Kind
	Gap        uint8 // what stands before it
}

// What stands before a token.
const (
	gapNone  = iota
	gapSpace // blanks
	gapLine  // one line break
	gapBlank // an empty line
	gapStart // the beginning
)

// Tokens appends the tokens of s to buf.
func Tokens(s string, buf []Token) []Token {
	gap := uint8(gapStart)
	for i := 0; i < len(s); {
		start := i
		t := Token{Start: uint32(i), Gap: gap}
		c := s[i]
		switch class := classOf(c); {
		case class == classSpace:
			gap, i = gapOf(s, i, gap)
			continue
		case class == classLetter || class == classDigit:
			t.Kind, i = alnum(s, i)
		case class == classSign:
			t.Kind, i = Sign, i+1
			for i < len(s) && s[i] == c {
				i++
			}
			if i-start < 3 {
				i = start + 1
			}
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case solid(r):
				t.Kind, i = Solid, i+n
			case unicode.IsLetter(r) || unicode.IsMark(r):
				t.Kind, i = alnum(s, i)
			case unicode.IsSpace(r):
				gap, i = max(gap, gapSpace), i+n
				continue
			default:
				t.Kind, i = Sign, i+n
			}
		}
		t.End = uint32(i)
		buf = append(buf, t)
		gap = gapNone
	}
	return buf
}

func gapOf(s string, i int, gap uint8) (uint8, int) {
	if s[i] != '\n' {
		return max(gap, gapSpace), i + 1
	}
	if gap >= gapLine {
		return max(gap, gapBlank), i + 1
	}
	return gapLine, i + 1
}

// alnum returns the class and end of the word or number at i. A run of ASCII
// letters and digits that changes once, as B12, is cut there.
func alnum(s string, i int) (Kind, int) {
	start, changes, cut := i, 0, 0
	last := -1
	ascii := true
	for i < len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if solid(r) || !unicode.IsLetter(r) && !unicode.IsMark(r) {
				break
			}
			ascii = false
			if last == classDigit {
				changes, cut = changes+1, i
			}
			last = classLetter
			i += n
			continue
		}
		class := classOf(c)
		if class != classLetter && class != classDigit {
			break
		}
		if last >= 0 && class != last {
			if changes++; changes == 1 {
				cut = i
			}
		}
		last = class
		i++
	}
	first := Word
	if classOf(s[start]) == classDigit {
		first = Number
	}
	switch {
	case changes == 0:
		return first, i
	case changes == 1:
		return first, cut
	case ascii:
		return Mixed, i
	}
	return first, firstCut(s, start)
}

// firstCut returns where letters and digits first change behind start.
func firstCut(s string, start int) int {
	digit := classOf(s[start]) == classDigit
	for i := start; i < len(s); i++ {
		if (classOf(s[i]) == classDigit) != digit {
			return i
		}
	}
	return len(s)
}

// The classes of bytes.
const (
	classLetter = iota
	classDigit
	classSpace
	classSign
	classWide
)

func classOf(c byte) int {
	switch {
	case c|0x20 >= 'a' && c|0x20 <= 'z':
		return classLetter
	case c >= '0' && c <= '9':
		return classDigit
	case c >= utf8.RuneSelf:
		return classWide
	case c <= ' ':
		return classSpace
	}
	return classSign
}

// solid reports scripts whose words are not separated, and Hangul, whose words
// carry endings.
func solid(r rune) bool {
	switch {
	case r < 0xE01:
		return false
	case r <= 0xE5B, r >= 0x3005 && r <= 0x3007, r >= 0x3041 && r <= 0x30FF, r >= 0x3400 && r <= 0x9FFF, r >= 0xAC00 && r <= 0xD7A3,
		r >= 0xF900 && r <= 0xFAFF, r >= 0x20000 && r <= 0x3FFFF:
		return true
	}
	return false
}
