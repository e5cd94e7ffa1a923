package repotest

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// pattern is something that no file may hold, and why.
type pattern struct {
	re  *regexp.Regexp
	why string
	// but are files where it is what the file is about.
	but []string
}

// spell joins the parts of a word that this file must not hold itself.
func spell(parts ...string) string { return strings.Join(parts, "") }

func forbiddenText() []pattern {
	return []pattern{
		{
			re:  regexp.MustCompile(`(?:^|[^A-Za-z0-9_.~-])/(?:` + spell("wo", "rk") + `|` + spell("ro", "ot") + `|` + spell("fa", "rm") + `|home/[a-z]{2,}|Users/[a-z]{2,})/`),
			why: "a path of one machine",
			but: []string{"pii/", "policy/testdata/"}, // paths are among what is found
		},
		{
			re:  regexp.MustCompile(`(?i)\b(?:` + spell("proxy.gol", "ang.org") + `|` + spell("registry.", "npmjs.org") + `|` + spell("deb.deb", "ian.org") + `|` + spell("pypi.", "org") + `)\b`),
			why: "the host of a registry; ordinary clients know where to ask",
		},
		{
			re:  regexp.MustCompile(`\b` + spell("TO", "DO") + `\b|\b` + spell("FIX", "ME") + `\b`),
			why: "a wish; do it, or file an issue",
			but: []string{"pii/"}, // dictionaries hold any word
		},
		{
			re:  regexp.MustCompile(`(?m)^(?:<{7} |>{7} |={7}$)`),
			why: "a merge that was not finished",
		},
	}
}

// CheckText finds what no file may hold.
func CheckText(r *Repo) []Fault {
	var out []Fault
	for _, p := range forbiddenText() {
		for _, f := range r.Files {
			if slices.ContainsFunc(p.but, func(dir string) bool { return strings.HasPrefix(f.Path, dir) }) || f.Path == "go.sum" {
				continue
			}
			for _, at := range p.re.FindAllStringIndex(f.Text, -1) {
				out = append(out, Fault{f.Path, lineOf(f.Text, at[0]+1), "holds " + p.why})
			}
		}
	}
	return out
}

var email = regexp.MustCompile(`[A-Za-z0-9._%+-]+@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})\b`)

// reservedDomain says that a domain can belong to nobody: it is reserved (RFC
// 2606, RFC 6761), or its last part is no top-level domain at all.
func reservedDomain(domain string) bool {
	domain = strings.ToLower(domain)
	if suffix, icann := publicsuffix.PublicSuffix(domain); !icann && !strings.Contains(suffix, ".") {
		return true
	}
	for _, d := range []string{"example.com", "example.org", "example.net", "example.edu"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return false
}

// notMail are words with an @ that are no addresses: module versions, image
// digests, handles in package names, URLs with a login.
func notMail(text string, start, end int) bool {
	before, after := text[max(0, start-1):start], text[end:min(len(text), end+1)]
	at := strings.IndexByte(text[start:end], '@')
	domain := text[start+at+1 : end]
	return before == "/" || after == "/" || after == "(" || text[start:start+at] == "git" || strings.HasPrefix(domain, "v") && strings.ContainsAny(domain[1:2], "0123456789")
}

// CheckMail finds mail addresses that could be somebody's. A licence must be
// handed on as it is, with the addresses of its authors.
func CheckMail(r *Repo) []Fault {
	var out []Fault
	for _, f := range r.Files {
		if f.Path == "go.sum" || strings.HasSuffix(f.Path, "package-lock.json") || strings.HasPrefix(path.Base(f.Path), "LICENSE") {
			continue
		}
		for _, m := range email.FindAllStringSubmatchIndex(f.Text, -1) {
			if domain := f.Text[m[2]:m[3]]; !reservedDomain(domain) && !notMail(f.Text, m[0], m[1]) {
				out = append(out, Fault{f.Path, lineOf(f.Text, m[0]), "holds a mail address outside the reserved domains"})
			}
		}
	}
	return out
}

var digits = regexp.MustCompile(`[0-9](?:[ -]?[0-9]){12,18}`)

// testCards are the numbers that card networks and payment services publish for
// tests, and the ones of this project's own data, which no issuer gave out.
func testCards() []string {
	return []string{
		"4111111111111111", "4012888888881881", "4222222222222", "4242424242424242", "4000056655665556",
		"5555555555554444", "5105105105105100", "5200828282828210", "2223003122003222", "2223000048400011", "2223000048410010",
		"378282246310005", "371449635398431", "378734493671000", "6011111111111117", "6011000990139424",
		"3530111333300000", "3566002020360505", "30569309025904", "38520000023237", "36227206271667",
		"6200000000000005", "6205500000000000004", "3056930009020004", "6011981111111113", "4000000000000002",
	}
}

// CheckCards finds card numbers, by issuer range and check digit, that are not
// among those published for tests.
func CheckCards(r *Repo) []Fault {
	var out []Fault
	for _, f := range r.Files {
		if r.invented(f.Dir()) || !strings.Contains(f.Path, "testdata/") && !f.IsTest() && !strings.HasPrefix(f.Path, "examples/") && !strings.HasPrefix(f.Path, "docs/") && f.Path != "README.md" {
			continue
		}
		for _, m := range digits.FindAllStringIndex(f.Text, -1) {
			n := strings.NewReplacer(" ", "", "-", "").Replace(f.Text[m[0]:m[1]])
			if cut(f.Text, m[0], m[1]) || !issued(n) || !luhn(n) || slices.Contains(testCards(), n) {
				continue
			}
			out = append(out, Fault{f.Path, lineOf(f.Text, m[0]), "holds a card number that is not one published for tests"})
		}
	}
	return out
}

// cut says that a run of digits is part of a longer word, such as a hash.
func cut(text string, start, end int) bool {
	word := func(c byte) bool {
		return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	return start > 0 && word(text[start-1]) || end < len(text) && word(text[end]) && text[end] != '.'
}

// issued says that a number has the first digits and the length of a card.
func issued(n string) bool {
	switch {
	case n[0] == '4':
		return len(n) == 13 || len(n) == 16 || len(n) == 19
	case n[:2] >= "51" && n[:2] <= "55", n[:4] >= "2221" && n[:4] <= "2720":
		return len(n) == 16
	case n[:2] == "34" || n[:2] == "37":
		return len(n) == 15
	}
	return n[:4] == "6011" && len(n) == 16
}

func luhn(n string) bool {
	sum := 0
	for i := range n {
		d := int(n[len(n)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// invented says that the data of a folder was made up, by the word of the file
// that tells where it is from.
func (r *Repo) invented(dir string) bool {
	f := r.File(dir + "/ORIGIN.md")
	return f != nil && strings.Contains(f.Text, "No value belongs to a known person")
}

var licence = regexp.MustCompile(`(?i)licen[cs]e|\bCC0\b|\bMIT\b|\bBSD\b`)

// CheckOrigins finds data of others without a word on whose terms it stands.
func CheckOrigins(r *Repo) []Fault {
	var out []Fault
	for _, f := range r.Files {
		if strings.HasSuffix(f.Path, "/ORIGIN.md") && !licence.MatchString(f.Text) {
			out = append(out, Fault{f.Path, 0, "does not say under which licence the data stands"})
		}
	}
	return out
}
