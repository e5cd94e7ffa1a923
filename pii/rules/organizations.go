package rules

import (
	"strings"

	"weir/pii"
)

// organizations finds firms by their legal form, and employers, schools and
// clinics behind a word that ties them to a person.
func (s *Set) organizations(t *text, out *findings) {
	for _, h := range t.hits {
		switch {
		case h.set.has(s.c.orgForm) && legalForm(t.s[h.start:h.end]):
			s.firm(t, h, out)
		case h.set.has(s.c.orgNoun) && byteClass[t.s[h.start]] == byteUpper:
			s.institution(t, h, out)
		}
		if h.set.has(s.c.orgCue) {
			s.employer(t, h, out)
		}
	}
}

// legalForm reports the writing of a legal form: short ones are in capitals or
// as the law writes them.
func legalForm(v string) bool {
	if byteClass[v[0]] != byteUpper && !oneOf("e.V. s.r.o. d.o.o. mbH", v) {
		return false
	}
	if strings.ContainsAny(v, " -_/'") {
		return false // letters that only stand side by side
	}
	return len(v) > 3 || oneOf("Ltd LTD LLC Inc INC PLC LLP GmbH AG KG BV NV SAS SRL Oy OY AB ApS AS SA S.A Co B.V N.V S.p.A Pty Pte OHG UG SpA Srl S.L SL Lda", v)
}

// firm takes the capitalised words before a legal form.
func (s *Set) firm(t *text, h hit, out *findings) {
	i := t.wordAt(int(h.start))
	first := s.capitalsBefore(t, i)
	if first == i {
		return
	}
	if h.end-h.start <= 2 && i-first < 2 && !oneOf("AG KG", t.s[h.start:h.end]) {
		return
	}
	form := t.s[h.start:h.end]
	if len(form) == 2 && i-first > 2 && allCapitals(t, first, i) && !oneOf("AG KG", form) {
		return // a word of a text in capitals
	}
	end := int(h.end)
	if end < len(t.s) && t.s[end] == '.' && shortened(form) {
		end++
	}
	out.add(t, int(t.words[first].start), end, s.own["organization"], 0.75, pii.RankContext)
}

// shortened reports a legal form that is written with a dot at its end, which is
// its own also where a sentence ends with it.
func shortened(form string) bool {
	return strings.Contains(form, ".") || oneOf("Inc INC Ltd LTD Corp Co Pty Pte", form)
}

// allCapitals reports that no word of [from,to) has a small letter.
func allCapitals(t *text, from, to int) bool {
	for _, w := range t.words[from:to] {
		if w.is(hasLower) {
			return false
		}
	}
	return true
}

// capitalsBefore returns the first of the capitalised words that end before
// word i.
func (s *Set) capitalsBefore(t *text, i int) int {
	first := i
	for j := i - 1; j >= 0 && i-j <= 5; j-- {
		gap := t.s[t.words[j].end:t.words[j+1].start]
		if gap != " " && gap != " & " && gap != "-" && gap != ", " && gap != "." || gap == ", " && j+1 != i {
			break
		}
		v := t.word(j)
		if t.words[j].is(capital) && t.words[j].shape&isSolid == 0 && !oneOf("The At For And In Our My We I Mr Mrs Ms Dr Dear To From With", v) {
			first = j
			continue
		}
		if oneOf("of and de der für", v) && j > 0 && t.words[j-1].is(capital) {
			continue
		}
		break
	}
	return first
}

// institution takes "Onyx Cobalt Clinic", if a person goes there.
func (s *Set) institution(t *text, h hit, out *findings) {
	i := t.wordAt(int(h.start))
	first := s.capitalsBefore(t, i)
	if first == i || t.words[first].list&listCommon != 0 && i-first == 1 && s.people.stop[strings.ToLower(t.word(first))] {
		return
	}
	start := int(t.words[first].start)
	if !t.context(start, int(h.end), 50, 0).has(s.c.orgCue) {
		return
	}
	out.add(t, start, int(h.end), s.own["institution"], 0.65, pii.RankContext)
}

// employer takes the capitalised words behind "works at".
func (s *Set) employer(t *text, h hit, out *findings) {
	v := lowerASCII(t.s[h.start:h.end])
	i := t.nextWord(int(h.end))
	if i >= len(t.words) || int(t.words[i].start) < t.key {
		return
	}
	gap := t.s[h.end:t.words[i].start]
	field := fieldGap(gap)
	if !field && (gap != " " || !strings.Contains(v, " ") || strings.HasSuffix(v, " name")) {
		return
	}
	end, last := 0, i
	for j := i; j < len(t.words) && j < i+6; j++ {
		w := t.words[j]
		if j > i && t.s[t.words[j-1].end:w.start] != " " && t.s[t.words[j-1].end:w.start] != " & " && t.s[t.words[j-1].end:w.start] != "-" || !w.is(capital) || oneOf("I And But The As In For On Since Until", t.word(j)) {
			break
		}
		end, last = int(w.end), j
	}
	if end == 0 || last == i && t.words[i].list&listCommon != 0 && !field {
		return
	}
	out.add(t, int(t.words[i].start), end, s.own["employer"], 0.65, pii.RankContext)
}

// places finds where somebody lives, behind a word that says so.
func (s *Set) places(t *text, out *findings) {
	for _, h := range t.hits {
		if !h.set.has(s.c.live) {
			continue
		}
		i := t.nextWord(int(h.end))
		if i >= len(t.words) || int(t.words[i].start) < t.key {
			continue
		}
		v, gap := lowerASCII(t.s[h.start:h.end]), t.s[h.end:t.words[i].start]
		field := fieldGap(gap)
		if v == "from" && !s.fromPerson(t, h) {
			continue
		}
		if !field && (gap != " " || !strings.Contains(v, " ") && !oneOf("from habite 住在", v)) {
			continue
		}
		end := 0
		for j := i; j < len(t.words) && j < i+4; j++ {
			w := t.words[j]
			if j > i {
				if g := t.s[t.words[j-1].end:w.start]; g != " " && g != "-" && g != ", " || g == ", " && w.len() != 2 && w.list&listPlace == 0 {
					break
				}
			}
			if !w.is(capital) || w.is(hasDigit) || w.len() < 2 || s.people.stop[strings.ToLower(t.word(j))] && w.list&listPlace == 0 && !oneOf("New San Los Las North South East West Saint Santa Great El", t.word(j)) {
				break
			}
			end = int(w.end)
		}
		if end > 0 {
			out.add(t, int(t.words[i].start), end, s.own["place"], 0.65, pii.RankContext)
		}
	}
}

// fromPerson reports "I am from", "she comes from".
func (s *Set) fromPerson(t *text, h hit) bool {
	before := strings.ToLower(t.s[max(t.key, int(h.start)-12):h.start])
	for _, p := range [...]string{"i am ", "i'm ", "he is ", "she is ", "he's ", "she's ", "we are ", "come ", "comes ", "family is ", "originally ", "i'm originally "} {
		if strings.HasSuffix(before, p) {
			return true
		}
	}
	return false
}
