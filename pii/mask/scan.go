package mask

import "unicode/utf8"

// scanner finds the tokens of a text one after another.
type scanner struct {
	r        *Restorer
	json     bool
	inString bool
	prev     rune // the character before the text, wall at its beginning
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
	for i < len(text) {
		class := s.r.first[text[i]]
		if class == 0 {
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
					class = s.r.first[ch]
				}
				s.lastEnd, s.last = next, ch
			}
		}
		if class&(beginsExact|beginsSurrogate) != 0 || class&beginsMangled != 0 && !alnum(prev) {
			if m := s.r.match(&c, i, prev); m.status != none {
				return i, m
			}
		}
		i = next
	}
	if !final {
		i = complete(text)
	}
	return i, match{}
}

// before returns the character in front of offset i.
func (s *scanner) before(text string, i int) rune {
	switch {
	case i == 0:
		return s.prev
	case i == s.lastEnd:
		return s.last
	case text[i-1] < utf8.RuneSelf:
		return rune(text[i-1])
	}
	r, _ := utf8.DecodeLastRuneInString(text[:i])
	return r
}

// leave makes offset i the beginning of the text.
func (s *scanner) leave(text string, i int) {
	s.prev = s.before(text, i)
	s.lastEnd = 0
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
