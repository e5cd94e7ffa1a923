package fold

import (
	"html"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxEntity bounds the length of an HTML entity, as &CounterClockwiseContourIntegral;.
const maxEntity = 34

// unescape undoes the escape that begins s and returns its plain form and its
// length, 0 if s does not begin with an escape.
func unescape(s string) (string, int) {
	switch s[0] {
	case '%':
		return percent(s)
	case '&':
		return entity(s)
	default:
		return backslash(s)
	}
}

// percent undoes %40, and the several of a character outside ASCII. A byte that
// is no whole character is left alone.
func percent(s string) (string, int) {
	var raw [utf8.UTFMax]byte
	for n := 0; n < len(raw) && len(s) >= 3*n+3 && s[3*n] == '%'; n++ {
		v, err := strconv.ParseUint(s[3*n+1:3*n+3], 16, 8)
		if err != nil {
			return "", 0
		}
		raw[n] = byte(v)
		if r, size := utf8.DecodeRune(raw[:n+1]); r != utf8.RuneError || size == 3 {
			if r < utf8.RuneSelf && !visible(r) {
				return "", 0
			}
			return string(r), 3 * (n + 1)
		}
	}
	return "", 0
}

func entity(s string) (string, int) {
	end := strings.IndexByte(s[:min(len(s), maxEntity)], ';')
	if end < 2 {
		return "", 0
	}
	plain := html.UnescapeString(s[:end+1])
	if plain == s[:end+1] || strings.HasSuffix(plain, ";") && plain != ";" {
		return "", 0
	}
	return plain, end + 1
}

// backslash undoes the escapes of JSON, and \xHH, \u{H} and \UHHHHHHHH.
func backslash(s string) (string, int) {
	if len(s) < 2 {
		return "", 0
	}
	switch s[1] {
	case 'n', 'r':
		return "\n", 2
	case 't':
		return "\t", 2
	case '"', '\'', '/', '\\':
		return s[1:2], 2
	case 'x':
		return hexRune(s, 2, 2)
	case 'U':
		return hexRune(s, 2, 8)
	case 'u':
		if len(s) > 3 && s[2] == '{' {
			return braced(s)
		}
		return jsonRune(s)
	}
	return "", 0
}

func braced(s string) (string, int) {
	end := strings.IndexByte(s[:min(len(s), 11)], '}')
	if end < 4 {
		return "", 0
	}
	plain, n := hexRune(s, 3, end-3)
	if n == 0 {
		return "", 0
	}
	return plain, end + 1
}

func jsonRune(s string) (string, int) {
	plain, n := hexRune(s, 2, 4)
	if n > 0 || len(s) < 12 || s[6] != '\\' || s[7] != 'u' {
		return plain, n
	}
	hi, err1 := strconv.ParseUint(s[2:6], 16, 32)
	lo, err2 := strconv.ParseUint(s[8:12], 16, 32)
	if r := utf16.DecodeRune(rune(hi), rune(lo)); err1 == nil && err2 == nil && r != utf8.RuneError {
		return string(r), 12
	}
	return "", 0
}

// hexRune reads the code point written with digits hexadecimal digits at
// s[from:].
func hexRune(s string, from, digits int) (string, int) {
	if len(s) < from+digits {
		return "", 0
	}
	v, err := strconv.ParseUint(s[from:from+digits], 16, 32)
	r := rune(v)
	if err != nil || v > utf8.MaxRune || !utf8.ValidRune(r) || r < utf8.RuneSelf && !visible(r) {
		return "", 0
	}
	return string(r), from + digits
}

// visible reports ASCII characters that text is made of.
func visible(r rune) bool { return r >= ' ' && r < 0x7f || r == '\n' || r == '\t' || r == '\r' }
