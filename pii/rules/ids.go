package rules

import (
	"fmt"
	"strings"
	"unicode"

	"weir/pii"
)

// maxGroups and maxCompact bound how an identifier may be written: the longest
// is an IBAN of 34 characters; some write each digit apart.
const (
	maxGroups  = 14
	maxCompact = 34
)

// How far from an identifier the words may stand that give it its meaning.
const (
	contextBefore = 120
	contextAfter  = 40
)

// idRule recognizes an identifier by its shape and its check digits, if need be
// with words around it.
type idRule struct {
	info   *ruleInfo
	check  check
	score  float64
	rank   pii.Rank
	needs  classSet // words of which one must stand near
	unless classSet // words that must not stand nearer
	forms  []string // layouts allowed near such a word; any if empty
	alone  []string // layouts that need no such word
	upper  bool     // no small letters
	digits uint64   // positions that must be digits
	chars  uint64   // positions that must be letters
	fixed  []fixedByte
}

type fixedByte struct {
	at int
	c  byte
}

// idSource is a rule as the data writes it.
//
// A mask describes the compact value: d is a digit, a a letter, x either, other
// characters stand for themselves, and {n} repeats. A layout describes groups
// and separators, as 3-2-4; _ stands for any of space, dash and dot.
type idSource struct {
	ID     string   `yaml:"id"`
	Label  string   `yaml:"label"`
	Text   string   `yaml:"text"`
	Masks  []string `yaml:"masks"`
	Check  string   `yaml:"check"`
	Needs  []string `yaml:"needs"`
	Unless []string `yaml:"unless"`
	Forms  []string `yaml:"forms"`
	Alone  []string `yaml:"alone"`
	Upper  bool     `yaml:"upper"`
	Score  float64  `yaml:"score"`
	Yes    []string `yaml:"finds"`
	No     []string `yaml:"spares"`
}

// idIndex holds the rules by the length of the compact value.
type idIndex struct {
	byLen [maxCompact + 1][]*idRule
}

func (x *idIndex) add(src idSource, info *ruleInfo, v *vocab, all map[string]check) error {
	needs, err := v.set(src.Needs)
	if err != nil {
		return fmt.Errorf("rule %s: %w", src.ID, err)
	}
	unless, err := v.set(src.Unless)
	if err != nil {
		return fmt.Errorf("rule %s: %w", src.ID, err)
	}
	c := all[src.Check]
	if c == nil && src.Check != "" {
		return fmt.Errorf("rule %s: no check %q", src.ID, src.Check)
	}
	rank := pii.RankChecksum
	if c == nil {
		rank = pii.RankContext
	}
	for _, mask := range src.Masks {
		r := &idRule{
			info: info, check: c, score: src.Score, rank: rank, needs: needs, unless: unless,
			forms: src.Forms, alone: src.Alone, upper: src.Upper,
		}
		n, err := r.compile(mask)
		if err != nil {
			return fmt.Errorf("rule %s: %w", src.ID, err)
		}
		x.byLen[n] = append(x.byLen[n], r)
	}
	return nil
}

// compile takes the mask apart and returns the length of the values it allows.
func (r *idRule) compile(mask string) (int, error) {
	n := 0
	for i := 0; i < len(mask); {
		c, repeat := mask[i], 1
		i++
		if i < len(mask) && mask[i] == '{' {
			end := strings.IndexByte(mask[i:], '}')
			if end < 2 {
				return 0, fmt.Errorf("mask %q", mask)
			}
			repeat = num(mask[i+1 : i+end])
			i += end + 1
		}
		for range repeat {
			switch {
			case c == 'd':
				r.digits |= 1 << n
			case c == 'a':
				r.chars |= 1 << n
			case c != 'x':
				r.fixed = append(r.fixed, fixedByte{n, c})
			}
			n++
		}
	}
	if n == 0 || n > maxCompact {
		return 0, fmt.Errorf("mask %q has length %d", mask, n)
	}
	return n, nil
}

func (r *idRule) fits(value []byte, digits uint64) bool {
	if r.digits&^digits != 0 || r.chars&digits != 0 {
		return false
	}
	for _, f := range r.fixed {
		if value[f.at] != f.c {
			return false
		}
	}
	return true
}

// candidate is a run of groups that may be an identifier.
type candidate struct {
	start, end int
	value      [maxCompact]byte
	n          int
	digits     uint64
	sizes      [maxGroups]uint8
	seps       [maxGroups]byte
	groups     int
}

// layout writes the groups and separators, as "3-2-4".
func (c *candidate) layout(dst []byte) []byte {
	for i := range c.groups {
		if i > 0 {
			dst = append(dst, c.seps[i])
		}
		if n := c.sizes[i]; n > 9 {
			dst = append(dst, '0'+n/10, '0'+n%10)
		} else {
			dst = append(dst, '0'+n)
		}
	}
	return dst
}

// grow takes in a further group; it reports false when there is no room.
func (c *candidate) grow(s string, w word, sep byte) bool {
	if c.groups == maxGroups || c.n+w.len() > maxCompact {
		return false
	}
	for _, b := range []byte(s[w.start:w.end]) {
		switch byteClass[b] {
		case byteDigit:
			c.digits |= 1 << c.n
		case byteLower:
			b -= 0x20
		}
		c.value[c.n] = b
		c.n++
	}
	c.sizes[c.groups], c.seps[c.groups] = uint8(w.len()), sep
	c.groups++
	c.end = int(w.end)
	return true
}

// separator reports the character between two groups of an identifier.
func separator(s string, a, b word) (byte, bool) {
	if a.end+1 != b.start {
		return 0, false
	}
	switch c := s[a.end]; c {
	case ' ', '-', '.', '/', '+', '\n':
		return c, true
	}
	return 0, false
}

// ids finds the identifiers of a text.
func (s *Set) ids(t *text, out *findings) {
	for i, w := range t.words {
		if !w.ascii() || w.len() > maxCompact || !w.is(hasDigit) && !s.beginsID(t, i) || attached(t.s, int(w.start)) {
			continue
		}
		c := candidate{start: int(w.start)}
		c.grow(t.s, w, 0)
		for j := i + 1; ; j++ {
			if c.digits != 0 {
				s.tryID(t, &c, out)
			}
			if j >= len(t.words) || !t.words[j].ascii() {
				break
			}
			sep, ok := separator(t.s, t.words[j-1], t.words[j])
			if !ok || !c.grow(t.s, t.words[j], sep) {
				break
			}
		}
	}
}

// beginsID reports a short word of letters with digits behind it, as in
// "AB 12 34 56 C".
func (s *Set) beginsID(t *text, i int) bool {
	if t.words[i].len() > 6 || i+1 >= len(t.words) || !t.words[i+1].is(hasDigit) {
		return false
	}
	_, ok := separator(t.s, t.words[i], t.words[i+1])
	return ok
}

// attached reports that what begins at pos goes on from something before it: a
// decimal, a path, a version, an amount.
func attached(s string, pos int) bool {
	if pos == 0 {
		return false
	}
	switch c := s[pos-1]; c {
	case '$', '+', '~':
		return true
	case '-':
		// Behind a blank or a bracket a dash is the sign of a negative number.
		return pos > 1 && (byteClass[s[pos-2]] != byteOther || s[pos-2] == ' ' || s[pos-2] == '\t' || s[pos-2] == '(' || s[pos-2] == ',')
	case '.', '/', '\\':
		return pos > 1 && byteClass[s[pos-2]] != byteOther
	case ',':
		return pos > 1 && byteClass[s[pos-2]] == byteDigit && pos+3 <= len(s) && digitsOnly(s[pos:pos+3]) && (pos+3 == len(s) || byteClass[s[pos+3]] != byteDigit)
	}
	return false
}

// continued reports that something goes on behind end in the same token.
func continued(s string, end int) bool {
	if end+1 >= len(s) {
		return false
	}
	switch s[end] {
	case '-', '/':
		return byteClass[s[end+1]] != byteOther
	case '.', ':':
		return byteClass[s[end+1]] == byteDigit || s[end] == '.' && byteClass[s[end+1]] == byteLower
	case '%':
		return true
	}
	return false
}

func (s *Set) tryID(t *text, c *candidate, out *findings) {
	if c.n > maxCompact || len(s.index.byLen[c.n]) == 0 || continued(t.s, c.end) {
		return
	}
	var layout [3 * maxGroups]byte
	var near classSet
	var l []byte
	known := false
	for _, r := range s.index.byLen[c.n] {
		value := c.value[:c.n]
		if !r.fits(value, c.digits) {
			continue
		}
		if !known {
			near = t.context(c.start, c.end, contextBefore, contextAfter)
			known = true
		}
		named := near.meets(r.needs)
		if !named && len(r.alone) == 0 {
			continue
		}
		if l == nil {
			l = c.layout(layout[:0])
		}
		if !(named && allowed(r.forms, l) || len(r.alone) > 0 && allowed(r.alone, l)) {
			continue
		}
		if near.meets(r.unless) && t.distance(c.start, c.end, r.unless) < t.distance(c.start, c.end, r.needs) {
			continue
		}
		if r.check != nil && !r.check(string(value)) || r.upper && strings.ContainsFunc(t.s[c.start:c.end], unicode.IsLower) {
			continue
		}
		score := r.score
		if named {
			// The nearest word decides between kinds of the same shape.
			score = min(1, score+0.04) - 0.0002*float64(t.distance(c.start, c.end, r.needs))
		}
		out.add(t, c.start, c.end, r.info, score, r.rank)
	}
}

// distance returns how far the nearest phrase of set is.
func (t *text) distance(start, end int, set classSet) int {
	best := contextBefore
	i := t.hitAfter(start)
	for j := i - 1; j >= 0 && start-int(t.hits[j].end) < best; j-- {
		if t.hits[j].set.meets(set) {
			best = max(0, start-int(t.hits[j].end))
		}
	}
	for j := i; j < len(t.hits) && int(t.hits[j].start)-end < best; j++ {
		if int(t.hits[j].start) >= end && t.hits[j].set.meets(set) {
			best = int(t.hits[j].start) - end
		}
	}
	return best
}

// allowed reports that a layout fits one of the forms. Without forms any layout
// does whose separators are all the same.
func allowed(forms []string, layout []byte) bool {
	if len(forms) == 0 {
		var sep byte
		for _, c := range layout {
			if byteClass[c] == byteDigit || c == '\n' {
				continue
			}
			if sep != 0 && c != sep {
				return false
			}
			sep = c
		}
		return true
	}
	for _, f := range forms {
		if f == "*" || matchLayout(f, layout) {
			return true
		}
	}
	return false
}

func matchLayout(form string, layout []byte) bool {
	if len(form) != len(layout) {
		return false
	}
	for i := range layout {
		if form[i] == layout[i] {
			continue
		}
		if form[i] != '_' || layout[i] != ' ' && layout[i] != '-' && layout[i] != '.' {
			return false
		}
	}
	return true
}
