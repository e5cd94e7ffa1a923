package rules

import (
	"strings"

	"github.com/nyaruka/phonenumbers"

	"weir/pii"
)

// phoneRegions are tried for a number without a country code, in this order.
var phoneRegions = [...]string{"US", "GB", "DE", "FR", "ES", "IT", "NL", "BE", "AT", "CH", "PL", "SE", "NO", "DK", "FI", "IE", "PT", "GR", "CZ", "RO", "HU", "AU", "NZ", "IN", "JP", "KR", "CN", "TW", "HK", "SG", "MY", "TH", "PH", "ID", "VN", "BR", "MX", "AR", "CL", "CO", "ZA", "NG", "KE", "EG", "TR", "IL", "AE", "SA", "RU", "UA"}

// maxAsked bounds how often one text asks the numbering plans, which is slow.
const maxAsked = 400

// number is a run of groups of digits that may be a telephone number.
type number struct {
	start, end int
	digits     [20]byte
	n          int
	layout     [16]byte // sizes of groups and what stands between
	ln         int
	plus       bool
	paren      bool
}

// phones finds telephone numbers: with a plus and a country code anywhere, in
// national form if it is written as one and valid somewhere, or if a word says
// that it is one.
func (s *Set) phones(t *text, out *findings) {
	for i := 0; i < len(t.words); i++ {
		w := t.words[i]
		if !w.numeric() || w.len() > 15 {
			continue
		}
		n, last, ok := readNumber(t, i)
		if ok && s.isPhone(t, &n) {
			score, rank := 0.8, pii.RankContext
			if n.plus {
				score, rank = 0.95, pii.RankChecksum
			}
			out.add(t, n.start, n.end, s.own["phone"], score, rank)
			i = last
		}
	}
}

// readNumber takes the groups from word i on.
func readNumber(t *text, i int) (number, int, bool) {
	var n number
	n.start = int(t.words[i].start)
	for n.start > t.key {
		switch t.s[n.start-1] {
		case '(':
			n.paren = true
			n.start--
			continue
		case '+':
			n.plus = true
			n.start--
		}
		break
	}
	if n.start > t.key && n.paren && t.s[n.start-1] == '+' {
		n.plus = true
		n.start--
	}
	last := i
	for j := i; j < len(t.words); j++ {
		w := t.words[j]
		if digits, ok := extended(t, j); ok && j > i && n.n+digits <= len(n.digits) && phoneSeparator(t.s[t.words[j-1].end:w.start]) {
			copy(n.digits[n.n:], t.s[w.start:int(w.start)+digits])
			n.n += digits
			n.layout[n.ln], n.layout[n.ln+1] = '-', byte('0'+digits)
			n.ln += 2
			n.end, last = int(w.end), j
			break
		}
		if !w.numeric() || n.n+w.len() > len(n.digits) || n.ln+2 > len(n.layout) {
			break
		}
		if j > i {
			sep := t.s[t.words[j-1].end:w.start]
			if !phoneSeparator(sep) {
				break
			}
			n.layout[n.ln] = sep[len(sep)-1]
			n.ln++
		}
		copy(n.digits[n.n:], t.s[w.start:w.end])
		n.n += w.len()
		n.layout[n.ln] = byte('0' + min(w.len(), 15))
		n.ln++
		n.end = int(w.end)
		last = j
		if n.n >= 15 {
			break
		}
	}
	return n, last, n.n >= 6 && n.n <= 15 && !attachedPhone(t.s, n.start, t.key) && !continuedPhone(t.s, n.end, n.n)
}

// extended reports a last group with an extension, as 4508x769, and the digits
// before the x.
func extended(t *text, i int) (int, bool) {
	v := t.word(i)
	x := strings.IndexByte(v, 'x')
	return x, x >= 3 && x <= 4 && digitsOnly(v[:x]) && digitsOnly(v[x+1:]) && len(v)-x <= 6
}

func phoneSeparator(sep string) bool {
	switch sep {
	case " ", "-", ".", "/", ") ", ")", ")-", " (", "(", " / ", "-(", "(0)", " (0) ":
		return true
	}
	return false
}

func attachedPhone(s string, start, least int) bool {
	if start <= least {
		return false
	}
	c := s[start-1]
	if c == ',' {
		return start > least+1 && byteClass[s[start-2]] == byteDigit && s[start] != '+' && s[start] != '('
	}
	return c == '_' || c == '$' || c == '#' || c == '=' && start > 1 && s[start-2] == '=' ||
		(c == '-' || c == '.' || c == '/') && start > least+1 && byteClass[s[start-2]] != byteOther || byteClass[c] != byteOther && byteClass[c] != byteWide
}

func continuedPhone(s string, end, digits int) bool {
	if end+1 >= len(s) {
		return false
	}
	switch s[end] {
	case '-', '/', '.', ':', '_', ',':
		return byteClass[s[end+1]] == byteDigit && s[end] != ',' || s[end] == '_' || s[end] == '-' && byteClass[s[end+1]] != byteOther && digits < 9
	case '%':
		return true
	}
	return false
}

func (s *Set) isPhone(t *text, n *number) bool {
	digits := string(n.digits[:n.n])
	if n.plus {
		digits = strings.TrimPrefix(digits, "00")
		return n.n >= 7 && callingCode(digits) && !uniform(digits)
	}
	if strings.HasPrefix(digits, "00") && n.n >= 10 && callingCode(digits[2:]) && n.ln > 1 {
		return s.validAbroad(t, digits[2:])
	}
	if hexPairs(t.s, n.start, n.end) {
		return false
	}
	// A bracket that closes behind the number belongs to the sentence.
	if n.paren && strings.IndexByte(t.s[n.start:n.end], ')') < 0 {
		n.paren = false
		n.start += strings.IndexAny(t.s[n.start:n.end], "0123456789")
	}
	layout := string(n.layout[:n.ln])
	if layout == "6-7" && ymd(digits) {
		return false // a Korean registration number
	}
	near := t.context(n.start, n.end, 40, 12)
	named := near.has(s.c.phone)
	if named && near.has(s.c.notphone) && !nearer(t, n.start, n.end, s.c.phone, s.c.notphone) {
		named = false
	}
	if uniform(digits) || strings.HasSuffix(digits, "000000") || n.layout[0] == '4' && year(num(digits[:4])) || dateLike(t.s[n.start:n.end]) || n.ln == 1 && !named {
		return false
	}
	if !named && near.has(s.c.notphone) {
		return false
	}
	if named {
		if n.n < 7 {
			return n.ln > 1 && n.n == 6 && digits[0] == '0'
		}
		return n.ln > 1 && n.n >= 9 && digits[:2] != "00" && n.ln < 9 || s.validSomewhere(t, digits)
	}
	return writtenAsPhone(layout, digits, n.paren) && s.validSomewhere(t, digits)
}

// hexPairs reports that pairs of hexadecimal digits go on around [start,end).
func hexPairs(s string, start, end int) bool {
	after := end+3 <= len(s) && s[end] == ' ' && hexPair(s[end+1:end+3])
	before := start >= 3 && s[start-1] == ' ' && hexPair(s[start-3:start-1])
	return after || before
}

// hexPair reports a byte in hexadecimal with a letter in it.
func hexPair(s string) bool { return hexWord(s) && !digitsOnly(s) }

// nearer reports that a word of a stands nearer than any of b.
func nearer(t *text, start, end int, a, b class) bool {
	var sa, sb classSet
	sa.add(a)
	sb.add(b)
	return t.distance(start, end, sa) < t.distance(start, end, sb)
}

// writtenAsPhone reports national layouts that are hardly used for anything
// else.
func writtenAsPhone(layout, digits string, paren bool) bool {
	switch layout {
	case "3-3-4", "3.3.4":
		return digits[0] >= '2' && digits[3] >= '2'
	case "3 3 4", "3 3-4":
		return paren || digits[0] == '0'
	case "1-3-3-4", "1.3.3.4", "1 3 3 4", "1 3 3-4":
		return digits[0] == '1' || digits[0] == '0'
	case "2 2 2 2 2", "2.2.2.2.2", "2-2-2-2-2", "2/2/2/2/2":
		return digits[0] == '0' && digits[1] != '0'
	}
	if paren {
		return len(digits) >= 8 && len(digits) <= 12
	}
	// A trunk zero and at least two groups, the last of three digits or more.
	return digits[0] == '0' && digits[1] != '0' && len(layout) >= 3 && len(digits) >= 9 && layout[0] >= '2' && !strings.ContainsAny(layout, ".") && strings.Count(layout, "/") <= 1 && layout[len(layout)-1] >= '2'
}

// validSomewhere asks the numbering plans.
func (s *Set) validSomewhere(t *text, digits string) bool {
	if t.asked++; t.asked > maxAsked {
		return true // too many to ask about: better one too many
	}
	if len(digits) == 10 && digits[0] >= '2' && digits[3:6] == "555" || len(digits) == 11 && digits[0] == '1' && digits[4:7] == "555" {
		return true // kept for fiction, which plans call invalid
	}
	for _, region := range phoneRegions {
		p, err := phonenumbers.Parse(digits, region)
		if err == nil && phonenumbers.IsValidNumberForRegion(p, region) {
			return true
		}
	}
	// Ranges kept for drama in other countries.
	return strings.HasPrefix(digits, "0") && len(digits) >= 10 && len(digits) <= 11
}

// validAbroad asks about a number with its country code.
func (s *Set) validAbroad(t *text, digits string) bool {
	if t.asked++; t.asked > maxAsked {
		return true
	}
	p, err := phonenumbers.Parse("+"+digits, "ZZ")
	return err == nil && phonenumbers.IsValidNumber(p)
}

// callingCode reports digits that begin with a country's calling code.
func callingCode(digits string) bool {
	const one, two = "17", "20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86 90 91 92 93 94 95 98"
	if len(digits) < 7 || digits[0] == '0' {
		return false
	}
	if strings.IndexByte(one, digits[0]) >= 0 {
		return len(digits) >= 10
	}
	return oneOf(two, digits[:2]) || strings.IndexByte("234569", digits[0]) >= 0 || digits[:3] >= "800" && digits[:3] <= "888"
}
