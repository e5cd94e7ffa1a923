package rules

import (
	"strings"

	"weir/pii"
)

// streetPatterns are the ways in which countries write an address. They are run
// only around a word for a kind of street, or a postcode.
type streetPatterns struct {
	english, words, compound, german, typed, box, han, japan, korea *pattern
	counts                                                          *pattern // what only looks like an address
	postcodes                                                       []*pattern
}

// What follows the street in the order of many countries.
const (
	cityPart   = `(?:,? ?[A-Z][\p{L}.'-]+(?:[ -](?:[A-Z][\p{L}.'-]+|de|la|del|am|an|der|den|upon|on|of|le|les|sur)){0,3})`
	ukPostcode = `[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}`
	caPostcode = `[A-Z]\d[A-Z] ?\d[A-Z]\d`
	usZip      = `[A-Z]{2},? \d{5}(?:-\d{4})?`
	unitPart   = `(?:,? (?:Apt|Apartment|Unit|Suite|Ste|Flat|Floor|Room|Fl|No)\.? ?#?\w{1,6}|,? #\w{1,6})`
)

func newStreetPatterns() streetPatterns {
	tail := `(?:` + unitPart + `)?(?:` + `(?:,? ?` + ukPostcode + `|` + cityPart + `?(?:,? (?:` + usZip + `|` + ukPostcode + `|(?:[A-Z]{2},? )?` + caPostcode + `|\d{4,6}))|` + cityPart + `(?:, [A-Z]{2}\b)?))?`
	return streetPatterns{
		english:  &pattern{source: `^(?:(?:Flat|Apt|Apartment|Unit|Suite|Ste)\.? ?\w{1,5},? )?\d{1,5}(?:-\d{1,4})?[A-Za-z]?,? (?:[NSEW]\.? |North |South |East |West )?(?:(?:[A-Z][\p{L}'.-]*|\d{1,3}(?:st|nd|rd|th)|of|the) ){1,4}(?i:Street|St|Road|Rd|Avenue|Ave|Av|Lane|Ln|Drive|Dr|Court|Ct|Boulevard|Blvd|Way|Place|Pl|Close|Crescent|Terrace|Gardens|Grove|Square|Sq|Circle|Cir|Highway|Hwy|Parkway|Pkwy|Trail|Alley|Row|Mews|Hill|Walk|Nagar|Marg|Loop|Plaza|Quay|Rise|Park|Turnpike|Expressway|Broadway)\b\.?(?: (?:NW|NE|SW|SE|N|S|E|W)\b)?` + tail},
		words:    &pattern{source: `^(?:Flat|Apt|Apartment|Unit|Suite|House|Plot|Door)\.? (?:No\.? ?)?\w{1,5},? (?:[A-Z][\p{L}'.-]* ){1,3}(?:Nagar|Marg|Road|Rd|Street|St|Lane|Colony|Layout|Park)\b` + tail},
		compound: &pattern{source: `^(?:\p{Lu}[\p{L}.-]+[ -]){0,2}\p{Lu}[\p{L}-]*(?:straße|strasse|str\.|weg|platz|allee|gasse|ring|damm|ufer|straat|laan|plein|gracht|kade|singel|dijk|gatan|vägen|gränd|vej|gade|veien|gata|katu|tie|steig|chaussee) \d{1,4} ?(?:[a-zA-Z]\b)?(?:[-/]\d{1,4})?(?:(?:,| -)? ?(?:\d{4} ?[A-Z]{2}|[A-Z]{1,2}-\d{4,5}|\d{3} ?\d{2}|\d{4,5}) ` + cityPart + `)?`},
		german:   &pattern{source: `^(?:Am|An der|Auf der|Im|Zur|Zum|In der) \p{Lu}[\p{L}-]+ \d{1,4} ?(?:[a-z]\b)?,? (?:D-)?\d{5} ` + cityPart},
		typed:    &pattern{source: `^(?:(?:\d{1,4}(?: ?(?:bis|ter|[a-zA-Z]))?),? )?(?:\b(?i:c/) ?|\b(?i:rue|avenue|boulevard|bd|chemin|allée|impasse|quai|place|route|calle|avenida|avda|av|paseo|plaza|carrer|via|viale|v\.le|piazza|p\.za|corso|vicolo|largo|rua|travessa|praça|estrada|ul|ulica|aleja)\.? |\b(?i:al|os|pl)\. |οδός )(?:(?:de la|de l'|des|du|de los|de las|della|dello|dei|degli|delle|del|de|di|da|do|dos|das|d'|den|dem|der|św\.) ?)?(?:\p{Lu}[\p{L}'’.-]*|[IVX]+)(?: (?:\p{Lu}[\p{L}'’.-]*|de|del|la|y|e|di|da|do|dos|i|et|\d{1,2}))*(?:,? ?(?:n[º°o]\.? ?|nr\.? ?)?\d{1,4}(?: ?(?:/\d{1,4}|bis\b|[a-zA-Z]\b)|\b))?(?:,? (?:\d{1,2}[º°ªo]? ?[A-Z]?|piso \d+|m\. ?\d+|lok\. ?\w+)\b)?(?:,? (?:\d{2}-\d{3}|\d{4}-\d{3}|\d{5}|\d{4}) ` + cityPart + `)?`},
		box:      &pattern{source: `^(?i:P\.? ?O\.? ?Box|Postfach|Apartado|Boîte postale|Casella postale|Postbus) \d{1,6}(?:,? ` + cityPart + `)?(?:,? (?:` + usZip + `|` + ukPostcode + `|\d{4,6} ` + cityPart + `|\d{5}\b))?`},
		han:      &pattern{source: `(?:[\p{Han}]{2,8}(?:省|自治区))?(?:[\p{Han}]{2,7}市)?(?:[\p{Han}]{1,6}(?:区|县|區|縣|镇|乡))?[\p{Han}]{1,10}(?:路|街|巷|道|弄|村|大道)[\p{Han}\d]{0,6}?\d{1,5}[号號](?:[\p{Han}]{0,8}?\d{1,4}(?:栋|幢|楼|座|单元|室|层|號))*`},
		japan:    &pattern{source: `(?:〒?\d{3}-\d{4} ?)?[\p{Han}]{2,3}[都道府県][\p{Han}\p{Hiragana}\p{Katakana}]{1,8}[市区町村郡][\p{Han}\p{Hiragana}\p{Katakana}]{0,10}\d{1,4}(?:丁目)?(?:[-−‐番地号の]{1,2}\d{1,4}){0,3}号?`},
		korea:    &pattern{source: `(?:\p{Hangul}{2,4}(?:특별시|광역시|특별자치시|도|시) ?)?(?:\p{Hangul}{1,6}(?:시|군|구) ){1,2}\p{Hangul}{1,10}\d{0,3}(?:로|길|동) ?\d{1,4}(?:-\d{1,4})?(?:번길 ?\d+)?(?:,? ?\d{1,4}(?:동|호|층)){0,2}`},
		counts:   &pattern{source: `(?i)^\d{1,5} (?:of|the|new|more|other|first|last|different|great|best|top|ways?|steps?|people|years?|days?|hours?|minutes?|am|pm|percent|dollars|points?)\b`},
		postcodes: []*pattern{
			{source: `\b[A-Z]{1,2}\d[A-Z\d]? \d[ABD-HJLNP-UW-Z]{2}\b`},
			{source: `\b[ABCEGHJ-NPRSTVXY]\d[A-Z] \d[A-Z]\d\b`},
			{source: `\b\d{4} [A-Z]{2} \p{Lu}\p{Ll}+\b`},
		},
	}
}

// maxAddress bounds the text that the pattern of an address is run over.
const maxAddress = 160

// streets finds postal addresses.
func (s *Set) streets(t *text, out *findings) {
	done := 0
	for _, h := range t.hits {
		if int(h.start) < max(done, t.key) {
			continue
		}
		if p, start := s.streetPattern(t, h); p != nil {
			done = max(done, s.streetMatch(t, p, start, int(h.end), out))
		}
		if h.set.has(s.c.address) {
			s.addressField(t, h, out)
		}
	}
	done = t.key
	for i, w := range t.words {
		switch {
		case int(w.start) < done:
		case w.is(isSolid) && i+1 < len(t.words) && t.words[i+1].start == t.words[i].end && t.words[i+1].is(hasDigit):
			done = max(done, s.eastAsian(t, w, out))
		case w.is(capital) && w.len() >= 6 && i+1 < len(t.words) && t.words[i+1].is(hasDigit) && compoundStreet(t.s[w.start:w.end], t.s[w.end:]):
			done = max(done, s.streetMatch(t, s.street.compound, compoundStart(t, i), int(w.end), out))
		case w.is(hasDigit|hasLetter) && w.ascii() && w.len() <= 4:
			s.postcode(t, w, out)
		}
	}
}

// compoundStart returns where the name of a street begins whose last word is i,
// as in "Alte Mainzer Landstraße".
func compoundStart(t *text, i int) int {
	first := i
	for first > 0 && i-first < 2 && t.words[first-1].is(capital) && t.words[first-1].shape&hasDigit == 0 {
		if gap := t.s[t.words[first-1].end:t.words[first].start]; gap != " " && gap != "-" {
			break
		}
		first--
	}
	return int(t.words[first].start)
}

// compoundStreet reports words as Goetheweg and Kerkstraat.
func compoundStreet(v, rest string) bool {
	for _, end := range [...]string{"straße", "strasse", "weg", "platz", "allee", "gasse", "ring", "damm", "ufer", "straat", "laan", "plein", "gracht", "kade", "singel", "dijk", "gatan", "vägen", "gränd", "vej", "gade", "veien", "gata", "katu", "steig", "chaussee", "Straße", "Strasse"} {
		if strings.HasSuffix(v, end) && (len(v) > len(end) || end[0] == 'S') {
			return true
		}
	}
	return strings.HasSuffix(v, "str") && strings.HasPrefix(rest, ".")
}

// streetPattern chooses the pattern for a word for a street and says where the
// address would begin, if what stands around it may be one at all.
func (s *Set) streetPattern(t *text, h hit) (*pattern, int) {
	i := t.wordAt(int(h.start))
	j := t.nextWord(int(h.end))
	more := j < len(t.words)
	switch {
	case h.set.has(s.c.street) && t.words[i].is(capital):
		if n := numberBefore(t, i); n >= 0 {
			return s.street.english, unitBefore(t, n)
		}
	case h.set.has(s.c.pobox) && more && t.words[j].numeric():
		return s.street.box, int(h.start)
	case h.set.has(s.c.unit) && t.words[i].is(capital) && more && t.words[j].is(hasDigit):
		return s.street.words, int(h.start)
	case h.set.has(s.c.germanLead) && t.words[i].is(capital) && j+1 < len(t.words) && t.words[j].is(capital) && t.words[j+1].is(hasDigit):
		return s.street.german, int(h.start)
	}
	if h.set.has(s.c.lead) && more && int(t.words[j].start)-int(h.end) <= 3 && (t.words[j].is(capital) || t.words[j].is(hasWide) || t.words[j].len() <= 5) {
		return s.leadPattern(t, h, i, j)
	}
	return nil, 0
}

// leadPattern is the one of addresses that begin with the kind of the street,
// or with a number right before it.
func (s *Set) leadPattern(t *text, h hit, i, j int) (*pattern, int) {
	if i > 0 && t.words[i-1].is(hasDigit) && t.words[i-1].len() <= 5 && int(h.start)-int(t.words[i-1].end) <= 2 {
		return s.street.typed, int(t.words[i-1].start)
	}
	if i > 1 && oneOf("bis ter", t.word(i-1)) && t.words[i-2].numeric() && t.words[i-2].len() <= 4 && int(h.start)-int(t.words[i-2].end) <= 6 {
		return s.street.typed, int(t.words[i-2].start)
	}
	for k := j; k < len(t.words) && k < j+7; k++ {
		if t.words[k].is(hasDigit) {
			return s.street.typed, int(h.start)
		}
	}
	return nil, 0
}

// numberBefore returns the number of a house a few words ahead of word i, or -1.
func numberBefore(t *text, i int) int {
	for j := i - 1; j >= 0 && j >= i-6 && int(t.words[i].start)-int(t.words[j].end) < 60; j-- {
		if t.words[j].is(hasDigit) && t.words[j].len() <= 6 {
			if j > 0 && t.words[j].numeric() && t.s[t.words[j].start-1] == '-' && t.words[j-1].numeric() {
				j-- // 12-14
			} else if ordinal(t.word(j)) {
				continue
			}
			return j
		}
		if !t.words[j].is(capital) && !oneOf("of the de", t.word(j)) {
			return -1
		}
	}
	return -1
}

// ordinal reports the name of a street as 42nd.
func ordinal(v string) bool {
	for _, end := range [...]string{"st", "nd", "rd", "th"} {
		if strings.HasSuffix(v, end) && len(v) > 2 && digitsOnly(v[:len(v)-2]) {
			return true
		}
	}
	return false
}

// unitBefore takes in "Flat 3," ahead of the number of a house, word i.
func unitBefore(t *text, i int) int {
	if i >= 2 && t.words[i-2].is(capital) && oneOf("Flat Apt Apartment Unit Suite Ste", t.word(i-2)) && int(t.words[i].start)-int(t.words[i-2].end) <= 9 {
		return int(t.words[i-2].start)
	}
	return int(t.words[i].start)
}

// streetMatch runs p at start and takes a match that reaches least.
func (s *Set) streetMatch(t *text, p *pattern, start, least int, out *findings) int {
	if start < t.key {
		return 0
	}
	window := t.s[start:min(len(t.s), least+maxAddress)]
	loc := p.get().FindStringIndex(window)
	if loc == nil || start+loc[1] < least {
		return 0
	}
	v := strings.TrimRight(window[:loc[1]], " ,.-\n")
	if i := strings.IndexByte(v, '\n'); i >= 0 && !strings.ContainsAny(v[:i], "0123456789") || !strings.ContainsAny(v, "0123456789") || !s.addressWorthy(v) {
		return 0
	}
	out.add(t, start, start+len(v), s.own["address"], 0.82, pii.RankContext)
	return start + len(v)
}

// addressWorthy leaves out counts of things, as "3 Great Ways".
func (s *Set) addressWorthy(v string) bool {
	return len(v) >= 8 && !s.street.counts.get().MatchString(v)
}

// addressField takes the line behind a name as "address:".
func (s *Set) addressField(t *text, h hit, out *findings) {
	l, ok := follow(t.s, int(h.end), false)
	if !ok || !l.strong || l.at < t.key {
		return
	}
	end := l.at
	if l.quote != 0 {
		if q, ok := closing(t.s, l.at, l.quote); ok {
			end = q
		}
	}
	if end == l.at {
		for end < len(t.s) && end-l.at < 140 && strings.IndexByte("\n\";|<>\t", t.s[end]) < 0 {
			if t.s[end] == '.' && end+2 < len(t.s) && t.s[end+1] == ' ' && byteClass[t.s[end+2]] == byteUpper && end-l.at > 20 {
				break
			}
			end++
		}
	}
	end = trimEnd(t.s, l.at, end)
	v := t.s[l.at:end]
	if len(v) < 8 || len(v) > 140 || pii.Never(v) || !strings.ContainsAny(v, "0123456789") || !strings.ContainsAny(v, " ,") && v[0] < 0x80 ||
		strings.ContainsAny(v, "@{}()=+%_[]<>*") || strings.Contains(v, "://") || strings.HasPrefix(v, "0x") {
		return
	}
	letters := 0
	for i := range len(v) {
		if byteClass[v[i]] != byteOther && byteClass[v[i]] != byteDigit {
			letters++
		}
	}
	if letters < 4 || strings.Contains(v, "//") {
		return
	}
	out.add(t, l.at, end, s.own["address-field"], 0.78, pii.RankContext)
}

func (s *Set) eastAsian(t *text, w word, out *findings) int {
	rest := t.s[w.start:min(len(t.s), int(w.end)+60)]
	if !strings.ContainsAny(rest, "路街巷道弄号號市区區町村県都府시군구로길동") {
		return 0
	}
	lo := max(int(w.end)-60, int(w.start))
	for lo < int(w.end) && t.s[lo]&0xC0 == 0x80 {
		lo++
	}
	for _, p := range [...]*pattern{s.street.han, s.street.japan, s.street.korea} {
		hi := min(len(t.s), int(w.end)+90)
		for hi < len(t.s) && t.s[hi]&0xC0 == 0x80 {
			hi++
		}
		loc := p.get().FindStringIndex(t.s[lo:hi])
		if loc == nil || lo+loc[0] > int(w.end) {
			continue
		}
		a := lo + loc[0]
		for _, cue := range [...]string{"现居住在", "居住在", "现住在", "住在", "住址是", "地址是", "住所は", "住", "在"} {
			if strings.HasPrefix(t.s[a:], cue) {
				a += len(cue)
				break
			}
		}
		out.add(t, a, lo+loc[1], s.own["address"], 0.85, pii.RankContext)
		return lo + loc[1]
	}
	return 0
}

// postcode finds British, Canadian and Dutch postcodes that stand alone.
func (s *Set) postcode(t *text, w word, out *findings) {
	window := t.s[w.start:min(len(t.s), int(w.end)+16)]
	for i, p := range s.street.postcodes {
		if loc := p.get().FindStringIndex(window); loc != nil && loc[0] == 0 {
			if i == 2 && !t.context(int(w.start), int(w.end), 60, 20).has(s.c.address) {
				continue
			}
			out.add(t, int(w.start), int(w.start)+loc[1], s.own["postcode"], 0.75, pii.RankContext)
			return
		}
	}
}
