package feature

import (
	"unicode"
	"unicode/utf8"
)

// Extractor gives the rows of tokens. It is immutable.
type Extractor struct{ lists *Lists }

// NewExtractor returns an extractor that looks words up in lists.
func NewExtractor(lists *Lists) *Extractor { return &Extractor{lists} }

// Kinds of features, mixed into their hashes.
const (
	hWord = iota + 1
	hWord2
	hGram
	hShape
	hList
	hGap
	hNumber
	hValue
	hLead
	hSign
	hMixed
	hRun
	hChar
	hPair
	hTriple
	hScript
	hStem
)

func mix(h, v uint32) uint32 {
	h = (h ^ v) * 0x9E3779B1
	return h ^ h>>15
}

func finish(h, from, to uint32) uint16 {
	h ^= h >> 16
	h *= 0x85EBCA6B
	h ^= h >> 13
	return uint16(from + uint32(uint64(h)*uint64(to-from)>>32))
}

// minStem is the length in characters from which a word's last s may be an
// ending.
const minStem = 4

// shapes is how many values caseShape has.
const shapes = 6

func listRow(n uint32) uint16 { return uint16(listFrom + n) }
func wordRow(h uint32) uint16 { return finish(h, wordFrom, gramFrom) }
func gramRow(h uint32) uint16 { return finish(h, gramFrom, miscFrom) }
func miscRow(h uint32) uint16 { return finish(h, miscFrom, Rows) }

// IDs appends the rows of token i of s to ids: at most [MaxIDs], none of them 0.
func (x *Extractor) IDs(s string, toks []Token, i int, ids []uint16) []uint16 {
	t := toks[i]
	text := s[t.Start:t.End]
	ids = append(ids, miscRow(mix(mix(hGap, uint32(t.Gap)), uint32(t.Kind))))
	switch t.Kind {
	case Word:
		return x.word(text, ids)
	case Number:
		return number(text, ids)
	case Mixed:
		return mixed(text, ids)
	case Sign:
		r, n := utf8.DecodeRuneInString(text)
		h := mix(hSign, uint32(r))
		if n < len(text) {
			h = mix(h, hRun)
		}
		return append(ids, miscRow(h))
	}
	return x.parts(s, t, solidIDs(s, t, ids))
}

// word appends the rows of letters.
func (x *Extractor) word(text string, ids []uint16) []uint16 {
	var buf [maxRunes + 2]rune
	buf[0] = '^'
	n := 1
	upper, lower, total := 0, 0, 0
	first := false
	var script uint32
	for i, r := range text {
		total++
		switch {
		case r < utf8.RuneSelf && r&0x20 == 0 || r >= utf8.RuneSelf && unicode.IsUpper(r):
			upper++
			first = first || i == 0
		default:
			lower++
		}
		if n <= maxRunes {
			if r < utf8.RuneSelf {
				r |= 0x20
			} else {
				r = unicode.ToLower(r)
				script = max(script, scriptOf(r))
			}
			buf[n] = r
			n++
		}
	}
	buf[n] = '$'
	n++
	h, stem := uint32(hWord), uint32(0)
	for _, r := range buf[1 : n-1] {
		stem = h
		h = mix(h, uint32(r))
	}
	h = mix(h, uint32(min(total, maxRunes)))
	ids = append(ids, wordRow(h), wordRow(mix(h, hWord2)))
	shape := caseShape(first, upper, lower)
	ids = append(ids, miscRow(mix(mix(mix(hShape, shape), uint32(lengthClass(total))), script)))
	if l := x.lists.Lookup(h); l != 0 {
		ids = append(ids, listRow(uint32(l)*shapes+shape))
	} else if total > minStem && total <= maxRunes && buf[n-2] == 's' {
		// A name in the genitive, or a plural.
		if l := x.lists.Lookup(mix(stem, uint32(total-1))); l != 0 {
			ids = append(ids, miscRow(mix(mix(hStem, uint32(l)), shape)))
		}
	}
	return grams(buf[:n], ids)
}

// grams appends runs of three and four characters, from both ends inwards if
// there are too many.
func grams(w []rune, ids []uint16) []uint16 {
	for size := 3; size <= 4; size++ {
		count := len(w) - size + 1
		for k := range min(count, 10) {
			at := k
			if count > 10 && k >= 5 {
				at = count - 10 + k
			}
			h := mix(hGram, uint32(size))
			for _, r := range w[at : at+size] {
				h = mix(h, uint32(r))
			}
			ids = append(ids, gramRow(h))
		}
	}
	return ids
}

// caseShape tells apart xx, Xx, XX, X, xX.
func caseShape(first bool, upper, lower int) uint32 {
	switch {
	case upper == 0:
		return 0
	case lower == 0 && upper == 1:
		return 1
	case lower == 0:
		return 2
	case first && upper == 1:
		return 3
	case first:
		return 4
	}
	return 5
}

func lengthClass(n int) int {
	switch {
	case n <= 5:
		return n
	case n <= 8:
		return 6
	case n <= 12:
		return 7
	}
	return 8
}

func scriptOf(r rune) uint32 {
	switch {
	case r < 0x250:
		return 1
	case r >= 0x370 && r < 0x400:
		return 2
	case r >= 0x400 && r < 0x530:
		return 3
	}
	return 4
}

func number(text string, ids []uint16) []uint16 {
	ids = append(ids, miscRow(mix(hNumber, uint32(min(len(text), 24)))))
	if text[0] == '0' {
		ids = append(ids, miscRow(mix(hLead, 0)))
	}
	if len(text) > 4 {
		return ids
	}
	v := uint32(0)
	for _, c := range []byte(text) {
		v = v*10 + uint32(c-'0')
	}
	if len(text) <= 3 {
		return append(ids, wordRow(mix(mix(hNumber, v), uint32(len(text)))), miscRow(mix(mix(hValue, 1), valueClass(v))))
	}
	return append(ids, miscRow(mix(mix(hValue, 4), v/10))) // decades
}

func valueClass(v uint32) uint32 {
	switch {
	case v == 0:
		return 0
	case v <= 12:
		return 1
	case v <= 31:
		return 2
	case v <= 99:
		return 3
	}
	return 4
}

func mixed(text string, ids []uint16) []uint16 {
	var upper, lower, digit, hex uint32
	hex = 1
	for _, c := range []byte(text) {
		switch {
		case c <= '9':
			digit = 1
		case c <= 'Z':
			upper = 1
		default:
			lower = 1
		}
		if c|0x20 > 'f' {
			hex = 0
		}
	}
	ids = append(ids,
		miscRow(mix(mix(hMixed, upper|lower<<1|digit<<2|hex<<3), uint32(min(len(text), 40)/2))),
		miscRow(mix(hLead, uint32(text[0]))))
	h := mix(hGram, 9)
	for _, c := range []byte(text[:min(len(text), 3)]) {
		h = mix(h, uint32(c))
	}
	return append(ids, gramRow(h))
}

func solidIDs(s string, t Token, ids []uint16) []uint16 {
	r, _ := utf8.DecodeRuneInString(s[t.Start:])
	prev, n := utf8.DecodeLastRuneInString(s[:t.Start])
	before, _ := utf8.DecodeLastRuneInString(s[:int(t.Start)-n])
	next, n := utf8.DecodeRuneInString(s[t.End:])
	behind, _ := utf8.DecodeRuneInString(s[int(t.End)+n:])
	c, p, q := uint32(r), uint32(prev), uint32(next)
	return append(ids,
		wordRow(mix(hChar, c)),
		gramRow(mix(mix(mix(hPair, 0), p), c)),
		gramRow(mix(mix(mix(hPair, 1), c), q)),
		gramRow(mix(mix(mix(hTriple, p), c), q)),
		gramRow(mix(mix(mix(mix(hTriple, 1), uint32(before)), p), c)),
		gramRow(mix(mix(mix(mix(hTriple, 2), c), q), uint32(behind))),
		miscRow(mix(mix(mix(hScript, wideScript(r)), wideScript(prev)), wideScript(next))),
	)
}

// maxPart is how many characters of a word of a script without blanks are
// looked up.
const maxPart = 6

// parts appends what the lists say of the words of up to six characters that
// begin and that end at a character.
func (x *Extractor) parts(s string, t Token, ids []uint16) []uint16 {
	var first, last [maxPart]rune
	n := around(s, t, &first, &last)
	for size := 1; size <= n.behind; size++ {
		if l := x.lists.Lookup(hashRunes(first[:size])); l != 0 {
			ids = append(ids, listRow(beginFrom+uint32(size-1)*listFlags+uint32(l)))
		}
	}
	for size := 2; size <= n.before; size++ {
		if l := x.lists.Lookup(hashRunes(last[maxPart-size:])); l != 0 {
			ids = append(ids, listRow(endFrom+uint32(size-1)*listFlags+uint32(l)))
		}
	}
	return ids
}

// near counts the characters of scripts without blanks around a token, with it.
type near struct{ behind, before int }

// around reads the characters from a token on into first, and those up to it
// into the end of last.
func around(s string, t Token, first, last *[maxPart]rune) near {
	var n near
	for at := int(t.Start); n.behind < maxPart && at < len(s); n.behind++ {
		r, size := utf8.DecodeRuneInString(s[at:])
		if !solid(r) {
			break
		}
		first[n.behind] = r
		at += size
	}
	for at := int(t.End); n.before < maxPart && at > 0; n.before++ {
		r, size := utf8.DecodeLastRuneInString(s[:at])
		if !solid(r) {
			break
		}
		last[maxPart-1-n.before] = r
		at -= size
	}
	return n
}

// hashRunes is hashWord of a word of scripts without capitals.
func hashRunes(w []rune) uint32 {
	h := uint32(hWord)
	for _, r := range w {
		h = mix(h, uint32(r))
	}
	return mix(h, uint32(len(w)))
}

func wideScript(r rune) uint32 {
	switch {
	case r < utf8.RuneSelf:
		return 0
	case r >= 0x3041 && r <= 0x309F:
		return 1
	case r >= 0x30A0 && r <= 0x30FF:
		return 2
	case r >= 0xAC00 && r <= 0xD7A3:
		return 3
	case r >= 0x3400 && r <= 0x9FFF:
		return 4
	case r <= 0xE5B:
		return 5
	}
	return 6
}
