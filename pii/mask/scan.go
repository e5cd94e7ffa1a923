package mask

import (
	"strconv"
	"unicode/utf8"
)

// scanner finds the tokens of a text one after another.
type scanner struct {
	r        *Restorer
	json     bool
	inString bool
	prev     rune            // the character before the text, wall at its beginning
	tail     [escapeLen]byte // the last bytes before the text
	tailLen  int
	lastEnd  int  // where the last escape or token ended, 0 for none,
	last     rune // and the character that it ended in
}

// next returns the first token at or behind i. With status none the text ends
// at start without one.
func (s *scanner) next(text string, i int, final bool) (start int, m match) {
	start, m = s.search(text, i, final)
	if m.status == hit || m.status == unknown {
		s.lastEnd, s.last = m.end, m.last
	}
	return start, m
}

func (s *scanner) search(text string, i int, final bool) (start int, m match) {
	c := cursor{text: text, json: s.json, str: s.inString, final: final}
	first, pairs := &s.r.first, &s.r.pairs
	for i < len(text) {
		class := first[text[i]]
		if class == 0 || class&special == 0 && i+1 < len(text) && !pairs.has(text[i], text[i+1]) {
			i++
			continue
		}
		next, prev := i+1, s.before(text, i)
		if s.json && class&special != 0 {
			if text[i] == '"' {
				s.inString = !s.inString
				c.str = s.inString
				i++
				continue
			}
			if s.inString {
				var ch rune
				if ch, next = c.escape(i); ch == more {
					return i, match{status: needMore}
				}
				class = 0
				if ch < utf8.RuneSelf {
					class = first[ch]
				}
				s.lastEnd, s.last = next, ch
			}
		}
		if m := s.r.match(&c, i, prev, class); m.status != none {
			return i, m
		}
		i = next
	}
	if !final {
		i = complete(text)
	}
	return i, match{}
}

// escapeLen is the length of a percent escape.
const escapeLen = len("%2F")

// before returns the character in front of offset i.
func (s *scanner) before(text string, i int) rune {
	switch {
	case i == 0:
		return s.prev
	case i == s.lastEnd:
		return s.last
	case i < escapeLen:
		var b [2 * escapeLen]byte
		n := copy(b[:], s.tail[:s.tailLen])
		n += copy(b[n:], text[:i])
		return lastRune(string(b[:n]))
	}
	return lastRune(text[:i])
}

// leave makes offset i the beginning of the text.
func (s *scanner) leave(text string, i int) {
	s.prev = s.before(text, i)
	s.lastEnd = 0
	if i < escapeLen {
		keep := min(s.tailLen, escapeLen-i)
		copy(s.tail[:], s.tail[s.tailLen-keep:s.tailLen])
		s.tailLen = keep
	} else {
		s.tailLen = 0
	}
	s.tailLen += copy(s.tail[s.tailLen:], text[max(0, i-escapeLen):i])
}

// lastRune returns the last character of s, where a percent escape is one: in
// "%2FPERSON_Q7K2M" no letter stands before the token. It returns wall if s is
// empty.
func lastRune(s string) rune {
	n := len(s)
	if n == 0 {
		return wall
	}
	if n >= 3 && s[n-3] == '%' {
		if c, err := strconv.ParseUint(s[n-2:], 16, 8); err == nil {
			return rune(c)
		}
	}
	if s[n-1] < utf8.RuneSelf {
		return rune(s[n-1])
	}
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// complete returns the length of text without an incomplete last character.
func complete(text string) int {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if utf8.FullRuneInString(text[i:]) {
				break
			}
			return i
		}
	}
	return len(text)
}
