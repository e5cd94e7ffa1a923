package mask

import (
	"maps"
	"slices"
	"strings"

	"weir/pii"
)

// extend returns a restorer that also knows the entries since r, which it
// leaves as it is.
func (r *Restorer) extend(entries []Entry) *Restorer {
	next := &Restorer{known: knownStems()}
	if r != nil {
		*next = *r
	}
	codes := map[string][]key{}
	var literal []key
	for i := next.n; i < len(entries); i++ {
		e := &entries[i]
		if stem, code, ok := splitPlaceholder(next.known, e.Token); ok {
			codes[stem] = append(codes[stem], key{name: code, entry: e})
		} else {
			literal = append(literal, key{name: fold(e.Token), entry: e})
		}
		literal = append(literal, partKeys(*e)...)
	}
	next.n = len(entries)
	next.surrogates = merge(next.surrogates, literal)
	next.issued = slices.Clone(next.issued)
	for _, stem := range slices.Sorted(maps.Keys(codes)) {
		i, found := slices.BinarySearchFunc(next.issued, stem, func(k key, s string) int { return strings.Compare(k.name, s) })
		if !found {
			next.issued = slices.Insert(next.issued, i, key{name: stem})
		}
		next.issued[i].codes = merge(next.issued[i].codes, codes[stem])
	}
	next.index()
	return next
}

// partKeys are the words of a name's surrogate that a model may use alone:
// "Vance said" for "Nora Vance said".
func partKeys(e Entry) []key {
	var keys []key
	for value, token := range nameWords(e) {
		if token != e.Token {
			part := Entry{Token: token, Value: value, Label: e.Label, Style: e.Style}
			keys = append(keys, key{name: fold(token), entry: &part, part: true})
		}
	}
	return keys
}

// merge returns the sorted union of a sorted list, which it leaves as it is,
// and a few more keys.
func merge(sorted, more []key) []key {
	if len(more) == 0 {
		return sorted
	}
	all := slices.Concat(sorted, more)
	slices.SortStableFunc(all, func(a, b key) int { return strings.Compare(a.name, b.name) })
	return all
}

// index fills the table that says where a token may begin.
func (r *Restorer) index() {
	r.first = [256]uint8{'"': special, '\\': special}
	for _, k := range r.known {
		r.first[k.name[0]] |= beginsExact
	}
	for _, k := range r.issued {
		r.first[k.name[0]] |= beginsExact | beginsMangled
		r.first[k.name[0]-'A'+'a'] |= beginsMangled
	}
	for _, k := range r.surrogates {
		c := k.name[0]
		r.first[c] |= beginsSurrogate
		if upper(rune(c)) {
			r.first[c-'A'+'a'] |= beginsSurrogate
		}
	}
}

// knownStems returns the stems of all labels, the user's own ones included.
func knownStems() []key {
	user, _ := pii.Lookup("")
	stems := []key{{name: user.Stem}}
	for _, info := range pii.Labels() {
		stems = append(stems, key{name: info.Stem})
	}
	slices.SortFunc(stems, func(a, b key) int { return strings.Compare(a.name, b.name) })
	return stems
}

// splitPlaceholder takes a token of the form of a placeholder apart.
func splitPlaceholder(known []key, token string) (stem, code string, ok bool) {
	stem, code, ok = strings.Cut(token, "_")
	if !ok || len(code) < codeMin || len(code) > maxRun-maxEnding || strings.Trim(code, alphabet) != "" {
		return "", "", false
	}
	return stem, code, slices.ContainsFunc(known, func(k key) bool { return k.name == stem })
}

// fold maps ASCII letters to upper case and leaves the rest.
func fold(s string) string {
	return strings.Map(toUpper, s)
}
