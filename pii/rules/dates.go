package rules

import (
	"strings"

	"weir/pii"
)

const (
	birthBefore = 50 // bytes between "born" and the date
	eventBefore = 45
)

// months by the first letters of their names in the languages of the
// vocabulary; enough to tell a date from other words between two numbers.
const months = " jan feb mar apr may jun jul aug sep oct nov dec januar februar märz maerz mai juni juli oktober dezember january february march april june july august september october november december janvier février fevrier mars avril juin juillet août aout septembre octobre novembre décembre decembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre januari februari maart mei augustus stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia janeiro fevereiro março junho julho setembro outubro dezembro sept augusti okt dez mär "

// dates finds birth dates, dates of events in a life, and ages.
func (s *Set) dates(t *text, out *findings) {
	for i := 0; i < len(t.words); i++ {
		w := t.words[i]
		if w.is(hasDigit) && w.ascii() && w.len() <= 8 {
			if start, end, last, ok := dateAt(t, i); ok {
				s.datedEvent(t, start, end, out)
				i = last
				continue
			}
			if w.numeric() && w.len() <= 3 {
				s.age(t, i, out)
			}
		}
	}
}

func (s *Set) datedEvent(t *text, start, end int, out *findings) {
	near := t.context(start, end, birthBefore, 12)
	if start == t.key && t.key > 0 {
		near = t.context(start, end, t.key, 0)
	}
	switch {
	case near.has(s.c.dob):
		if near.has(s.c.event) && nearer(t, start, end, s.c.event, s.c.dob) {
			out.add(t, start, end, s.own["event-date"], 0.7, pii.RankContext)
			return
		}
		out.add(t, start, end, s.own["birth-date"], 0.9, pii.RankContext)
	case t.context(start, end, eventBefore, 0).has(s.c.event):
		out.add(t, start, end, s.own["event-date"], 0.65, pii.RankContext)
	}
}

// dateAt reads the date that begins with word i. Its last word is returned.
func dateAt(t *text, i int) (start, end, last int, ok bool) {
	w := t.words[i]
	start = int(w.start)
	if attached(t.s, start) {
		return 0, 0, 0, false
	}
	// 19790214 and 1979年2月14日.
	if w.numeric() && w.len() == 8 {
		y, m, d := num(t.s[start:start+4]), num(t.s[start+4:start+6]), num(t.s[start+6:start+8])
		return start, int(w.end), i, year(y) && day(y, m, d)
	}
	if end, last, ok := hanDate(t, i); ok {
		return start, end, last, true
	}
	if i+2 < len(t.words) && w.len() <= 4 {
		if end, ok := threeNumbers(t, i); ok {
			return start, end, i + 2, true
		}
		if end, last, ok := dayMonthYear(t, i); ok {
			return start, end, last, true
		}
	}
	// May 11, 1988: the month stands before the day.
	if w.len() <= 4 && i > 0 && i+1 < len(t.words) && monthName(t.word(i-1)) && int(w.start)-int(t.words[i-1].end) <= 2 {
		y := t.words[i+1]
		if d := number2(t, i); d >= 1 && d <= 31 && y.numeric() && y.len() == 4 && year(num(t.s[y.start:y.end])) && y.start-w.end <= 2 {
			return int(t.words[i-1].start), int(y.end), i + 1, true
		}
	}
	return 0, 0, 0, false
}

func year(y int) bool { return y >= 1880 && y <= 2100 }

// number2 reads a day, also as 1st, 2nd, 3rd, 4th.
func number2(t *text, i int) int {
	v := t.word(i)
	for len(v) > 1 && byteClass[v[len(v)-1]] != byteDigit {
		v = v[:len(v)-1]
	}
	if len(v) > 2 || !digitsOnly(v) {
		return 0
	}
	return num(v)
}

func threeNumbers(t *text, i int) (int, bool) {
	a, b, c := t.words[i], t.words[i+1], t.words[i+2]
	if !a.numeric() || !b.numeric() || !c.is(hasDigit) || a.end+1 != b.start && !spacedDot(t, a, b) || b.end+1 != c.start && !spacedDot(t, b, c) {
		return 0, false
	}
	sep := t.s[a.end]
	if sep != t.s[b.end] || sep != '-' && sep != '/' && sep != '.' {
		return 0, false
	}
	end := int(c.end)
	third := t.s[c.start:c.end]
	// A time may be glued on: 1979-02-14T10:00.
	if len(third) > 2 && (third[2] == 'T' || third[2] == 't') {
		third, end = third[:2], int(c.start)+2
	}
	if !digitsOnly(third) || continued(t.s, end) && t.s[end] != ':' {
		return 0, false
	}
	x, y, z := num(t.s[a.start:a.end]), num(t.s[b.start:b.end]), num(third)
	switch {
	case a.len() == 4:
		return end, year(x) && b.len() <= 2 && len(third) <= 2 && day(x, y, z)
	case a.len() > 2 || b.len() > 2:
		return 0, false
	case len(third) == 4:
		return end, year(z) && (day(z, y, x) || day(z, x, y))
	case len(third) == 2 && sep != '.' || len(third) == 2 && a.len() == 2 && b.len() == 2:
		return end, day(z, y, x) || day(z, x, y)
	}
	return 0, false
}

func spacedDot(t *text, a, b word) bool {
	return a.end+2 == b.start && t.s[a.end] == '.' && t.s[a.end+1] == ' '
}

// dayMonthYear reads "14 Feb 1979", "14. Februar 1979", "3 de mayo de 2020".
func dayMonthYear(t *text, i int) (end, last int, ok bool) {
	if d := number2(t, i); d < 1 || d > 31 {
		return 0, 0, false
	}
	j := i + 1
	for j < i+3 && j < len(t.words) && oneOf("de of º", t.word(j)) {
		j++
	}
	if j >= len(t.words) || !monthName(t.word(j)) {
		return 0, 0, false
	}
	k := j + 1
	for k < j+2 && k < len(t.words) && oneOf("de del of", t.word(k)) {
		k++
	}
	if k >= len(t.words) || int(t.words[k].start)-int(t.words[i].end) > 24 {
		return 0, 0, false
	}
	y := t.words[k]
	if !y.numeric() || y.len() != 4 && y.len() != 2 || y.len() == 4 && !year(num(t.s[y.start:y.end])) {
		return 0, 0, false
	}
	return int(y.end), k, true
}

func monthName(v string) bool {
	return len(v) >= 3 && len(v) <= 14 && strings.Contains(months, " "+strings.ToLower(v)+" ")
}

// hanDate reads 1979年2月14日 and the Korean 1979년 2월 14일.
func hanDate(t *text, i int) (end, last int, ok bool) {
	w := t.words[i]
	if !w.numeric() || w.len() != 4 || !year(num(t.s[w.start:w.end])) {
		return 0, 0, false
	}
	rest := t.s[w.end:min(len(t.s), int(w.end)+40)]
	if !strings.HasPrefix(rest, "年") && !strings.HasPrefix(rest, "년") {
		return 0, 0, false
	}
	for _, mark := range [...]string{"日", "일"} {
		if j := strings.Index(rest, mark); j > 0 && strings.ContainsAny(rest[:j], "月월") {
			end = int(w.end) + j + len(mark)
			return end, t.wordAt(end - 1), true
		}
	}
	return 0, 0, false
}

// dateLike reports a value that is a date, so that it is no number of an
// account.
func dateLike(v string) bool {
	if len(v) < 8 || len(v) > 10 {
		return false
	}
	if len(v) == 8 && digitsOnly(v) {
		y := num(v[:4])
		return y >= 1990 && y <= 2035 && day(y, num(v[4:6]), num(v[6:8]))
	}
	seps, sep := 0, byte(0)
	for i := range len(v) {
		if byteClass[v[i]] == byteDigit {
			continue
		}
		if sep != 0 && v[i] != sep {
			return false
		}
		sep = v[i]
		seps++
	}
	if seps != 2 || sep != '-' && sep != '/' && sep != '.' {
		return false
	}
	parts := strings.Split(v, string(sep))
	if len(parts[0]) == 4 && len(parts[1]) <= 2 && len(parts[2]) <= 2 && parts[1] != "" && parts[2] != "" {
		return day(num(parts[0]), num(parts[1]), num(parts[2]))
	}
	if len(parts[2]) == 4 && len(parts[0]) <= 2 && len(parts[1]) <= 2 && parts[0] != "" && parts[1] != "" {
		return day(num(parts[2]), num(parts[1]), num(parts[0])) || day(num(parts[2]), num(parts[0]), num(parts[1]))
	}
	return false
}

// age finds "83 years old", "8-year-old", "aged 84", "Edad: 53 años", "I am 42,".
func (s *Set) age(t *text, i int, out *findings) {
	w := t.words[i]
	n := num(t.s[w.start:w.end])
	if n < 1 || n > 119 || attached(t.s, int(w.start)) {
		return
	}
	start, end := int(w.start), int(w.end)
	rest := t.s[end:min(len(t.s), end+24)]
	low := strings.ToLower(rest)
	for _, unit := range [...]string{" years old", "-year-old", " year old", "-years-old", " years of age", " yrs old", " yo ", "yo ", " y/o", "y/o", " jahre alt", "-jährige", " jahre jung", " ans,", " años de edad", " años", " anni,", " jaar oud", " års ålder", " år gammal", " lat,", "歳", "岁", "歲", "살", "세 ", " anos de idade", "-month-old", " months old"} {
		if strings.HasPrefix(low, unit) {
			end += len(strings.TrimRight(unit, " ,"))
			out.add(t, start, end, s.own["age"], 0.8, pii.RankContext)
			return
		}
	}
	before := t.s[max(0, start-14):start]
	lowBefore := strings.ToLower(before)
	switch {
	case strings.HasSuffix(lowBefore, "aged "):
		out.add(t, start-5, end, s.own["age"], 0.8, pii.RankContext)
	case t.context(start, end, 8, 0).has(s.c.age) && (strings.HasSuffix(before, ": ") || strings.HasSuffix(before, "= ") || strings.HasSuffix(before, ":") || strings.HasSuffix(before, "=") || strings.HasSuffix(lowBefore, "age ") || start == t.key):
		out.add(t, start, end, s.own["age"], 0.75, pii.RankContext)
	case strings.HasSuffix(lowBefore, "i am ") || strings.HasSuffix(lowBefore, "i'm ") || strings.HasSuffix(lowBefore, "she is ") || strings.HasSuffix(lowBefore, " he is ") || strings.HasSuffix(lowBefore, "turned "):
		if n >= 5 && (rest == "" || strings.IndexByte(",.;!?\n", rest[0]) >= 0 || strings.HasPrefix(low, " and ")) && !(rest != "" && rest[0] == '.' && len(rest) > 1 && byteClass[rest[1]] == byteDigit) {
			out.add(t, start, end, s.own["age"], 0.65, pii.RankContext)
		}
	}
}
