package tokenizer

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// nfc brings text to normalization form C. Package norm does it, except that
// it inserts U+034F into runs of more than 30 combining marks (the Stream-Safe
// format), which the model's normalizer does not; those are done here.
// Bytes that are not UTF-8 stay as they are.
func nfc(s string) string {
	if isASCII(s) || norm.NFC.IsNormalString(s) && !longRun(s) {
		return s
	}
	if !longRun(s) {
		return norm.NFC.String(s)
	}
	return composeAll(decomposeAll(s))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// longRun reports a run of combining characters so long that norm might break
// it. A character can decompose into a few, so the bound is far below 30.
func longRun(s string) bool {
	n := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			n, i = 0, i+1
			continue
		}
		p := norm.NFD.PropertiesString(s[i:])
		size := max(p.Size(), 1)
		if p.CCC() == 0 && p.LeadCCC() == 0 && p.TrailCCC() == 0 {
			n = 0
		} else if n++; n > 8 {
			return true
		}
		i += size
	}
	return false
}

// unit is a character, or a byte that is none, and its combining class.
type unit struct {
	text string
	ccc  uint8
}

// decomposeAll decomposes each character and puts marks in canonical order.
func decomposeAll(s string) []unit {
	var units []unit
	sorted := 0 // where the marks begin that may still change places
	order := func() {
		slices.SortStableFunc(units[sorted:], func(a, b unit) int { return int(a.ccc) - int(b.ccc) })
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		text := s[i : i+n]
		i += n
		if r == utf8.RuneError && n == 1 {
			order()
			units = append(units, unit{text: text})
			sorted = len(units)
			continue
		}
		for _, r := range norm.NFD.String(text) {
			u := unit{text: string(r)}
			u.ccc = norm.NFD.PropertiesString(u.text).CCC()
			if u.ccc == 0 {
				order()
				units = append(units, u)
				sorted = len(units)
				continue
			}
			units = append(units, u)
		}
	}
	order()
	return units
}

// composeAll joins each starter with the characters after it that are not
// blocked (Unicode 3.11, D117).
func composeAll(units []unit) string {
	var out []unit
	starter := -1
	for _, u := range units {
		last := uint8(0)
		if n := len(out); n > 0 {
			last = out[n-1].ccc
		}
		blocked := starter < 0 || starter != len(out)-1 && last >= u.ccc
		if !blocked && utf8.ValidString(u.text) {
			if joined, ok := compose(out[starter].text, u.text); ok {
				out[starter].text = joined
				continue
			}
		}
		if u.ccc == 0 {
			starter = len(out)
			if !utf8.ValidString(u.text) {
				starter = -1
			}
		}
		out = append(out, u)
	}
	var b []byte
	for _, u := range out {
		b = append(b, u.text...)
	}
	return string(b)
}

// compose returns the primary composite of two characters.
func compose(a, b string) (string, bool) {
	joined := norm.NFC.String(a + b)
	if _, n := utf8.DecodeRuneInString(joined); n != len(joined) {
		return "", false
	}
	return joined, true
}
