package rules

import "strings"

// secretExtent returns where a named secret begins and ends.
func secretExtent(t *text, l link) (start, end int, quoted bool) {
	if l.quote != 0 {
		if end, ok := closing(t.s, l.at, l.quote); ok {
			return l.at, end, true
		}
	}
	if n := entity(t.s[l.at:]); n > 0 {
		l.at += n // a quotation mark in HTML
	}
	if l.at == t.key && t.key > 0 && len(t.s)-t.key < 400 && !strings.ContainsAny(t.s[l.at:], " \n") {
		return l.at, len(t.s), true // the member's whole value
	}
	end = l.at + fieldEnd(t.s[l.at:t.token(l.at)])
	for end > l.at && strings.IndexByte(".,:", t.s[end-1]) >= 0 {
		end--
	}
	return l.at, end, false
}

// maxAccount bounds the name of an account field before "/PW".
const maxAccount = 24

// afterAccount reports that a pair is named: before, which ends where the name
// of a password begins, ends in that of an account and a sign that joins them.
func afterAccount(before string) bool {
	cut := strings.TrimRight(before, " ")
	if cut == "" || strings.IndexByte("/:&(,", cut[len(cut)-1]) < 0 {
		return false
	}
	cut = lowerASCII(strings.TrimRight(cut[:len(cut)-1], " "))
	for _, name := range [...]string{"id", "user", "username", "login", "account", "email", "アカウント", "계정", "아이디", "账号"} {
		if rest, ok := strings.CutSuffix(cut, name); ok && (rest == "" || byteClass[rest[len(rest)-1]] == byteOther || name[0] >= 0x80) {
			return true
		}
	}
	return false
}

// accountOf returns the length of the account in front of a password, with the
// sign between, or 0.
func accountOf(pair string) int {
	i := strings.IndexAny(pair, "/:,(")
	if i < 2 || len(pair)-i < 4 {
		return 0
	}
	return i + 1
}

// fieldEnd returns where the first field of a run without blanks ends: at the
// next parameter of a query, the next name with a value, the next mark of HTML.
func fieldEnd(run string) int {
	for i := 1; i < len(run); i++ {
		switch run[i] {
		case '&':
			if entity(run[i:]) > 0 || nameThen(run[i+1:], "=") {
				return i
			}
		case ',':
			if nameThen(run[i+1:], ":=") {
				return i
			}
		}
	}
	return len(run)
}

// entity returns the length of the quotation mark or bracket of HTML that begins
// s, or 0.
func entity(s string) int {
	for _, e := range [...]string{"&quot;", "&lt;", "&gt;", "&apos;", "&#39;", "&#34;", "&quot", "&lt", "&gt"} {
		if strings.HasPrefix(s, e) {
			return len(e)
		}
	}
	return 0
}

// nameThen reports a name at the beginning of s that one of the signs follows.
func nameThen(s, signs string) bool {
	i := 0
	for i < len(s) && i < 40 && (byteClass[s[i]] == byteLower || byteClass[s[i]] == byteUpper || byteClass[s[i]] == byteWide || i > 0 && (s[i] == '_' || s[i] == '-' || byteClass[s[i]] == byteDigit)) {
		i++
	}
	return i > 1 && i < len(s) && strings.IndexByte(signs, s[i]) >= 0
}

// wordRun returns the length of a run of 12 to 24 small words at i, as a
// recovery phrase is written.
func wordRun(s string, i int) int {
	start, last, words := i, i, 0
	for i < len(s) && words < 24 {
		begin := i
		for i < len(s) && byteClass[s[i]] == byteLower {
			i++
		}
		if n := i - begin; n < 3 || n > 8 {
			break
		}
		words++
		last = i
		if i >= len(s) || s[i] != ' ' && s[i] != ',' {
			break
		}
		for i < len(s) && (s[i] == ' ' || s[i] == ',') {
			i++
		}
	}
	if words < 12 {
		return 0
	}
	return last - start
}

// maxSecret bounds the secrets that have only a name: a sealed one of a cluster
// has several thousand characters.
const maxSecret = 1 << 14

// argument reads a value that is the argument behind a name, as in
// define('PASSWORD', 'x') and setopt(CURLOPT_PASSWORD, "x").
func argument(s string, i int) (link, bool) {
	skip := func(signs string, most int) {
		for n := 0; i < len(s) && n < most && strings.IndexByte(signs, s[i]) >= 0; n++ {
			i++
		}
	}
	skip("\\\"'`", 2)
	skip(" ", 2)
	if i >= len(s) || s[i] != ',' {
		return link{}, false
	}
	i++
	skip(" ", 2)
	skip("\\", 1)
	if i+1 >= len(s) || s[i] != '"' && s[i] != '\'' {
		return link{}, false
	}
	return link{at: i + 1, strong: true, quote: s[i]}, true
}
