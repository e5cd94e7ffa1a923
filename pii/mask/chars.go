package mask

import "unicode"

// zeroWidth reports runes that show nothing: joiners, marks of direction, the
// soft hyphen. Models and web pages put them into the middle of words.
func zeroWidth(r rune) bool {
	switch {
	case r == 0xAD, r == 0xFEFF, r == 0x180E:
		return true
	case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x2064:
		return true
	}
	return false
}

// unsegmented reports runes of scripts whose words are not set apart by
// spaces, or (Hangul) that take endings without one. Beside such a rune there
// is always a word boundary.
func unsegmented(r rune) bool {
	if r < 0x0E00 {
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// wordRune reports runes that join their neighbour into one word. The
// underscore does not: names in identifiers are names.
func wordRune(r rune) bool {
	if r < 0x80 {
		return alnum(r)
	}
	return (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) && !unsegmented(r)
}

func alnum(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

func lower(r rune) bool { return 'a' <= r && r <= 'z' }
func upper(r rune) bool { return 'A' <= r && r <= 'Z' }

// toUpper maps ASCII only: tokens are ASCII, and a fold that knew more would
// take the Kelvin sign for a K.
func toUpper(r rune) rune {
	if lower(r) {
		return r - 'a' + 'A'
	}
	return r
}

// separator reports runes that models put between the stem and the code of a
// placeholder, or leave in front of its underscore.
func separator(r rune) bool {
	switch r {
	case '_', '-', ' ', '\t', '\\', 0xA0, 0x2009, 0x202F, 0x2212, 0xFF3F:
		return true
	}
	return r >= 0x2010 && r <= 0x2015 || zeroWidth(r)
}
