package mask

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// Limits of what is read as one token, so that what a stream holds back is
// bounded however a text is made.
const (
	maxSeparators = 6  // between stem and code
	maxEnding     = 4  // letters of a grammatical ending
	maxRun        = 32 // letters of a code with its ending
)

// key is a name in a sorted list: a stem with its codes, the code of a
// placeholder with its entry, or a whole folded surrogate with its entry.
type key struct {
	name  string
	codes []key
	entry *Entry
	part  bool // of a name's surrogate: counts only where no other key does
}

// narrow returns the keys that have the byte c at depth, of keys that agree in
// all bytes before.
func narrow(keys []key, depth int, c byte) []key {
	for len(keys) > 0 && len(keys[0].name) <= depth {
		keys = keys[1:]
	}
	if len(keys) == 0 || c < keys[0].name[depth] || c > keys[len(keys)-1].name[depth] {
		return nil
	}
	if keys[0].name[depth] < c {
		keys = keys[sort.Search(len(keys), func(i int) bool { return keys[i].name[depth] >= c }):]
	}
	if keys[len(keys)-1].name[depth] > c {
		keys = keys[:sort.Search(len(keys), func(i int) bool { return keys[i].name[depth] > c })]
	}
	return keys
}

type status uint8

const (
	none     status = iota // no token begins here
	needMore               // the next piece decides
	unknown                // the form of a placeholder, but none that was issued
	hit                    // a token of the book
)

// match is what was found at an offset. The bytes to replace end at end.
type match struct {
	status   status
	end      int
	last     rune // the character before end
	entry    *Entry
	repaired bool
}

// match looks for a token that begins at offset i, behind the character prev,
// with a byte of this class. Of a placeholder and a surrogate at the same place
// the longer one counts.
func (r *Restorer) match(c *cursor, i int, prev rune, class uint8) (m match) {
	if class&beginsExact != 0 && !upper(prev) || class&beginsMangled != 0 && !alnum(prev) {
		m = r.placeholder(c, i, prev)
	}
	if class&beginsSurrogate == 0 || m.status == needMore {
		return m
	}
	s := r.surrogate(c, i, prev)
	if s.status == none || s.status == hit && m.status == hit && m.end >= s.end {
		return m
	}
	return s
}

// stemEnd is a stem that was read, and how.
type stemEnd struct {
	stem  key
	pos   int
	exact bool
}

// placeholder matches STEM_CODE. Exactly as minted it may stand in the middle
// of an identifier; mangled it must be a word of its own. Behind an upper-case
// letter it would be the end of some longer token, and match does not ask.
func (r *Restorer) placeholder(c *cursor, start int, prev rune) match {
	var ends [4]stemEnd // hardly more than two stems begin alike; the longest count
	n, exact := 0, true
	issued, known := r.issued, r.known
	for depth, pos := 0, start; ; depth++ {
		ch, next, skipped := c.visible(pos)
		if ch == more {
			return match{status: needMore}
		}
		if skipped || lower(ch) {
			exact, known = false, nil
		}
		u := toUpper(ch)
		if !upper(u) || !exact && alnum(prev) {
			break
		}
		issued, known = narrow(issued, depth, byte(u)), narrow(known, depth, byte(u))
		pos = next
		stem, whole := key{}, true
		switch {
		case len(issued) > 0 && len(issued[0].name) == depth+1:
			stem = issued[0]
		case len(known) > 0 && len(known[0].name) == depth+1:
			stem = known[0]
		default:
			whole = false
		}
		if whole {
			if n == len(ends) {
				n = copy(ends[:], ends[1:])
			}
			ends[n] = stemEnd{stem, pos, exact}
			n++
		}
		if len(issued)+len(known) == 0 {
			break
		}
	}
	for n--; n >= 0; n-- {
		if m := ends[n].code(c, prev); m.status != none {
			return m
		}
	}
	return match{}
}

// code matches the separator and the code behind a stem.
func (s stemEnd) code(c *cursor, prev rune) match {
	pos, exact := s.pos, s.exact
	for seps := 0; ; seps++ {
		ch, next := c.at(pos)
		if ch == more {
			return match{status: needMore}
		}
		if ch < 0 || !separator(ch) {
			exact = exact && seps == 1
			break
		}
		if seps == maxSeparators {
			return match{}
		}
		exact = exact && ch == '_'
		pos = next
	}
	if !exact && (alnum(prev) || len(s.stem.codes) == 0) {
		return match{}
	}
	r := run{exact: exact, joined: alnum(prev), form: exact}
	return r.read(c, pos, s.stem.codes)
}

// run is the letters behind a separator: a code, perhaps with an ending.
type run struct {
	exact  bool // as minted so far
	joined bool // a letter or digit stands before the stem
	form   bool // has the letters of a code, whether issued or not
	digit  bool // holds a digit, as each code does
	n      int  // letters
	last   int  // offset behind the last letter
	hit    int  // issued codes that the run begins with
	hits   [maxRun]codeHit
}

// codeHit is an issued code that the run begins with.
type codeHit struct {
	entry *Entry
	n     int
	end   int
	exact bool
	upper bool // no letter of the code is written in lower case
	apart bool // a character of no width follows
}

// read reads the run at pos and decides. The longest code that the run begins
// with is taken, if what follows it can be an ending.
func (r *run) read(c *cursor, pos int, codes []key) match {
	var letters [maxRun]rune
	isUpper := true
	for {
		ch, next, skipped := c.visible(pos)
		if ch == more {
			return match{status: needMore}
		}
		if ch < 0 || !alnum(ch) {
			break
		}
		if r.n == maxRun {
			return match{}
		}
		if skipped && r.n > 0 {
			r.exact, r.form = false, false
			if r.hit > 0 && r.hits[r.hit-1].n == r.n {
				r.hits[r.hit-1].apart = true
			}
		}
		isUpper = isUpper && !lower(ch)
		r.form = r.form && (upper(ch) || ch >= '2' && ch <= '7')
		r.digit = r.digit || ch >= '2' && ch <= '7'
		letters[r.n] = ch
		codes = narrow(codes, r.n, byte(toUpper(ch)))
		r.n++
		r.last, pos = next, next
		if len(codes) > 0 && len(codes[0].name) == r.n {
			r.hits[r.hit] = codeHit{codes[0].entry, r.n, next, r.exact && isUpper, isUpper, false}
			r.hit++
		}
		if len(codes) == 0 && r.hit == 0 && !r.form {
			return match{}
		}
	}
	for i := r.hit - 1; i >= 0; i-- {
		h := r.hits[i]
		if (h.exact || !r.joined) && h.endsWell(letters[h.n:r.n]) {
			return match{status: hit, end: h.end, last: letters[h.n-1], entry: h.entry, repaired: !h.exact}
		}
	}
	if r.form && r.digit && r.n >= codeMin {
		return match{status: unknown, end: r.last, last: letters[r.n-1]}
	}
	return match{}
}

// endsWell reports whether rest, which follows the code without a gap, is
// nothing or a grammatical ending: PERSON_Q7K2Ms, PERSON_Q7K2Mem. Behind a
// code in lower case only the plural can be told from more code.
func (h *codeHit) endsWell(rest []rune) bool {
	if len(rest) == 0 || h.apart {
		return true
	}
	if len(rest) > maxEnding || !h.upper && (len(rest) > 1 || rest[0] != 's') {
		return false
	}
	for _, ch := range rest {
		if !lower(ch) {
			return false
		}
	}
	return true
}

// surrogate matches a whole surrogate, the longest one that stands as words of
// its own. Another letter case is taken only where it can mean one entry.
func (r *Restorer) surrogate(c *cursor, start int, prev rune) match {
	var found match
	var buf [utf8.UTFMax]byte
	keys, depth := r.surrogates, 0
	for pos := start; ; {
		ch, next := c.at(pos)
		if ch == more {
			return match{status: needMore}
		}
		if depth == 0 && wordRune(prev) && wordRune(ch) {
			return match{}
		}
		if ch < 0 {
			return found
		}
		for _, b := range utf8.AppendRune(buf[:0], toUpper(ch)) {
			keys = narrow(keys, depth, b)
			depth++
		}
		if len(keys) == 0 {
			return found
		}
		if pos = next; len(keys[0].name) == depth {
			after, _ := c.at(pos)
			if after == more {
				return match{status: needMore}
			}
			if wordRune(ch) && wordRune(after) {
				continue
			}
			if m := pick(c, start, pos, keys, depth); m.status == hit {
				found = m
				found.last = ch
			}
		}
	}
}

// pick chooses among the surrogates that differ in letter case only: the one
// written so, else any if all stand for the same value. Whole surrogates come
// before parts of names.
func pick(c *cursor, start, end int, keys []key, depth int) match {
	written := make([]byte, 0, depth)
	for pos := start; pos < end; {
		var ch rune
		ch, pos = c.at(pos)
		written = utf8.AppendRune(written, ch)
	}
	for len(keys) > 0 && len(keys[len(keys)-1].name) != depth {
		keys = keys[:len(keys)-1]
	}
	for _, exact := range [...]bool{true, false} {
		for _, part := range [...]bool{false, true} {
			if e, ok := only(keys, part, exact, string(written)); ok {
				return match{status: hit, end: end, entry: e, repaired: !exact}
			}
		}
	}
	return match{}
}

// only returns the entry that all keys of a kind agree in.
func only(keys []key, part, exact bool, written string) (found *Entry, ok bool) {
	for _, k := range keys {
		if k.part != part || exact && k.entry.Token != written {
			continue
		}
		if found != nil && found.Value != k.entry.Value && (exact || !strings.EqualFold(found.Value, k.entry.Value)) {
			return nil, false
		}
		if found == nil {
			found = k.entry
		}
	}
	return found, found != nil
}
