package rules

import (
	"strings"

	"weir/pii"
)

// traitSource are the phrases of the special categories of data.
type traitSource struct {
	People    []string `yaml:"people"`
	Health    []string `yaml:"health"`
	Ethnicity []string `yaml:"ethnicity"`
	Belief    []string `yaml:"belief"`
	Gender    []string `yaml:"gender"`
	Criminal  []string `yaml:"criminal"`
}

// traitIndex knows what each class of phrases says of a person.
type traitIndex struct {
	kinds []traitKind
	all   classSet
	keys  classSet
}

type traitKind struct {
	phrases, key class
	named, field *ruleInfo
}

// traitsOf finds health data, origin, belief, sexuality and offences of a
// person. Such words are common, so they count only in a clause that has a
// person in it, or as the value of a field of that name.
func (s *Set) traitsOf(t *text, out *findings) {
	for i, h := range t.hits {
		if h.set.meets(s.traits.keys) {
			s.traitField(t, h, out)
		}
		if !h.set.meets(s.traits.all) || int(h.start) < t.key {
			continue
		}
		for _, k := range s.traits.kinds {
			if h.set.has(k.phrases) && s.tied(t, i, k.phrases) && !longerHit(t, i, k.phrases) {
				start, end := s.traitExtent(t, h)
				out.add(t, start, end, k.named, 0.68, pii.RankContext)
			}
		}
	}
}

// longerHit reports that a longer phrase of the class holds hit i.
func longerHit(t *text, i int, c class) bool {
	h := t.hits[i]
	for j := i + 1; j < len(t.hits) && t.hits[j].start <= h.start+64; j++ {
		if o := t.hits[j]; o.set.has(c) && o.start <= h.start && o.end >= h.end && (o.end > h.end || o.start < h.start) {
			return true
		}
	}
	for j := i - 1; j >= 0 && t.hits[j].end+64 >= h.start; j-- {
		if o := t.hits[j]; o.set.has(c) && o.start <= h.start && o.end >= h.end && o.start < h.start {
			return true
		}
	}
	return false
}

// traitExtent takes in the article before a phrase.
func (s *Set) traitExtent(t *text, h hit) (int, int) {
	start := int(h.start)
	for _, article := range [...]string{" a ", " an "} {
		if strings.HasSuffix(t.s[max(0, start-len(article)):start], article) {
			return start - len(article) + 1, int(h.end)
		}
	}
	return start, int(h.end)
}

// tied reports that a person stands before the phrase in the same clause, close
// enough to be whom it is about.
func (s *Set) tied(t *text, i int, kind class) bool {
	h := t.hits[i]
	lo := max(t.key, int(h.start)-70)
	clause := t.s[lo:h.start]
	if cut := strings.LastIndexAny(clause, "?!\n;"); cut >= 0 {
		lo += cut + 1
	}
	if cut := strings.LastIndex(t.s[lo:h.start], ". "); cut >= 0 {
		lo += cut + 2
	}
	for j := i - 1; j >= 0 && int(t.hits[j].end)+8 > lo; j-- {
		o := t.hits[j]
		if o.set.has(s.c.people) && int(o.start) >= lo && o.end <= h.start && s.says(t, o, h, kind) {
			return true
		}
	}
	return false
}

// says reports that the words between a person and a phrase say that it is so
// of the person: "has", "am", "diagnosed with", or a chain of traits.
func (s *Set) says(t *text, person, trait hit, kind class) bool {
	between := " " + strings.ToLower(strings.TrimSpace(t.s[person.end:trait.start])) + " "
	between = strings.NewReplacer(",", " ", "'m", "am", "'s", "is", "'ve", "have").Replace(between)
	words := strings.Fields(between)
	if len(words) > 9 {
		return false
	}
	possessive := oneOf("my our his her mein meine mon ma mi mio mia mijn min moja mój", lowerASCII(t.s[person.start:person.end]))
	if len(words) == 0 {
		// "my diabetes" says it; "my chinese" may go on with any thing.
		// "was arrested" brings its verb along.
		return kind == s.c.health && possessive || kind == s.c.criminal && strings.IndexByte(t.s[trait.start:trait.end], ' ') > 0
	}
	if oneOf("about like love loves hate want wants think thinks learn study read write watch cook eat teach speak speaks", words[0]) {
		return false
	}
	for _, w := range words {
		if oneOf("if whether about write explain what how would could can should book article movie essay paper story language food restaurant", w) {
			return false
		}
	}
	if kind == s.c.ethnicity && !ofPerson(t, trait, words, possessive) {
		return false
	}
	for _, w := range words {
		if oneOf("am is was are were have has had having been being take takes taking suffer suffers suffering suffered prescribed prescribes diagnosed identify identifies tested become became came with got getting ended served as bin ist habe hat leide leidet suis ai est a souffre soy tengo es tiene sufre sono ho ha è soffre ben heb heeft mam jest har är jestem", w) {
			return s.nounFree(t, trait, kind)
		}
	}
	return false
}

// ofPerson reports that an origin is said of a person and not of a thing of
// theirs, as in "my car is German". Black and white are colours first: they count
// right behind "is", or before a word for a person.
func ofPerson(t *text, trait hit, words []string, possessive bool) bool {
	if possessive {
		if !oneOf("family parents grandparents ancestors kids twins ex fiancé fiancée roommate flatmate landlord landlady teacher doctor nurse nanny manager neighbours neighbors nationality citizenship ethnicity race origin origins roots background heritage ancestry", words[0]) {
			return false
		}
		words = words[1:]
	}
	if !oneOf("black white", lowerASCII(t.s[trait.start:trait.end])) {
		return true
	}
	next := following(t, trait)
	if oneOf(humans, next) {
		return true
	}
	if len(words) == 0 || next == "with" || !oneOf("am is are was were identify identifies identified", words[0]) {
		return false
	}
	for _, w := range words[1:] {
		if !oneOf("a an as half part also both year years old", w) && (w[0] < '0' || w[0] > '9') {
			return false
		}
	}
	return true
}

// humans are words for a person that an origin may stand before.
const humans = "immigrant woman women man men male female person people girl boy student worker mother father citizen"

// following returns the word behind a phrase in small letters.
func following(t *text, h hit) string {
	next, _, _ := strings.Cut(strings.TrimSpace(t.s[h.end:min(len(t.s), int(h.end)+24)]), " ")
	return strings.ToLower(strings.Trim(next, ".,;!?"))
}

// nounFree leaves out traits that only describe a thing, as "I have a German
// car".
func (s *Set) nounFree(t *text, trait hit, kind class) bool {
	if kind == s.c.health || kind == s.c.criminal {
		return true
	}
	rest := t.s[trait.end:min(len(t.s), int(trait.end)+24)]
	if rest == "" || strings.IndexByte(",.;!?\n\")", rest[0]) >= 0 {
		return true
	}
	next := following(t, trait)
	return oneOf(humans, next) || oneOf("and but or so by who how national origin descent heritage background in from with since because too now at when which that und aber oder et mais y pero e ma en maar", next)
}

// traitField takes the value of a field as "religion: Sikh".
func (s *Set) traitField(t *text, h hit, out *findings) {
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
		for end < len(t.s) && end-l.at < 80 && strings.IndexByte("\n\",;|<>{}[]\t", t.s[end]) < 0 {
			if t.s[end] == '.' && (end+1 == len(t.s) || t.s[end+1] == ' ') {
				break
			}
			end++
		}
		for end < len(t.s) && end > l.at && t.s[end]&0xC0 == 0x80 {
			end--
		}
	}
	v := strings.TrimRight(t.s[l.at:end], " ")
	if len(v) < 1 || len(v) > 80 || pii.Never(v) || strings.ContainsAny(v, "(){}[]=$@/\\_|&+") || strings.Contains(v, "true") || strings.Contains(v, "false") {
		return
	}
	for _, k := range s.traits.kinds {
		if h.set.has(k.key) && s.fieldWorthy(t, l, v, k) {
			out.add(t, l.at, l.at+len(v), k.field, 0.7, pii.RankContext)
		}
	}
}

// fieldWorthy tells the value of a record from the word after a colon: it is a
// phrase of the kind, or stands in quotes or alone.
func (s *Set) fieldWorthy(t *text, l link, v string, k traitKind) bool {
	probe := text{s: v}
	s.vocab.lex(&probe)
	for _, h := range probe.hits {
		if h.set.has(k.phrases) {
			return true
		}
	}
	if k.phrases == s.c.gender {
		return oneOf("m f male female man woman männlich weiblich homme femme hombre mujer h v uomo donna mand kvinde kvinna", strings.ToLower(v))
	}
	if k.phrases == s.c.ethnicity || k.phrases == s.c.belief {
		w := probe.words
		return len(w) == 1 && w[0].is(capital|hasLower) && !w[0].is(isCamel)
	}
	name := lowerASCII(t.s[max(0, l.at-30):l.at])
	if k.phrases == s.c.health {
		return strings.Contains(name, "diagnos") || strings.Contains(name, "medication") || strings.Contains(name, "allerg") || strings.Contains(name, "blood") || strings.Contains(name, "medical") || strings.Contains(name, "prescription") || strings.Contains(name, "health") || strings.Contains(name, "symptom") || strings.Contains(name, "disabilit") || strings.Contains(name, "illness") || strings.Contains(name, "erkrankung")
	}
	return strings.Contains(name, "criminal") || strings.Contains(name, "conviction") || strings.Contains(name, "offen") && len(v) > 6
}
