package rules

import (
	"strings"
	"unicode/utf8"
)

// link is what stands between a phrase and its value.
type link struct {
	at     int  // where the value begins
	strong bool // a colon, an equals sign or the like
	is     bool // "is" or the like
	words  int  // further words
	quote  byte // the quotation mark that opens the value
	tight  bool // no blank between the sign and the value
	bar    bool // the sign is the border of a table's cell
	joined bool // only signs that join words stand between, as in REG_R10
}

const (
	maxLink      = 64 // bytes between a phrase and its value
	maxLinkWords = 6
)

// fillers may stand between the name of a thing and its value.
const fillers = " number numbers no nr num nº n° numero número numéro nummer id code value string here currently card of for the my our your their his her this new current old same on in at by issued to de del du da la le el der die das den mein meine mijn min mitt il lo mio mia o a numer номер "

// verbs join a thing to its value.
const verbs = " is was are be ist lautet war est était es era è är er jest reads equals = being será foi são are: isn't "

// follow reads what stands behind a phrase that ends at i. Fillers may be any
// words if loose.
func follow(s string, i int, loose bool) (link, bool) {
	l := link{joined: i < len(s) && s[i] == '_'}
	limit := min(len(s), i+maxLink)
	var last byte // the sign seen last
	lines := 0
	for i < limit {
		c := s[i]
		switch {
		case c == ' ' || c == '\t' || c == '*' || c == ')' || c == ']' || c == '(' || c == '#':
			l.quote, l.tight, l.joined = 0, false, false
			i++
		case c == '"' || c == '\'' || c == '`':
			if l.strong || l.is {
				l.quote = c
			}
			i++
		case c == '=' && i+1 < len(s) && s[i+1] == '=', c == '|' && !cellBorder(s, i), c == '!' || c == '<':
			return l, false // a comparison, a choice
		case c == ':' || c == '=' || c == '|':
			l.strong, l.quote, l.tight, l.bar, last = true, 0, true, c == '|', c
			i++
		case c == '>' && l.strong, c == '-' && i+1 < len(s) && s[i+1] == '>', c == '>' && i > 0 && s[i-1] == '-':
			l.strong, l.tight = true, true
			i++
		case (c == '\n' || c == '\r') && l.strong && last != '=' && lines < 2:
			l.tight = false
			lines++
			i++
		case (c == '.' && abbreviated(s, i) || c == '/' || c == '-' || c == '_') && i > 0 && byteClass[s[i-1]] != byteOther:
			i++
		case c == '-' && i > 0 && s[i-1] == ' ' && i+1 < limit && s[i+1] == ' ':
			i++
		case byteClass[c] == byteOther:
			l.at = i
			return l, true
		default:
			l.joined = l.joined && !l.strong && s[i-1] != '-'
			end, skip := l.filler(s, i, loose)
			if !skip || l.strong {
				l.at = i
				return l, true
			}
			i = end
		}
	}
	return l, false
}

// cellBorder reports a bar between two cells of a table.
func cellBorder(s string, i int) bool {
	return i > 0 && s[i-1] == ' ' && i+1 < len(s) && (s[i+1] == ' ' || byteClass[s[i+1]] == byteDigit)
}

// abbreviated reports a dot that ends a short word, as in "no.".
func abbreviated(s string, dot int) bool {
	i := dot
	for i > 0 && byteClass[s[i-1]] != byteOther {
		i--
	}
	return dot-i <= 4
}

// filler reports whether the word at i stands between a phrase and its value,
// and where it ends.
func (l *link) filler(s string, i int, loose bool) (int, bool) {
	if r, n := utf8.DecodeRuneInString(s[i:]); unspaced(r) {
		return i + n, strings.ContainsRune("号码碼號是为為はがのを는은이가", r)
	}
	end := i
	for end < len(s) && byteClass[s[end]] != byteOther && byteClass[s[end]] != byteDigit {
		end++
	}
	if end == i || end < len(s) && byteClass[s[end]] == byteDigit || end-i > 14 {
		return i, false
	}
	var buf [20]byte
	word := string(append(append(append(buf[:0], ' '), lowerASCII(s[i:end])...), ' '))
	switch {
	case l.words >= maxLinkWords:
		return i, false
	case strings.Contains(verbs, word), word == " to " && setTo(s[:i]):
		l.is = true
	case strings.Contains(fillers, word):
	case loose && !l.is && !l.strong && s[i:end] == strings.ToLower(s[i:end]) && word != " it " && word != " me ":
	default:
		return i, false
	}
	l.words++
	return end, true
}

// setTo reports "set to", "changed to".
func setTo(before string) bool {
	before = strings.TrimRight(before, " ")
	for _, w := range [...]string{"set", "changed", "reset", "updated", "switched", "equal"} {
		if strings.HasSuffix(before, w) {
			return true
		}
	}
	return false
}

func lowerASCII(s string) string {
	for i := 0; i < len(s); i++ {
		if byteClass[s[i]] == byteUpper {
			return strings.ToLower(s)
		}
	}
	return s
}

// token returns the end of the run of characters without blanks, quotes and
// list separators that begins at i. Names within the run that was cut last find
// the same end, so that one long run is read only once.
func (t *text) token(i int) int {
	if i < t.tokenFrom || i > t.tokenTo {
		t.tokenFrom, t.tokenTo = i, tokenEnd(t.s, i)
	}
	return t.tokenTo
}

func tokenEnd(s string, i int) int {
	for i < len(s) {
		switch c := s[i]; {
		case c <= ' ', c == '"', c == '\'', c == '`', c == '<', c == '>', c == '|', c == ';', c == '\\':
			return i
		case c == ',' || c == ')' || c == ']' || c == '}':
			if i+1 >= len(s) || s[i+1] <= ' ' || s[i+1] == '"' || s[i+1] == '\'' || s[i+1] == ')' || s[i+1] == ';' || s[i+1] == ',' || s[i+1] == '}' || s[i+1] == ']' {
				return i
			}
		case c == 0xE2 && strings.HasPrefix(s[i:], "\u2026"), c == 0xE3 && (strings.HasPrefix(s[i:], "\u3002") || strings.HasPrefix(s[i:], "\u3001")):
			return i
		}
		i++
	}
	return i
}

// trimEnd drops the punctuation that ends a sentence.
func trimEnd(s string, start, end int) int {
	for end > start && strings.IndexByte(".,:!?", s[end-1]) >= 0 {
		if s[end-1] == '!' && end == len(s) && end-start > 6 {
			break
		}
		end--
	}
	return end
}

// closing returns the end of what a quotation mark at start-1 encloses, if it
// is closed on the same line.
func closing(s string, start int, quote byte) (int, bool) {
	limit := min(len(s), start+400)
	for i := start; i < limit; i++ {
		switch {
		case s[i] == quote && (i == start || s[i-1] != '\\'):
			return i, i > start
		case s[i] == '\n':
			return 0, false
		}
	}
	return 0, false
}
