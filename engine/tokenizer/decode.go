package tokenizer

import "unicode/utf8"

const replacement = "\uFFFD"

// Decode returns the text of ids, without control tokens. Bytes that are not
// UTF-8 become U+FFFD, one for each maximal part of a character, as the
// Unicode Standard recommends (3.9) and the model's own tooling does.
func (t *Tokenizer) Decode(ids []int32) string {
	d := t.NewDecoder()
	var out []byte
	for _, id := range ids {
		out = append(out, d.Push(id)...)
	}
	return string(append(out, d.Flush()...))
}

// Decoder turns ids into text as they come. It belongs to one reply.
type Decoder struct {
	t    *Tokenizer
	held []byte // the start of a character
}

// NewDecoder returns a Decoder at the start of a text.
func (t *Tokenizer) NewDecoder() *Decoder { return &Decoder{t: t} }

// Push takes the next id and returns the text that is now certain: whole
// characters. A control token adds no text, but ends a character that was
// left incomplete.
func (d *Decoder) Push(id int32) string {
	if id < 0 || int(id) >= len(d.t.tokens) {
		return "" // a padding row of the output
	}
	switch d.t.kinds[id] {
	case special:
		return d.Flush()
	case added:
		return d.Flush() + d.t.tokens[id]
	}
	if len(d.held) == 0 && utf8.ValidString(d.t.tokens[id]) {
		return d.t.tokens[id]
	}
	d.held = append(d.held, d.t.tokens[id]...)
	text, rest := settle(d.held, false)
	d.held = append(d.held[:0], rest...)
	return text
}

// Flush ends the text and returns what was held back.
func (d *Decoder) Flush() string {
	text, _ := settle(d.held, true)
	d.held = d.held[:0]
	return text
}

// settle decodes as much of b as is certain, all of it at the end.
func settle(b []byte, end bool) (text string, rest []byte) {
	var out []byte
	for len(b) > 0 {
		if n, ok := character(b); ok {
			out = append(out, b[:n]...)
			b = b[n:]
		} else if n == len(b) && !end && couldGrow(b) {
			break
		} else {
			out = append(out, replacement...)
			b = b[n:]
		}
	}
	return string(out), b
}

// couldGrow reports whether more bytes could make b one character.
func couldGrow(b []byte) bool { return !utf8.FullRune(b) }

// character returns the length of the character at the start of b, or, if
// there is none, of the longest part of one (at least a byte).
func character(b []byte) (n int, ok bool) {
	if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
		return n, true
	}
	n = 1
	for n < len(b) && n < utf8.UTFMax && !utf8.FullRune(b[:n]) {
		if !utf8.FullRune(b[:n+1]) {
			n++
			continue
		}
		break
	}
	return n, false
}
