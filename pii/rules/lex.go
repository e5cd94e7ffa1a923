package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// What is known of a word's shape.
const (
	hasDigit  = 1 << iota // an ASCII digit
	hasLetter             // an ASCII letter
	hasWide               // a letter outside ASCII
	hasLower              // a small letter
	capital               // begins with a capital
	isSolid               // run of a script that does not separate words
	isCamel               // capitals inside, behind small letters
)

// word is a maximal run of letters and digits. Runs of Han, Kana, Hangul and
// Thai are words of their own, even next to others.
type word struct {
	start, end uint32
	shape      uint8
	list       uint8
}

func (w word) len() int { return int(w.end - w.start) }

func (w word) is(shape uint8) bool { return w.shape&shape == shape }

// numeric reports ASCII digits only.
func (w word) numeric() bool { return w.shape&(hasDigit|hasLetter|hasWide|isSolid) == hasDigit }

// ascii reports ASCII letters and digits only.
func (w word) ascii() bool { return w.shape&(hasWide|isSolid) == 0 }

// hit is a phrase of the vocabulary in the text.
type hit struct {
	start, end uint32
	set        classSet
}

// text is one text under examination, cut into words.
type text struct {
	s     string
	words []word
	hits  []hit // in order of their ends
	key   int   // bytes at the start that are the member's name, not content

	tokenFrom, tokenTo int // the run that token cut last
	asked              int // questions to the numbering plans
}

// The classes of bytes that the lexer tells apart.
const (
	byteOther = iota
	byteLower
	byteUpper
	byteDigit
	byteWide
)

var byteClass = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z':
			t[c] = byteLower
		case c >= 'A' && c <= 'Z':
			t[c] = byteUpper
		case c >= '0' && c <= '9':
			t[c] = byteDigit
		case c >= utf8.RuneSelf:
			t[c] = byteWide
		}
	}
	return t
}()

// lex cuts t.s into words and finds the vocabulary's phrases.
func (v *vocab) lex(t *text) {
	m := matcher{v: v, t: t}
	s := t.s
	for i := 0; i < len(s); {
		switch byteClass[s[i]] {
		case byteOther:
			i++
		case byteWide:
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case unspaced(r):
				i = v.lexSolid(t, i)
			case unicode.IsLetter(r):
				i = m.word(i)
			default:
				i += n
			}
		default:
			i = m.word(i)
		}
	}
}

// unspaced reports scripts in which words are not separated.
func unspaced(r rune) bool {
	switch {
	case r < 0xE01 || r > 0xD7A3:
		return false
	case r <= 0xE5B, r >= 0x3005 && r <= 0x3007, r >= 0x3041 && r <= 0x30FF, r >= 0x3400 && r <= 0x9FFF, r >= 0xAC00:
		return true
	}
	return false
}

func (v *vocab) lexSolid(t *text, start int) int {
	i := start
	for i < len(t.s) {
		r, n := utf8.DecodeRuneInString(t.s[i:])
		if !unspaced(r) {
			break
		}
		for _, p := range v.unspace[r] {
			if strings.HasPrefix(t.s[i:], p.text) {
				t.hits = append(t.hits, hit{uint32(i), uint32(i + len(p.text)), p.set})
			}
		}
		i += n
	}
	t.words = append(t.words, word{start: uint32(start), end: uint32(i), shape: isSolid | hasWide})
	return i
}

// phraseState is how far a phrase has been read, and where it began.
type phraseState struct{ state, start uint32 }

// matcher follows phrases over the words of a text. A word in camel case counts
// as several.
type matcher struct {
	v       *vocab
	t       *text
	active  [8]phraseState
	n       int            // active states
	before  [8]phraseState // those before the word in camel case
	nBefore int
	last    int // end of the word before
	lower   [maxWord]byte
}

// word takes in the word at i and returns its end.
func (m *matcher) word(i int) int {
	s := m.t.s
	m.gap(i)
	m.before, m.nBefore = m.active, m.n
	start, part := i, i
	var shape uint8
	var prev uint8
	parts := 0
	for i < len(s) {
		c := byteClass[s[i]]
		if c == byteOther {
			break
		}
		n := 1
		switch c {
		case byteDigit:
			shape |= hasDigit
		case byteUpper:
			shape |= hasLetter
		case byteLower:
			shape |= hasLetter | hasLower
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if unspaced(r) || !unicode.IsLetter(r) && !unicode.Is(unicode.M, r) {
				goto done
			}
			n = size
			shape |= hasWide
			if !unicode.IsUpper(r) {
				shape |= hasLower
			} else if i == start {
				shape |= capital
			}
		}
		if i > part && (prev == byteDigit) != (c == byteDigit) && prev != 0 || c == byteUpper && prev == byteLower ||
			c == byteLower && prev == byteUpper && i > part+1 && byteClass[s[i-2]] == byteUpper {
			at := i
			if c == byteLower {
				at = i - 1 // the capital begins the new part, as in APIKey
			}
			if c == byteUpper && prev == byteLower {
				shape |= isCamel
			}
			m.part(part, at)
			part = at
			parts++
		}
		prev = c
		i += n
	}
done:
	if byteClass[s[start]] == byteUpper {
		shape |= capital
	}
	w := word{start: uint32(start), end: uint32(i), shape: shape}
	e := m.part(part, i)
	if parts > 0 {
		e = m.whole(start, i)
	}
	w.list = e.list
	m.t.words = append(m.t.words, w)
	m.last = i
	return i
}

// gap ends phrases that the text between two words breaks off.
func (m *matcher) gap(i int) {
	if m.n == 0 {
		return
	}
	if i-m.last > 3 {
		m.n = 0
		return
	}
	for _, c := range []byte(m.t.s[m.last:i]) {
		switch c {
		case ' ', '_', '-', '.', '/', '\'':
		default:
			m.n = 0
			return
		}
	}
}

// lookup finds the lower-case form of s[from:to].
func (m *matcher) lookup(from, to int) entry {
	if to-from > maxWord {
		return entry{}
	}
	n := 0
	s := m.t.s
	for i := from; i < to; {
		c := s[i]
		if c < utf8.RuneSelf {
			if byteClass[c] == byteUpper {
				c |= 0x20
			}
			m.lower[n] = c
			n++
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		r = unicode.ToLower(r)
		if n+utf8.RuneLen(r) > maxWord || utf8.RuneLen(r) < 0 {
			return entry{}
		}
		n += utf8.EncodeRune(m.lower[n:], r)
		i += size
	}
	return m.v.words[string(m.lower[:n])]
}

// part advances the phrases by a word or a part of one.
func (m *matcher) part(from, to int) entry {
	e := m.lookup(from, to)
	active, n := m.active, m.n
	m.n = 0
	m.advance(e, active[:n], from, to)
	return e
}

// whole advances by a word in camel case as it stands, as in McDonald or IdNr,
// beside what its parts have led to.
func (m *matcher) whole(from, to int) entry {
	e := m.lookup(from, to)
	m.advance(e, m.before[:m.nBefore], from, to)
	return e
}

func (m *matcher) advance(e entry, active []phraseState, from, to int) {
	if e.id == 0 {
		return
	}
	for _, a := range active {
		if next, ok := m.v.edges[uint64(a.state)<<32|uint64(e.id)]; ok {
			m.enter(next, a.start, to)
		}
	}
	if next, ok := m.v.edges[uint64(e.id)]; ok {
		m.enter(next, uint32(from), to)
	}
}

func (m *matcher) enter(state, start uint32, to int) {
	if m.n < len(m.active) {
		m.active[m.n] = phraseState{state, start}
		m.n++
	}
	m.emit(state, start, uint32(to))
}

func (m *matcher) emit(state, start, end uint32) {
	if set := m.v.accept[state]; !set.empty() {
		m.t.hits = append(m.t.hits, hit{start, end, set})
	}
}

// context returns the classes of the phrases within before bytes ahead of
// [start,end) and after bytes behind it.
func (t *text) context(start, end, before, after int) classSet {
	var set classSet
	i := t.hitAfter(start)
	for j := i - 1; j >= 0 && int(t.hits[j].end) >= start-before; j-- {
		if int(t.hits[j].end) <= start {
			set.join(t.hits[j].set)
		}
	}
	for j := i; j < len(t.hits) && int(t.hits[j].start) <= end+after; j++ {
		if int(t.hits[j].start) >= end {
			set.join(t.hits[j].set)
		}
	}
	return set
}

// hitAfter returns the first hit that ends behind pos.
func (t *text) hitAfter(pos int) int {
	lo, hi := 0, len(t.hits)
	for lo < hi {
		mid := (lo + hi) / 2
		if int(t.hits[mid].end) <= pos {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// wordAt returns the first word that ends behind pos.
func (t *text) wordAt(pos int) int {
	lo, hi := 0, len(t.words)
	for lo < hi {
		mid := (lo + hi) / 2
		if int(t.words[mid].end) <= pos {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// nextWord returns the first word that begins at pos or behind it.
func (t *text) nextWord(pos int) int {
	i := t.wordAt(pos)
	if i < len(t.words) && int(t.words[i].start) < pos {
		i++
	}
	return i
}

// word returns the text of the i-th word.
func (t *text) word(i int) string { return t.s[t.words[i].start:t.words[i].end] }
