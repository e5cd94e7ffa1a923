package mask

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/pii"
)

// Leaks is the last look at what goes out: it returns the label of a value
// that stands in body, in plain, JSON-escaped (also a JSON text within a JSON
// string), URL-escaped or Base64 form at any alignment. Values that [Book.Find]
// does not look for are not looked for here either. An occurrence within a
// token, where values gives that too, is none.
//
// A hit is a fault of whoever masked: the body must not leave.
func Leaks(body []byte, values []Entry) (pii.Label, bool) {
	var f finder
	tokens := make(map[string]bool, len(values))
	for _, e := range values {
		tokens[fold(e.Token)] = true
		if p := f.pattern(e.Token); p != nil {
			p.token = true
		}
	}
	var encoded needles
	for _, e := range values {
		if propagates(e.Label, e.Value) && !tokens[fold(e.Value)] {
			f.add(e, false)
			encoded.add(e)
		}
	}
	f.trie.link()
	all := views(string(body))
	for _, view := range all {
		for _, o := range f.find(view) {
			if o.label != "" && !inPlaceholder(view, o) {
				return o.label, true
			}
		}
	}
	for _, view := range all[:min(2, len(all))] { // as it is, and without escapes
		if label, ok := encoded.find(view); ok {
			return label, true
		}
	}
	return "", false
}

// views returns the ways to read text.
func views(text string) []string {
	all := []string{text}
	last := text
	for range 2 { // arguments of a tool call are JSON within JSON
		if next := unescapeJSON(last); next != last {
			all = append(all, next)
			last = next
		}
	}
	once := all[min(1, len(all)-1)]
	if next := unescapeURL(once, false); next != once {
		all = append(all, next)
	}
	if next := unescapeURL(once, true); next != once {
		all = append(all, next)
	}
	return all
}

// inPlaceholder reports whether an occurrence is part of a word that has the
// form of a placeholder: a person called Person is in each PERSON_Q7K2M.
func inPlaceholder(text string, o occurrence) bool {
	part := func(r rune) bool { return r == '_' || alnum(r) }
	start := len(strings.TrimRightFunc(text[:o.start], part))
	end := len(text) - len(strings.TrimLeftFunc(text[o.end:], part))
	_, _, ok := splitPlaceholder(knownStems(), text[start:end])
	return ok
}

// unescapeJSON reads all escapes of JSON strings, wherever they stand.
func unescapeJSON(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
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
		i = strings.IndexByte(s[copied:], '\\')
		if i < 0 {
			return string(append(b, s[copied:]...))
		}
		i += copied
	}
}

// unescapeURL reads percent escapes, and the plus sign as a space if the text
// is a form's.
func unescapeURL(s string, form bool) string {
	marks := "%"
	if form {
		marks = "%+"
	}
	if !strings.ContainsAny(s, marks) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				c = byte(n)
				i += 2
			}
		} else if c == '+' && form {
			c = ' '
		}
		b = append(b, c)
	}
	return string(b)
}
