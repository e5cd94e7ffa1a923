package rules

import (
	"iter"
	"strings"

	"weir/pii"
)

// passwords finds passwords, keys and tokens by the names before them. These
// have no shape of their own, so that the care is in what is left out: code
// that handles a password, types, and words that only talk about one.
func (s *Set) passwords(t *text, out *findings) {
	for _, h := range t.hits {
		switch {
		case h.set.has(s.c.password):
			s.password(t, h, out)
		case h.set.has(s.c.oauth):
			s.namedSecret(t, h, "token-named", 2.75, out)
		case h.set.has(s.c.apikey):
			s.namedSecret(t, h, "secret-named", 2.75, out)
		case h.set.has(s.c.token):
			s.namedSecret(t, h, "token-named", 3.0, out)
		}
		if h.set.has(s.c.username) {
			s.username(t, h, out)
		}
	}
}

func (s *Set) password(t *text, h hit, out *findings) {
	l, ok := follow(t.s, int(h.end), true)
	if arg, found := argument(t.s, int(h.end)); found {
		if end, closed := closing(t.s, arg.at, arg.quote); !closed || !s.looksSecret(t.s[arg.at:end]) {
			return
		}
		l, ok = arg, true
	}
	if !ok || l.at < t.key {
		return
	}
	name := t.s[h.start:h.end]
	info := s.own["password"]
	if numericName(name) {
		if end := t.token(l.at); l.words <= 2 || l.strong || l.is {
			end = trimEnd(t.s, l.at, end)
			if n := end - l.at; n >= 4 && n <= 8 && digitsOnly(t.s[l.at:end]) {
				out.add(t, l.at, end, info, 0.85, pii.RankContext)
				return
			}
		}
	}
	if option(t.s, h) && l.words == 0 {
		l.strong = true // an option of a command: --password X
	}
	if !l.strong && !l.is {
		return
	}
	if phrase := wordRun(t.s, l.at); phrase > 0 && strings.Contains(" "+lowerASCII(name)+" ", "phrase ") || phrase > 0 && lowerASCII(name) == "mnemonic" {
		out.add(t, l.at, l.at+phrase, info, 0.9, pii.RankContext)
		return
	}
	start, end, quoted := secretExtent(t, l)
	if h.start > uint32(t.key) && afterAccount(t.s[max(t.key, int(h.start)-maxAccount):h.start]) {
		start += accountOf(t.s[start:end]) // ID/PW: kim/hunter2
	}
	v := t.s[start:end]
	if len(v) < 3 || len(v) > 1024 || pii.Never(v) || s.notSecret(t, l, v, end, quoted) {
		return
	}
	if !quoted && (!l.strong || shortName(name)) && !s.looksSecret(v) {
		return
	}
	if !quoted && l.bar && plainName(v) {
		return
	}
	if !quoted && shortName(name) && plainName(v) && byteClass[v[0]] == byteLower {
		return // a name in code: pwd: workDir
	}
	out.add(t, start, end, info, 0.85, pii.RankContext)
}

// commandLine finds credentials among the options of commands: curl -u
// user:password, mysql -ppassword, sshpass -p password.
func (s *Set) commandLine(t *text, out *findings) {
	for from := t.key; ; {
		i := strings.Index(t.s[from:], " -")
		if i < 0 {
			return
		}
		at := from + i + 2
		from = at
		if at+4 >= len(t.s) {
			return
		}
		line := t.s[max(t.key, at-160):at]
		if nl := strings.LastIndexByte(line, '\n'); nl >= 0 {
			line = line[nl:]
		}
		start := 0
		switch {
		case t.s[at] == 'u' && t.s[at+1] == ' ' && strings.Contains(line, "curl"):
			start = at + 2
		case strings.HasPrefix(t.s[at:], "-user ") && strings.Contains(line, "curl"):
			start = at + 6
		case t.s[at] == 'p' && t.s[at+1] != ' ' && (strings.Contains(line, "mysql") || strings.Contains(line, "mariadb")):
			start = at + 1
		case t.s[at] == 'p' && t.s[at+1] == ' ' && strings.Contains(line, "sshpass"):
			start = at + 2
		default:
			continue
		}
		start += len(t.s[start:min(len(t.s), start+2)]) - len(strings.TrimLeft(t.s[start:min(len(t.s), start+2)], " '\""))
		end := t.token(start)
		if colon := strings.IndexByte(t.s[start:end], ':'); t.s[at] != 'p' {
			if colon < 0 {
				continue
			}
			start += colon + 1
		}
		if v := t.s[start:end]; len(v) >= 3 && !pii.Never(v) && !strings.HasPrefix(v, "//") {
			out.add(t, start, end, s.own["command-password"], 0.9, pii.RankContext)
		}
	}
}

// numericName reports names of secrets that are digits, as PIN and OTP.
func numericName(name string) bool {
	low := lowerASCII(name)
	for _, w := range [...]string{"pin", "otp", "code", "tan", "2fa"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// shortName reports names that mean other things as well: a test that passed,
// a working directory.
func shortName(name string) bool { return oneOf("pass pw pwd clave psk", lowerASCII(name)) }

// notSecret reports values that are code or words about secrets.
func (s *Set) notSecret(t *text, l link, v string, end int, quoted bool) bool {
	if quoted {
		return strings.Count(v, " ") > 7 || strings.HasPrefix(v, "{") || s.isProse(v)
	}
	next := byte(0)
	if end < len(t.s) {
		next = t.s[end]
	}
	if assignedTo(t.s[end:]) || strings.HasSuffix(v, "=") && plainName(v[:len(v)-1]) {
		return true
	}
	if i := strings.IndexAny(v, "(["); i > 0 && plainName(v[:i]) && (!strings.ContainsAny(v, "!@#%^&*") || strings.Contains(v, "(&") || strings.Contains(v, "(*")) {
		return true // a call or an element
	}
	if v[0] == '+' || v[0] == '/' || strings.HasPrefix(v, "0x") && isHexText(v[2:]) {
		return true
	}
	if strings.ContainsAny(v, "()[]{}") && !strings.ContainsAny(v, "0123456789!@#%^&*") || next == '(' || next == '[' {
		return true
	}
	if strings.HasPrefix(v, "process.env") || strings.HasPrefix(v, "os.") || strings.HasPrefix(v, "//") || strings.HasPrefix(v, "http://") || strings.HasPrefix(v, "https://") || strings.HasPrefix(v, "--") || strings.Contains(v, "::") {
		return true
	}
	if !plainName(v) {
		return false
	}
	low := strings.ToLower(v)
	if oneOf("str string text int integer bool boolean bytes object any required optional must the a an your is not none null nil of for and or in to that this it be should will can please when if with from at least minimum see below above here forgot reset change enter new old confirm show hide wrong incorrect invalid expired weak strong hash hashed field input type label min max length char varchar", low) {
		return true
	}
	if strings.Contains(low, "pass") || strings.Contains(low, "pwd") || strings.Contains(low, "secret") || strings.Contains(low, "token") {
		return true
	}
	if strings.Contains(v, ".") && !strings.ContainsAny(v, "0123456789") {
		return true // a member of an object
	}
	// "x = name" with blanks is code; "x: name" may be prose, where the word
	// is a password only if nothing follows it.
	if !l.tight && strings.ContainsRune(t.s[max(0, l.at-4):l.at], '=') {
		return true
	}
	return next == ' ' && end+1 < len(t.s) && byteClass[t.s[end+1]] == byteLower
}

// isProse reports a quoted text of several common words.
func (s *Set) isProse(v string) bool {
	common, words := 0, 0
	for w := range strings.FieldsSeq(v) {
		words++
		if s.vocab.words[strings.ToLower(strings.Trim(w, ".,!?"))].list&listCommon != 0 || len(w) < 3 {
			common++
		}
	}
	return words > 2 && common*3 >= words*2 && !strings.ContainsAny(v, "0123456789")
}

// plainName reports letters, underscores and dots only.
func plainName(v string) bool {
	for i := range len(v) {
		if c := byteClass[v[i]]; c == byteOther && v[i] != '_' && v[i] != '.' || c == byteDigit {
			return false
		}
	}
	return true
}

// looksSecret reports a value that is no word of prose: with digits, signs or
// capitals inside, or in no dictionary.
func (s *Set) looksSecret(v string) bool {
	if len(v) < 4 {
		return false
	}
	var digit, upper, lower, sign bool
	for i := range len(v) {
		switch byteClass[v[i]] {
		case byteDigit:
			digit = true
		case byteUpper:
			upper = upper || i > 0
		case byteLower:
			lower = true
		case byteOther:
			sign = sign || v[i] != '\'' && v[i] != '-' && v[i] != '.' && v[i] != '/'
		}
	}
	if digit && (lower || upper || sign) || sign && len(v) >= 6 && lower || upper && lower && len(v) >= 6 {
		return true
	}
	if digit {
		return len(v) >= 6 && !dateLike(v)
	}
	return false
}

// weakNames are words that name a secret only among much else.
const weakNames = " api auth credential credentials key keys secret secrets token tokens session cookie sid authorization oauth bearer license key licence key "

func (s *Set) namedSecret(t *text, h hit, rule string, least float64, out *findings) {
	l, ok := follow(t.s, int(h.end), false)
	if arg, found := argument(t.s, int(h.end)); found {
		l, ok = arg, true
	}
	if option(t.s, h) && l.words == 0 {
		l.strong = true // an option of a command: --token X
	}
	if !ok || l.at < t.key || !l.strong && !l.is {
		return
	}
	start, end, quoted := secretExtent(t, l)
	v := t.s[start:end]
	if len(v) > maxSecret {
		return
	}
	size, weak := 8, strings.Contains(weakNames, " "+lowerASCII(t.s[h.start:h.end])+" ")
	if weak {
		size = 16
		if mixed(v) {
			size = 12
		}
		// STRIPE_KEY=, user_token: the word is the last of a longer name.
		if h.start > 0 && (t.s[h.start-1] == '_' || t.s[h.start-1] == '-') {
			size = 12
		}
	}
	if len(v) < size || strings.ContainsAny(v, " \t(){}<>,;") || pii.Never(v) || !l.strong && !s.looksSecret(v) {
		return
	}
	if strings.Contains(v, "://") || strings.HasPrefix(v, "0x") && len(v) <= 18 || !quoted && assignedTo(t.s[end:]) || strings.HasPrefix(v, "/") || strings.HasPrefix(v, "-/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "process.env") || !quoted && plainName(v) {
		return
	}
	if identifies(t.s[h.start:h.end]) && plainID(v) {
		return
	}
	if s.harmless(v, weak) || entropy(v) < least-0.5*float64(b2i(!weak)) {
		return
	}
	score := 0.82
	if rule == "token-named" && h.set.has(s.c.oauth) {
		score = 0.84 // its name says more than the "token" or "secret" within
	}
	out.add(t, start, end, s.own[rule], score, pii.RankContext)
}

// identifies reports names of what is told apart by an id as often as it is
// opened by a secret.
func identifies(name string) bool {
	low := lowerASCII(name)
	return strings.Contains(low, "session") || low == "sid"
}

// plainID reports an id that everybody may know: a ULID, a UUID, also behind a
// word that says of what, as sess_.
func plainID(v string) bool {
	if i := strings.LastIndexAny(v, "_-."); i >= 2 && i <= 12 && plainName(v[:i]) && strings.ToLower(v[:i]) == v[:i] {
		v = v[i+1:]
	}
	switch len(v) {
	case 26: // 48 bits of time and 80 of chance, in Crockford's alphabet
		return v[0] >= '0' && v[0] <= '7' && strings.Trim(strings.ToUpper(v), "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == "" && strings.ContainsAny(v, "0123456789")
	case 36:
		return strings.Count(v, "-") == 4 && isHexText(strings.ReplaceAll(v, "-", ""))
	}
	return false
}

// option reports an option of a command, as in "--token X".
func option(s string, h hit) bool {
	i := int(h.start)
	for i > 0 && s[i-1] == '-' {
		i--
	}
	return i < int(h.start) && (i == 0 || s[i-1] == ' ' || s[i-1] == '\n') && int(h.end) < len(s) && s[h.end] == ' '
}

// assignedTo reports that what stands before rest is itself a name that gets a
// value.
func assignedTo(rest string) bool {
	return strings.HasPrefix(rest, " = ") || strings.HasPrefix(rest, " := ") || strings.HasPrefix(rest, " == ") || strings.HasPrefix(rest, " += ")
}

// mixed reports capitals, small letters and two digits.
func mixed(v string) bool {
	var n [8]int
	for i := range len(v) {
		n[byteClass[v[i]]]++
	}
	return n[byteUpper] > 0 && n[byteLower] > 0 && n[byteDigit] >= 2
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// harmless reports values that a key or token is named after and that are no
// secret: words joined by signs, numbers, dates, versions, and digests where
// the name is a weak one.
func (s *Set) harmless(v string, weak bool) bool {
	digits, letters, signs := 0, 0, 0
	for i := range len(v) {
		switch byteClass[v[i]] {
		case byteDigit:
			digits++
		case byteOther:
			signs++
		default:
			letters++
		}
	}
	switch {
	case letters == 0, digits == 0 && len(v) < 20:
		return true
	case digits == 0:
		return s.joinedWords(v)
	case weak && (signs == 0 && isHexText(v) || digits < 2):
		return true
	case weak && len(v) == 36 && strings.Count(v, "-") == 4:
		return true
	}
	return digits <= 4 && s.joinedWords(strings.TrimRight(v, "0123456789"))
}

// joinedWords reports dictionary words joined by signs, as in a slug.
func (s *Set) joinedWords(v string) bool {
	words, known := 0, 0
	for w := range betweenWords(v) {
		words++
		if len(w) < 3 || s.vocab.words[strings.ToLower(w)].list&listCommon != 0 {
			known++
		}
	}
	return words > 0 && known*4 >= words*3
}

// betweenWords cuts at signs, and before a capital behind a small letter.
func betweenWords(v string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := -1
		for i := range len(v) + 1 {
			letter := i < len(v) && (byteClass[v[i]] == byteLower || byteClass[v[i]] == byteUpper)
			hump := letter && start >= 0 && byteClass[v[i]] == byteUpper && byteClass[v[i-1]] == byteLower
			if start >= 0 && (!letter || hump) {
				if !yield(v[start:i]) {
					return
				}
				start = -1
			}
			if letter && start < 0 {
				start = i
			}
		}
	}
}

func isHexText(v string) bool {
	for i := range len(v) {
		if c := v[i]; !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f') {
			return false
		}
	}
	return true
}
