package mask

import (
	"strings"

	"weir/pii"
)

// Leaks is the last look at what goes out: it returns the label of a value
// that stands in body, in plain, JSON-escaped (also a JSON text within a JSON
// string), URL-escaped or Base64 form at any alignment. What [Book.Find] does
// not look for is not looked for here either, and a name of one word only in
// its own letter case. An occurrence within a token is none; of surrogates it
// knows those that values holds.
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
	stems := knownStems()
	for _, e := range values {
		stems = withStem(stems, e.Label)
		if tokens[fold(e.Value)] {
			continue
		}
		f.add(e, true)
		if propagates(e.Label, e.Value) {
			encoded.add(e)
		}
	}
	f.trie.link()
	for _, v := range views(string(body), 2) { // arguments of a tool call are JSON within JSON
		for _, o := range f.find(v.text) {
			if o.label != "" && !inPlaceholder(stems, v.text, o) && !madeOfToken(values, v.text, o) {
				return o.label, true
			}
		}
		if label, ok := encoded.find(v.text); ok {
			return label, true
		}
	}
	return "", false
}

// madeOfToken reports that some letters of an occurrence are those of a token of
// values: "aaaaaPERSON_Q7K2M" holds no value "aaaaaperson" that somebody wrote.
func madeOfToken(values []Entry, text string, o occurrence) bool {
	for _, e := range values {
		if n := len(e.Token) - 1; e.Placeholder() && strings.Contains(text[max(0, o.start-n):min(len(text), o.end+n)], e.Token) {
			return true
		}
	}
	return false
}

// inPlaceholder reports whether an occurrence is part of a word that has the
// form of a placeholder: a person called Person is in each PERSON_Q7K2M.
func inPlaceholder(stems []key, text string, o occurrence) bool {
	part := func(r rune) bool { return r == '_' || alnum(r) }
	start := len(strings.TrimRightFunc(text[:o.start], part))
	end := len(text) - len(strings.TrimLeftFunc(text[o.end:], part))
	_, _, ok := splitPlaceholder(stems, text[start:end])
	return ok
}
