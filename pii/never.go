package pii

import (
	"slices"
	"strings"
)

// Never reports a value that is no finding whatever stands around it: mask
// characters, a documented placeholder as YOUR_API_KEY or <password>, or a
// placeholder that the gate itself issued.
func Never(value string) bool {
	v := strings.TrimSpace(value)
	return v == "" || masked(v) || bracketed(v) || documented(v) || issued(v)
}

// nobody reports a word that is taken for a name and stands for the software
// that people talk to here. Beside another name it is somebody's.
func nobody(l Label, value string) bool {
	switch l {
	case PersonName, Organization, Location, Username:
		switch strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(value), "’s"), "'s")) {
		case "weir", "chatgpt", "ollama", "copilot":
			return true
		}
	}
	return false
}

// masked reports a value in which at most four digits at the end are left.
func masked(v string) bool {
	masks, rest := 0, 0
	for _, r := range v {
		switch r {
		case '*', 'x', 'X', '•', '●', '█', '#', '·', '…', '∗', '?':
			masks++
			rest = 0
		case ' ', '-', '.', '/', '_', '(', ')', '+', '=', ':':
		default:
			if r < '0' || r > '9' {
				return false
			}
			rest++
		}
	}
	return masks >= 3 && rest <= 4
}

// bracketed reports a variable or a slot, as <token>, ${TOKEN}, {{ token }},
// %TOKEN% and $TOKEN.
func bracketed(v string) bool {
	first, last := v[0], v[len(v)-1]
	body := strings.Trim(v, "<>{}[]$%#@ .()")
	name := body != "" && strings.IndexFunc(body, notName) < 0
	switch {
	case first == '<' && last == '>', first == '[' && last == ']':
		return name && !strings.ContainsAny(body, "0123456789")
	case strings.HasPrefix(v, "${"), strings.HasPrefix(v, "{{"), strings.HasPrefix(v, "$("), strings.HasPrefix(v, "<%"):
		return true
	case first == '{' && last == '}', first == '%' && last == '%' && len(v) > 2:
		return name
	case first == '$':
		return name && len(body) < len(v) && strings.ToUpper(body) == body && strings.ContainsAny(body, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	}
	return false
}

func notName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == ' ' || r == '.')
}

// documented reports what manuals write where a reader is to put a value.
func documented(v string) bool {
	var buf [64]byte
	if len(v) > len(buf) {
		return false
	}
	n := 0
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c >= 'A' && c <= 'Z':
			buf[n] = c | 0x20
		case c == '-' || c == '.' || c == ' ' || c == '\'' || c == '"' || c == '<' || c == '>' || c == '_':
			continue
		default:
			buf[n] = c
		}
		n++
	}
	low := string(buf[:n])
	if low == "" {
		return true
	}
	for _, p := range [...]string{"your", "insert", "replace", "enteryour", "puta", "putyour", "addyour", "dummy", "placeholder", "redacted", "change", "examplekey", "my_", "sample"} {
		if strings.HasPrefix(low, p) && !strings.ContainsAny(low, "0123456789@") {
			return true
		}
	}
	if strings.Contains(low, "example") && strings.HasPrefix(low, "akia") || low == "wjalrxutnfemi/k7mdeng/bpxrficyexamplekey" {
		return true
	}
	switch low {
	case "changeme", "changeit", "password", "passwd", "secret", "token", "apikey", "xxx", "todo", "tbd", "none", "null", "nil", "true", "false",
		"undefined", "example", "test", "string", "value", "redacted", "hidden", "masked", "filtered", "empty", "unset", "default", "n/a", "na", "...", "required", "optional":
		return true
	}
	return false
}

// issued reports a placeholder of the gate, as PERSON_Q7K2M.
func issued(v string) bool { return placeholder(v, nil) == len(v) }

// maxStem bounds the stems of placeholders.
const maxStem = 32

// placeholder returns the length of the gate's placeholder that begins s, or 0.
// own are the stems of labels that are not built in.
func placeholder(s string, own []string) int {
	stem := strings.IndexByte(s[:min(len(s), maxStem+1)], '_')
	if stem < 2 || !knownStem(s[:stem], own) {
		return 0
	}
	end := stem + 1
	for end < len(s) && end-stem <= 9 && (s[end] >= 'A' && s[end] <= 'Z' || s[end] >= '2' && s[end] <= '7') {
		end++
	}
	if n := end - stem - 1; n < 5 || n > 8 || end < len(s) && wordByte(s[end]) {
		return 0
	}
	return end
}

func knownStem(stem string, own []string) bool {
	if stem == anyStem || slices.Contains(own, stem) {
		return true
	}
	for i := range table {
		if table[i].Stem == stem {
			return true
		}
	}
	return false
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// placeholders returns the gate's placeholders in s as spans without a label.
func placeholders(s string, own []string) []Span {
	var out []Span
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '_')
		if i < 0 {
			return out
		}
		at := from + i
		start := at
		for start > from && at-start < maxStem && s[start-1] >= 'A' && s[start-1] <= 'Z' {
			start--
		}
		n := 0
		if start == 0 || !wordByte(s[start-1]) {
			n = placeholder(s[start:], own)
		}
		if n == 0 {
			from = at + 1
			continue
		}
		out = append(out, Span{Start: start, End: start + n})
		from = start + n
	}
}
