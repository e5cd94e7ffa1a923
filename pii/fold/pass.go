package fold

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// pass goes once over a text: it undoes escapes, drops what cannot be seen, and
// writes compatibility forms plainly.
type pass struct {
	src       string
	b         builder
	unescaped bool // an escape was undone: another pass may find more
	foreign   bool // letters outside ASCII that pass for ASCII ones are left
}

func (p *pass) run() (string, []edit) {
	s := p.src
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case !special[c]:
			i++
		case c < utf8.RuneSelf:
			i = p.ascii(i)
		default:
			i = p.wide(i)
		}
	}
	return p.b.finish(s)
}

// ascii handles an escape or a control character and returns where to go on.
func (p *pass) ascii(i int) int {
	if p.src[i] == '%' || p.src[i] == '&' || p.src[i] == '\\' {
		with, n := unescape(p.src[i:])
		if n == 0 {
			return i + 1
		}
		p.unescaped = true
		p.b.replace(p.src, i, i+n, with)
		return i + n
	}
	p.b.replace(p.src, i, i+1, "")
	return i + 1
}

// wide handles a character outside ASCII.
func (p *pass) wide(i int) int {
	r, n := utf8.DecodeRuneInString(p.src[i:])
	if r == utf8.RuneError && n == 1 {
		return i + 1
	}
	if r >= 0x300 && unicode.Is(unicode.M, r) && !ignorable(r) {
		return p.mark(i, n)
	}
	if with, ok := plainForm(r, p.src[i:i+n]); ok {
		p.b.replace(p.src, i, i+n, with)
		return i + n
	}
	if !p.foreign && (r > 0x180 || r == 0x131 || r == 0xD7) {
		_, p.foreign = lookAlike(r)
	}
	return i + n
}

// mark handles a combining mark. On an ASCII letter with which Unicode has a
// composed form it is an accent, and the letter is composed, so that "é" is the
// same however it was typed; on other ASCII it only hides the character below.
func (p *pass) mark(i, n int) int {
	if i == 0 {
		return i + n
	}
	base := p.src[i-1]
	if base >= utf8.RuneSelf {
		// A further mark on a character that was already bare or composed.
		if p.b.copied == i && len(p.b.edits) > 0 {
			p.b.replace(p.src, i, i+n, "")
		}
		return i + n
	}
	if base <= ' ' {
		return i + n
	}
	if letter(base) && p.b.copied < i {
		composed := norm.NFC.String(p.src[i-1 : i+n])
		if utf8.RuneCountInString(composed) == 1 {
			p.b.replace(p.src, i-1, i+n, composed)
			return i + n
		}
	}
	p.b.replace(p.src, i, i+n, "")
	return i + n
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// plainForm returns the ASCII that stands for r in folded text.
func plainForm(r rune, s string) (string, bool) {
	switch {
	case r >= 0xC0 && r < 0x17F && r != 0x132 && r != 0x133, r > 0x384 && r < 0x530:
		// Letters of Europe, by far the most frequent here, and none of them
		// ASCII in disguise by its decomposition.
		return "", false
	case ignorable(r):
		return "", true
	case r >= 0x2010 && r <= 0x2015, r == 0x2212, r == 0x2043:
		return "-", true
	case r == 0x2018, r == 0x2019, r == 0x201A, r == 0x201B, r == 0x2032:
		return "'", true
	case r == 0x201C, r == 0x201D, r == 0x201E, r == 0x201F, r == 0x2033:
		return `"`, true
	case r == 0x2028, r == 0x2029, r == 0x85:
		return "\n", true
	case unicode.Is(unicode.Zs, r):
		return " ", true
	case unicode.Is(unicode.Nd, r):
		return digit(r), true
	case r < 0xA0 || r >= 0x3041 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7A3:
		// Kana, Han and Hangul are never ASCII in disguise; the table below
		// need not be asked.
		return "", false
	}
	d := norm.NFKC.PropertiesString(s).Decomposition()
	if len(d) == 0 {
		return "", false
	}
	for _, c := range d {
		if c >= utf8.RuneSelf {
			return "", false
		}
	}
	return string(d), true
}

// digit returns the value of a decimal digit of any script. Unicode lists these
// in runs of ten from zero.
func digit(r rune) string {
	for _, t := range unicode.Nd.R16 {
		if r >= rune(t.Lo) && r <= rune(t.Hi) {
			return string('0' + (r-rune(t.Lo))%10)
		}
	}
	for _, t := range unicode.Nd.R32 {
		if r >= rune(t.Lo) && r <= rune(t.Hi) {
			return string('0' + (r-rune(t.Lo))%10)
		}
	}
	return ""
}

// ignorable reports characters that are not seen: format characters, variation
// selectors, fillers.
func ignorable(r rune) bool {
	switch {
	case r < 0xAD:
		return false
	case r == 0xAD, r == 0x34F, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x3164, r == 0xFFA0:
		return true
	case r >= 0x180B && r <= 0x180F, r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	case r >= 0x3041 && r <= 0x9FFF:
		return false
	}
	return unicode.Is(unicode.Cf, r)
}
