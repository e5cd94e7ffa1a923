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
		next.known = withStem(next.known, e.Label)
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

// index fills the tables that say where a token may begin: they let a scan
// pass over nearly all of a text without a look at the lists.
func (r *Restorer) index() {
	r.first, r.pairs = [256]uint8{'"': special, '\\': special}, pairs{}
	mark := func(k key, class, mangled uint8) {
		a, b := k.name[0], byte(0)
		if len(k.name) > 1 {
			b = k.name[1]
		}
		r.first[a] |= class
		r.pairs.add(a, b, mangled != 0)
		if mangled != 0 && upper(rune(a)) {
			r.first[a] |= mangled
			r.first[a-'A'+'a'] |= mangled
		}
	}
	for _, k := range r.known {
		mark(k, beginsExact, 0)
	}
	for _, k := range r.issued {
		mark(k, beginsExact, beginsMangled)
	}
	for _, k := range r.surrogates {
		mark(k, beginsSurrogate, beginsSurrogate)
	}
}

// pairs is a set of two bytes, one bit each.
type pairs [1 << 10]uint64

// add adds a and b, in any letter case if fold is set. A character of no width
// (in UTF-8 or as an escape) may follow a, and anything if b is 0.
func (p *pairs) add(a, b byte, fold bool) {
	for _, x := range cases(a, fold) {
		for _, y := range cases(b, fold) {
			p.set(x, y)
		}
		p.set(x, '\\')
		for y := range 256 {
			if y >= 0x80 || b == 0 {
				p.set(x, byte(y))
			}
		}
	}
}

func cases(c byte, fold bool) []byte {
	if fold && upper(rune(c)) {
		return []byte{c, c - 'A' + 'a'}
	}
	return []byte{c}
}

func (p *pairs) set(a, b byte) { p[uint(a)<<2|uint(b)>>6] |= 1 << (b & 63) }

func (p *pairs) has(a, b byte) bool { return p[uint(a)<<2|uint(b)>>6]>>(b&63)&1 != 0 }

// withStem returns stems, which it leaves as they are, with that of a label that
// is not built in.
func withStem(stems []key, label pii.Label) []key {
	stem := pii.Stem(label)
	i, found := slices.BinarySearchFunc(stems, stem, func(k key, s string) int { return strings.Compare(k.name, s) })
	if found {
		return stems
	}
	return slices.Insert(slices.Clone(stems), i, key{name: stem})
}

// knownStems returns the stems of all built-in labels, and that of labels which
// give none.
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
