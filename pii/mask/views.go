package mask

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// view is a text with its escapes read, and the way back to the original.
type view struct {
	text   string
	shifts []shift // in order; none if the offsets are those of the original
}

// shift says that offset at of the view is offset from of the original. Up to
// the next shift both go on alike.
type shift struct{ at, from int }

// original returns the offset in the original of an offset in the view.
func (v *view) original(i int) int {
	n := sort.Search(len(v.shifts), func(n int) bool { return v.shifts[n].at > i })
	if n == 0 {
		return i
	}
	return v.shifts[n-1].from + i - v.shifts[n-1].at
}

// views returns the ways to read text: as it is, with JSON escapes read once
// and up to levels times, and with URL escapes read. The offsets of the first
// level and of the URL's are those of text.
func views(text string, levels int) []view {
	all := []view{{text: text}}
	last := view{text: text}
	for range levels {
		next, ok := unescapeJSON(last.text)
		if !ok {
			break
		}
		all = append(all, next)
		last = next
	}
	for _, form := range [...]bool{false, true} {
		if next, ok := unescapeURL(text, form); ok {
			all = append(all, next)
		}
	}
	return all
}

// unescapeJSON reads all escapes of JSON strings, wherever they stand. It
// returns false if there are none.
func unescapeJSON(s string) (v view, ok bool) {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return view{}, false
	}
	b := make([]byte, 0, len(s))
	c := cursor{text: s, str: true, final: true}
	for copied := 0; ; {
		b = append(b, s[copied:i]...)
		var r rune
		if r, copied = c.escape(i); 0xD800 <= r && r < 0xDC00 && copied < len(s) && s[copied] == '\\' {
			if low, next := c.escape(copied); 0xDC00 <= low && low < 0xE000 {
				r, copied = 0x10000+(r-0xD800)<<10+(low-0xDC00), next
			}
		}
		b = utf8.AppendRune(b, r)
		v.shifts = append(v.shifts, shift{len(b), copied})
		i = strings.IndexByte(s[copied:], '\\')
		if i < 0 {
			v.text = string(append(b, s[copied:]...))
			return v, true
		}
		i += copied
	}
}

// unescapeURL reads percent escapes, and plus signs as spaces if the text is
// taken for a form's. It returns false if there are none.
func unescapeURL(s string, form bool) (v view, ok bool) {
	if !form && strings.IndexByte(s, '%') < 0 || form && strings.IndexByte(s, '+') < 0 {
		return view{}, false
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '+' && form {
			c = ' '
		}
		if c == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				c = byte(n)
				i += 2
				v.shifts = append(v.shifts, shift{len(b) + 1, i + 1})
			}
		}
		b = append(b, c)
	}
	v.text = string(b)
	return v, true
}
