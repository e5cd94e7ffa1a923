package grammar

// spelling is how the characters of a string are written.
type spelling uint8

const (
	// loose is a JSON string with whatever escapes.
	loose spelling = iota
	// canonical is a JSON string with escapes only where they must be, and the
	// shortest: one text is spelled one way.
	canonical
	// plain is text without quotes or escapes.
	plain
)

// text is a terminal: characters of an automaton, spelled.
type text struct {
	dfa  *runes
	form spelling
	// follow is the byte that comes next, -1 if that is not known. A text
	// without quotes may end anywhere, and this says where it need be tried.
	follow int16
}

// A text's progress is packed in 64 bits: the automaton's state, a mode, and
// what was read of a character.
const (
	modeQuote   = iota // the opening quote comes
	modeBody           // between characters
	modeEscape         // behind a backslash
	modeHex            // to modeHex+3: so many digits of \uXXXX
	modePair    = 7    // behind a high surrogate: a backslash comes
	modePairU   = 8    // its u
	modePairHex = 9    // to modePairHex+3
	modeUTF8    = 13   // + 3*(length-2) + bytes left - 1
	modeDone    = 22
)

func progress(q int32, mode, acc uint32) uint64 {
	return uint64(q)<<32 | uint64(mode)<<24 | uint64(acc)
}

func (t *text) start() uint64 {
	if t.form == plain {
		return progress(0, modeBody, 0)
	}
	return progress(0, modeQuote, 0)
}

// ends reports whether the text is complete.
func (t *text) ends(at uint64) bool {
	mode := uint32(at) >> 24
	if t.form == plain {
		return mode == modeBody && t.dfa.accepts(int32(at>>32))
	}
	return mode == modeDone
}

// inBody reports whether at is between two characters.
func inBody(at uint64) (q int32, ok bool) {
	return int32(at >> 32), uint32(at) == modeBody<<24
}

// step reads a byte.
func (t *text) step(at uint64, b byte) (uint64, bool) {
	q, mode, acc := int32(at>>32), uint32(at)>>24, uint32(at)&(1<<24-1)
	switch {
	case mode == modeBody:
		return t.body(q, b)
	case mode == modeQuote:
		return progress(q, modeBody, 0), b == '"'
	case mode == modeEscape:
		return t.escape(q, b)
	case mode < modePair:
		return t.hex(q, mode-modeHex, acc, b)
	case mode == modePair:
		return progress(q, modePairU, acc), b == '\\'
	case mode == modePairU:
		return progress(q, modePairHex, acc<<12), b == 'u'
	case mode < modeUTF8:
		return t.pair(q, mode-modePairHex, acc, b)
	case mode < modeDone:
		return t.utf8(q, mode, acc, b)
	}
	return 0, false
}

// char reads a whole character.
func (t *text) char(q int32, r rune) (uint64, bool) {
	q, ok := t.dfa.next(q, r)
	return progress(q, modeBody, 0), ok
}

func (t *text) body(q int32, b byte) (uint64, bool) {
	switch {
	case b >= 0x80:
		return t.lead(q, b)
	case t.form == plain:
		if b < 0x20 && b != '\n' && b != '\t' && b != '\r' {
			return 0, false
		}
	case b == '"':
		return progress(q, modeDone, 0), t.dfa.accepts(q)
	case b == '\\':
		return progress(q, modeEscape, 0), t.escapable(q)
	case b < 0x20:
		return 0, false
	}
	return t.char(q, rune(b))
}

// escapable reports whether some character that may come can be escaped.
func (t *text) escapable(q int32) bool {
	if t.form == loose {
		return t.dfa.some(q, 0, lastRune)
	}
	return t.dfa.some(q, 0, 0x1F) || t.dfa.some(q, '"', '"') || t.dfa.some(q, '\\', '\\')
}

func (t *text) escape(q int32, b byte) (uint64, bool) {
	switch b {
	case '"', '\\':
		return t.char(q, rune(b))
	case '/':
		if t.form == loose {
			return t.char(q, '/')
		}
	case 'b':
		return t.char(q, '\b')
	case 'f':
		return t.char(q, '\f')
	case 'n':
		return t.char(q, '\n')
	case 'r':
		return t.char(q, '\r')
	case 't':
		return t.char(q, '\t')
	case 'u':
		return progress(q, modeHex, 0), t.hexFrom(q, 0, 0xFFFF)
	}
	return 0, false
}

// hexFrom reports whether some character from lo to hi may come as \uXXXX, or
// the first half of one.
func (t *text) hexFrom(q int32, lo, hi rune) bool {
	if t.form == canonical {
		for r := lo; r <= min(hi, 0x1F); r++ {
			if !hasShort(r) && t.dfa.some(q, r, r) {
				return true
			}
		}
		return false
	}
	if t.dfa.some(q, lo, min(hi, surrLo-1)) || t.dfa.some(q, max(lo, surrHi+1), hi) {
		return true
	}
	lo, hi = max(lo, surrLo), min(hi, 0xDBFF)
	return lo <= hi && t.dfa.some(q, 0x10000+(lo-surrLo)<<10, 0x10000+(hi-surrLo)<<10+0x3FF)
}

// hasShort reports a control character with an escape of two letters.
func hasShort(r rune) bool { return r >= '\b' && r <= '\r' && r != '\v' }

// hex reads the digit after n others that make v.
func (t *text) hex(q int32, n, v uint32, b byte) (uint64, bool) {
	d, ok := hexDigit(b)
	if !ok || t.form == canonical && b >= 'A' && b <= 'F' {
		return 0, false
	}
	v, n = v<<4|uint32(d), n+1
	left := 4 * (4 - n)
	lo := rune(v) << left
	if !t.hexFrom(q, lo, lo|(1<<left-1)) {
		return 0, false
	}
	switch {
	case n < 4:
		return progress(q, modeHex+n, v), true
	case lo >= surrLo && lo <= surrHi:
		return progress(q, modePair, v-surrLo), true
	}
	return t.char(q, lo)
}

// pair reads a digit of the second half of a pair. acc is the first half and
// the digits so far.
func (t *text) pair(q int32, n, acc uint32, b byte) (uint64, bool) {
	d, ok := hexDigit(b)
	if !ok {
		return 0, false
	}
	high, v := acc>>12, (acc&0xFFF)<<4|uint32(d)
	n++
	left := 4 * (4 - n)
	lo, hi := max(rune(v)<<left, 0xDC00), min(rune(v)<<left|(1<<left-1), surrHi)
	base := rune(0x10000 + high<<10)
	if lo > hi || !t.dfa.some(q, base+lo-0xDC00, base+hi-0xDC00) {
		return 0, false
	}
	if n < 4 {
		return progress(q, modePairHex+n, high<<12|v), true
	}
	return t.char(q, base+lo-0xDC00)
}

// lead reads the first byte of several.
func (t *text) lead(q int32, b byte) (uint64, bool) {
	switch {
	case b >= 0xC2 && b <= 0xDF:
		return t.more(q, 2, 1, uint32(b&0x1F))
	case b >= 0xE0 && b <= 0xEF:
		return t.more(q, 3, 2, uint32(b&0x0F))
	case b >= 0xF0 && b <= 0xF4:
		return t.more(q, 4, 3, uint32(b&0x07))
	}
	return 0, false
}

func (t *text) utf8(q int32, mode, acc uint32, b byte) (uint64, bool) {
	if b&0xC0 != 0x80 {
		return 0, false
	}
	mode -= modeUTF8
	return t.more(q, 2+mode/3, mode%3, acc<<6|uint32(b&0x3F))
}

// more is a character of n bytes of which some are left.
func (t *text) more(q int32, n, left, acc uint32) (uint64, bool) {
	if left == 0 {
		return t.char(q, rune(acc)) // that it is one was seen to before its last byte
	}
	lo := rune(acc << (6 * left))
	hi := lo | (1<<(6*left) - 1)
	lo, hi = max(lo, [...]rune{0x80, 0x800, 0x10000}[n-2]), min(hi, lastRune)
	return progress(q, modeUTF8+3*(n-2)+left-1, acc), t.dfa.some(q, lo, hi)
}

func hexDigit(b byte) (byte, bool) {
	switch {
	case b >= '0' && b <= '9':
		return b - '0', true
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10, true
	case b >= 'A' && b <= 'F':
		return b - 'A' + 10, true
	}
	return 0, false
}
