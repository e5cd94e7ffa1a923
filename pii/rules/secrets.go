package rules

import (
	"math"
	"regexp"
	"strings"
	"sync"

	"weir/pii"
)

// maxToken bounds the text that a token's pattern is run over.
const maxToken = 1100

// tokenSource is a vendor's token as the data writes it. Exactly one of Start,
// Inside and Near says where to look for it.
type tokenSource struct {
	ID      string   `yaml:"id"`
	Label   string   `yaml:"label"`
	Text    string   `yaml:"text"`
	Start   []string `yaml:"start"`
	Inside  string   `yaml:"inside"`
	Near    []string `yaml:"near"`
	Value   string   `yaml:"value"`
	Entropy float64  `yaml:"entropy"`
	Yes     []string `yaml:"finds"`
	No      []string `yaml:"spares"`
}

// pattern is a regular expression that is compiled when first used: most are
// never needed. A test holds that all of them compile.
type pattern struct {
	source string
	once   sync.Once
	re     *regexp.Regexp
}

func (p *pattern) get() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.source) })
	return p.re
}

type tokenRule struct {
	info    *ruleInfo
	start   string
	value   *pattern
	entropy float64
	anyCase bool
}

func (r *tokenRule) begins(s string) bool {
	if !r.anyCase {
		return strings.HasPrefix(s, r.start)
	}
	return len(s) >= len(r.start) && strings.EqualFold(s[:len(r.start)], r.start)
}

// firstTwo is the first two bytes of s, in small letters.
func firstTwo(s string) uint16 {
	a, b := s[0], s[1]
	if byteClass[a] == byteUpper {
		a |= 0x20
	}
	if byteClass[b] == byteUpper {
		b |= 0x20
	}
	return uint16(a)<<8 | uint16(b)
}

// tokenIndex finds token rules by what is seen first of a token.
type tokenIndex struct {
	two    [1 << 10]uint64 // two leading bytes, as a bit set
	starts map[uint16][]tokenRule
	inside []tokenRule
	near   map[string][]tokenRule // by the vendor's name without separators
}

func (x *tokenIndex) add(src tokenSource, info *ruleInfo, v *vocab) error {
	p := &pattern{source: "^(?:" + src.Value + ")"}
	r := tokenRule{info: info, value: p, entropy: src.Entropy, anyCase: strings.HasPrefix(src.Value, "(?i)")}
	for _, s := range src.Start {
		r.start = s
		n := firstTwo(s)
		x.two[n>>6] |= 1 << (n & 63)
		x.starts[n] = append(x.starts[n], r)
	}
	if src.Inside != "" {
		r.start = src.Inside
		x.inside = append(x.inside, r)
	}
	vendor, err := v.class("vendor")
	if err != nil {
		return err
	}
	for _, name := range src.Near {
		v.addPhrase(name, vendor)
		plain := strings.ReplaceAll(name, " ", "")
		x.near[plain] = append(x.near[plain], r)
	}
	return nil
}

// startTokens finds tokens that begin with a vendor's prefix.
func (s *Set) startTokens(t *text, out *findings) {
	for _, w := range t.words {
		i := int(w.start)
		if i+8 > len(t.s) {
			break
		}
		n := firstTwo(t.s[i:])
		if s.tokens.two[n>>6]&(1<<(n&63)) == 0 {
			continue
		}
		rules := s.tokens.starts[n]
		for k := range rules {
			if rules[k].begins(t.s[i:]) {
				rules[k].try(t, i, out)
			}
		}
	}
}

func (r *tokenRule) try(t *text, i int, out *findings) {
	window := t.s[i:min(len(t.s), i+maxToken)]
	if loc := r.value.get().FindStringIndex(window); loc != nil {
		end := tokenTail(t.s, i+loc[1])
		if specimen(t.s[i:end]) {
			return
		}
		out.add(t, widen(t.s, i, r.info.Label), end, r.info, 0.97, pii.RankPrefix)
		return
	}
	// A token broken over two lines, as copied from a page.
	joined, cut, skipped := unwrap(window)
	if skipped == 0 {
		return
	}
	if loc := r.value.get().FindStringIndex(joined); loc != nil && loc[1] > cut {
		out.add(t, i, tokenTail(t.s, i+loc[1]+skipped), r.info, 0.9, pii.RankPrefix)
	}
}

// specimen reports a token out of a manual, which says so in its middle. Runs
// such as 1234567 say less: people invent keys with those for a trial of Weir.
func specimen(v string) bool {
	return strings.Contains(v, "EXAMPLE") || strings.Contains(v, "Example") || strings.Contains(v, "xxxxxxxx") || strings.Contains(v, "XXXXXXXX")
}

// widen takes in the scheme of a web hook's address.
func widen(s string, start int, label pii.Label) int {
	if label == pii.ConnectionString {
		for _, scheme := range [...]string{"https://", "http://"} {
			if strings.HasSuffix(s[:start], scheme) {
				return start - len(scheme)
			}
		}
	}
	return start
}

// tokenTail takes in what is glued to the end of a token, so that a longer one
// than expected does not keep its end.
func tokenTail(s string, end int) int {
	for end < len(s) && (byteClass[s[end]] != byteOther && byteClass[s[end]] != byteWide || s[end] == '_' || s[end] == '-' && end+1 < len(s) && byteClass[s[end+1]] != byteOther) {
		end++
	}
	return end
}

// unwrap joins the token that begins s with its rest on the next line. It
// returns where it was cut and how many bytes were left out.
func unwrap(s string) (joined string, cut, skipped int) {
	end := strings.IndexByte(s, '\n')
	if end < 6 || strings.ContainsAny(s[:end], " \t\"',;") {
		return "", 0, 0
	}
	next := end + 1
	for next < len(s) && (s[next] == ' ' || s[next] == '\t' || s[next] == '>' || s[next] == '|') && next < end+12 {
		next++
	}
	head := strings.TrimRight(s[:end], "\\\r")
	return head + s[next:], len(head), next - len(head)
}

// insideTokens finds tokens with a known literal in their middle.
func (s *Set) insideTokens(t *text, out *findings) {
	for _, r := range s.tokens.inside {
		for from := t.key; from < len(t.s); {
			i := strings.Index(t.s[from:], r.start)
			if i < 0 {
				break
			}
			at := from + i
			from = at + len(r.start)
			lo := at
			for lo > t.key && at-lo < 80 && (glued(t.s[lo-1]) && byteClass[t.s[lo-1]] != byteWide || strings.IndexByte(".:~", t.s[lo-1]) >= 0) {
				lo--
			}
			window := t.s[lo:min(len(t.s), at+400)]
			if loc := r.value.get().FindStringIndex(window); loc != nil && lo+loc[1] >= from {
				end := tokenTail(t.s, lo+loc[1])
				out.add(t, lo, end, r.info, 0.95, pii.RankPrefix)
				from = max(from, end)
			}
		}
	}
}

// vendorValue finds the value that is assigned to a name with a vendor in it,
// as in ALGOLIA_ADMIN_KEY="...".
func (s *Set) vendorValue(t *text, h hit, out *findings) {
	var buf [maxWord]byte
	name := buf[:0]
	for _, c := range []byte(t.s[h.start:h.end]) {
		if byteClass[c] != byteOther && len(name) < maxWord {
			if byteClass[c] == byteUpper {
				c |= 0x20
			}
			name = append(name, c)
		}
	}
	rules := s.tokens.near[string(name)]
	at, ok := assigned(t.s, int(h.end))
	if len(rules) == 0 || !ok {
		return
	}
	window := t.s[at:min(len(t.s), at+200)]
	for _, r := range rules {
		loc := r.value.get().FindStringIndex(window)
		if loc == nil || loc[1] < len(window) && glued(window[loc[1]]) {
			continue
		}
		if v := window[:loc[1]]; strings.ContainsAny(v, "0123456789") && entropy(v) >= max(r.entropy, 2.5) {
			out.add(t, at, at+loc[1], r.info, 0.85, pii.RankPrefix)
		}
	}
}

// glued reports a byte that belongs to the token before it.
func glued(c byte) bool {
	return byteClass[c] != byteOther || c == '_' || c == '-' || c == '/' || c == '+'
}

// assigned returns where the value begins that is assigned to the name which
// goes on at i.
func assigned(s string, i int) (int, bool) {
	limit := min(len(s), i+28)
	for i < limit && (glued(s[i]) && byteClass[s[i]] != byteWide || s[i] == ' ' || s[i] == '.' || s[i] == '"' || s[i] == '\'' || s[i] == ']') {
		i++
	}
	seen := false
	for limit = min(len(s), i+8); i < limit; i++ {
		switch s[i] {
		case '=', ':', '>', ',':
			seen = true
		case ' ', '"', '\'', '`', '\t', '(':
		default:
			return i, seen
		}
	}
	return 0, false
}

// entropy is Shannon's, in bits per byte.
func entropy(s string) float64 {
	var counts [256]int
	for i := 0; i < len(s); i++ {
		counts[s[i]]++
	}
	e := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			e -= p * math.Log2(p)
		}
	}
	return e
}
