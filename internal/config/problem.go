package config

import (
	"errors"
	"fmt"
	"strings"
)

// Problem is one fault of a configuration. It shows no value.
type Problem struct {
	// Key is the path of the key, as upstreams[0].base_url, or the name of the
	// environment variable.
	Key string
	// File, Line and Column are the place, from 1; Line is 0 for the
	// environment and for what is missing.
	File         string
	Line, Column int
	// Message says what is wrong, Hint what to do about it; Hint may be empty.
	Message, Hint string
	// Excerpt is the line with a caret below the place, its value hidden.
	Excerpt string
}

// Error returns the place, the key and the message on one line.
func (p *Problem) Error() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems returns those that err joins, in order.
func Problems(err error) []*Problem {
	var p *Problem
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // a join is looked into
		var out []*Problem
		for _, e := range joined.Unwrap() {
			out = append(out, Problems(e)...)
		}
		return out
	}
	if errors.As(err, &p) {
		return []*Problem{p}
	}
	return nil
}

// excerpt shows a line up to its key, and a caret under column.
func excerpt(source []byte, line, column int) string {
	lines := strings.Split(string(source), "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	text := hideValue(strings.TrimRight(lines[line-1], "\r"))
	// Under a value that is hidden the caret stands where hiding begins.
	column = min(max(column, 1), len([]rune(text)))
	number := fmt.Sprintf("%5d | ", line)
	return fmt.Sprintf("%s%s\n%s%s^", number, text, strings.Repeat(" ", len(number)-2)+"| ", strings.Repeat(" ", max(column-1, 0)))
}

// hideValue replaces all that could be a value: what follows the key, or the
// whole of a line that has none.
func hideValue(line string) string {
	if key, value, ok := strings.Cut(line, ":"); ok && plainKey(key) {
		if strings.TrimSpace(value) == "" {
			return key + ":"
		}
		return key + ": …"
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " -"))]
	return indent + "…"
}

// plainKey says whether text, but for its indent, can be a key: anything else,
// as in a flow mapping, might hold values before its first colon.
func plainKey(text string) bool {
	text = strings.TrimLeft(text, " -")
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.', r == '/':
		default:
			return false
		}
	}
	return text != "" && !looksSecret(text)
}
