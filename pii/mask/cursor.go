package mask

import (
	"strconv"
	"unicode/utf8"
)

// Kind is what a text is.
type Kind uint8

// The kinds.
const (
	// Plain is text as people read it.
	Plain Kind = iota
	// JSON is the source of a JSON value, such as the arguments of a tool
	// call: escapes are read, and values are escaped when they are put in.
	JSON
)

// What a cursor returns where there is no character.
const (
	wall rune = -1 // nothing that could belong to a token follows
	more rune = -2 // the next piece decides
)

// cursor reads a text character by character, where an escape in a JSON string
// is one character.
type cursor struct {
	text  string
	json  bool // a quotation mark is a wall
	str   bool // inside a JSON string: escapes are read
	final bool // nothing follows the text
}

// at returns the character at offset i and the offset behind it.
func (c *cursor) at(i int) (rune, int) {
	if i >= len(c.text) {
		return c.end(), i
	}
	switch b := c.text[i]; {
	case b == '"' && c.json:
		return wall, i
	case b == '\\' && c.str:
		return c.escape(i)
	case b < utf8.RuneSelf:
		return rune(b), i + 1
	}
	if !c.final && !utf8.FullRuneInString(c.text[i:]) {
		return more, i
	}
	r, n := utf8.DecodeRuneInString(c.text[i:])
	return r, i + n
}

// visible is at behind up to three characters of no width; skipped says
// whether there were any.
func (c *cursor) visible(i int) (r rune, next int, skipped bool) {
	r, next = c.at(i)
	for n := 0; n < 3 && r >= 0 && zeroWidth(r); n++ {
		skipped = true
		r, next = c.at(next)
	}
	return r, next, skipped
}

// escape reads the escape at offset i. What is no valid escape is a backslash,
// as models write it in PERSON\_Q7K2M without knowing that they are in JSON.
func (c *cursor) escape(i int) (rune, int) {
	if i+1 >= len(c.text) {
		if c.final {
			return '\\', i + 1
		}
		return more, i
	}
	switch e := c.text[i+1]; e {
	case '"', '\\', '/':
		return rune(e), i + 2
	case 'b':
		return '\b', i + 2
	case 'f':
		return '\f', i + 2
	case 'n':
		return '\n', i + 2
	case 'r':
		return '\r', i + 2
	case 't':
		return '\t', i + 2
	case 'u':
		return c.hex(i)
	}
	return '\\', i + 1
}

func (c *cursor) hex(i int) (rune, int) {
	for k := i + 2; k < i+6; k++ {
		if k >= len(c.text) {
			if c.final {
				return '\\', i + 1
			}
			return more, i
		}
		if b := c.text[k]; !(b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F') {
			return '\\', i + 1
		}
	}
	n, err := strconv.ParseUint(c.text[i+2:i+6], 16, 32)
	if err != nil {
		return '\\', i + 1
	}
	return rune(n), i + 6
}

func (c *cursor) end() rune {
	if c.final {
		return wall
	}
	return more
}
