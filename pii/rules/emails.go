package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"

	"weir/pii"
)

const (
	maxLocal  = 64
	maxDomain = 253
)

// emails finds addresses around each @, and handles that begin with one.
func (s *Set) emails(t *text, out *findings) {
	for from := t.key; ; {
		i := strings.IndexByte(t.s[from:], '@')
		if i < 0 {
			return
		}
		at := from + i
		from = at + 1
		start, end := localStart(t.s, at, t.key), domainEnd(t.s, at+1)
		if start == at {
			s.handle(t, at, out)
			continue
		}
		if end == at+1 {
			continue
		}
		local, domain := t.s[start:at], t.s[at+1:end]
		if userAtHost(local) || strings.HasSuffix(t.s[:start], "://") || oneOf("you@example.com your@example.com your.email@example.com youremail@example.com name@example.com email@example.com someone@example.com", t.s[start:end]) {
			continue
		}
		switch {
		case domainKnown(domain):
			out.add(t, start, end, s.own["email"], 0.99, pii.RankChecksum)
			from = end
		case upiHandle(domain):
			out.add(t, start, end, s.own["upi"], 0.85, pii.RankPrefix)
			from = end
		}
	}
}

func localStart(s string, at, least int) int {
	i := at
	if i > least && s[i-1] == '"' {
		if q := strings.LastIndexByte(s[max(least, i-maxLocal):i-1], '"'); q >= 0 {
			if q += max(least, i-maxLocal); q < i-2 && !strings.ContainsAny(s[q:i], "\n,:{") {
				return q
			}
		}
	}
	for i > least && at-i < maxLocal {
		c := s[i-1]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeLastRuneInString(s[least:i])
			if !unicode.IsLetter(r) || unspaced(r) {
				break
			}
			i -= n
			continue
		}
		if byteClass[c] == byteOther && strings.IndexByte("._%+-'!#$&*/=^{|}~", c) < 0 {
			break
		}
		i--
	}
	// Signs that may stand in a local part, but do not begin one in practice.
	for i < at && strings.IndexByte(".'/={|}&*!#$^+-", s[i]) >= 0 {
		i++
	}
	if j := strings.LastIndexAny(s[i:at], "=/|&{"); j >= 0 {
		i += j + 1 // a parameter or a path before the address
	}
	return i
}

func domainEnd(s string, i int) int {
	end := i
	for end < len(s) && end-i < maxDomain {
		c := s[end]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[end:])
			if !unicode.IsLetter(r) || unspaced(r) {
				break
			}
			end += n
			continue
		}
		if byteClass[c] == byteOther && c != '.' && c != '-' {
			break
		}
		end++
	}
	for end > i && (s[end-1] == '.' || s[end-1] == '-') {
		end--
	}
	return end
}

// domainKnown reports a host under a public or reserved top-level domain.
func domainKnown(domain string) bool {
	dot := strings.LastIndexByte(domain, '.')
	if dot <= 0 || dot+3 > len(domain) || strings.Contains(domain, "..") {
		return false
	}
	tld := strings.ToLower(domain[dot+1:])
	if oneOf("example test invalid localhost local internal lan corp home onion", tld) {
		return true
	}
	for i := range len(tld) {
		if byteClass[tld[i]] == byteDigit && !strings.HasPrefix(tld, "xn--") {
			return false
		}
	}
	_, icann := publicsuffix.PublicSuffix(tld)
	return icann
}

// userAtHost reports accounts that are part of a repository's address.
func userAtHost(local string) bool { return local == "git" || local == "hg" || local == "svn" }

func upiHandle(domain string) bool {
	return oneOf("upi paytm ybl okaxis oksbi okicici okhdfcbank ibl axl apl okbank icici sbi hdfcbank", domain)
}

// handle finds an account name as @night_owl. Code is full of such words, so
// one counts only with an underscore or a digit, within a line.
func (s *Set) handle(t *text, at int, out *findings) {
	if at > t.key && strings.IndexByte(" (:,\n\"'/", t.s[at-1]) < 0 {
		return
	}
	end := at + 1
	for end < len(t.s) && (byteClass[t.s[end]] != byteOther && byteClass[t.s[end]] != byteWide || t.s[end] == '_' || t.s[end] == '.') {
		end++
	}
	end = trimEnd(t.s, at, end)
	v := t.s[at+1 : end]
	lineStart := at == 0 || t.s[at-1] == '\n'
	if len(v) < 3 || len(v) > 30 || byteClass[v[0]] == byteDigit || end < len(t.s) && strings.IndexByte("(/-", t.s[end]) >= 0 || lineStart && (end == len(t.s) || t.s[end] != ' ') {
		return
	}
	near := t.context(at, end, 40, 20).has(s.c.username)
	if !strings.ContainsAny(v, "_0123456789") && (!near || s.vocab.words[strings.ToLower(v)].list&listCommon != 0) || strings.Contains(v, ".") && !near {
		return
	}
	if strings.ToUpper(v) == v || !near && strings.HasPrefix(v, "param") {
		return
	}
	out.add(t, at, end, s.own["handle"], 0.65, pii.RankContext)
}
