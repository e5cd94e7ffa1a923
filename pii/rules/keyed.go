package rules

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"weir/pii"
)

// maxValue bounds the text that the pattern of a named value is run over.
const maxValue = 160

// keyedSource is a value known by the name before it, as the data writes it.
//
// The pattern must match where the value begins, and end at the end of a word;
// its group, if any, is the finding. Link says how close the name must be:
// "any" takes a name right before, "is" wants a sign or a verb between, "sign"
// a sign. Digits is the least number of digits in the value.
type keyedSource struct {
	ID     string   `yaml:"id"`
	Label  string   `yaml:"label"`
	Text   string   `yaml:"text"`
	Key    []string `yaml:"key"`
	Near   []string `yaml:"near"`
	Link   string   `yaml:"link"`
	Value  string   `yaml:"value"`
	Digits int      `yaml:"digits"`
	Letter bool     `yaml:"letter"`
	Check  string   `yaml:"check"`
	Score  float64  `yaml:"score"`
	Yes    []string `yaml:"finds"`
	No     []string `yaml:"spares"`
}

type keyedRule struct {
	info   *ruleInfo
	near   classSet
	link   string
	value  *pattern
	digits int
	letter bool
	check  check
	score  float64
}

func (s *Set) addKeyed(src keyedSource, info *ruleInfo, all map[string]check) error {
	near, err := s.vocab.set(src.Near)
	if err != nil {
		return fmt.Errorf("rule %s: %w", src.ID, err)
	}
	if src.Link != "any" && src.Link != "is" && src.Link != "sign" {
		return fmt.Errorf("rule %s: link %q", src.ID, src.Link)
	}
	r := &keyedRule{
		info: info, near: near, link: src.Link, digits: src.Digits, letter: src.Letter, score: src.Score,
		value: &pattern{source: "^(?:" + src.Value + ")"},
	}
	if src.Check != "" {
		if r.check = all[src.Check]; r.check == nil {
			return fmt.Errorf("rule %s: no check %q", src.ID, src.Check)
		}
	}
	for _, name := range src.Key {
		c, err := s.vocab.class(name)
		if err != nil {
			return fmt.Errorf("rule %s: %w", src.ID, err)
		}
		s.byClass[c] = append(s.byClass[c], r)
	}
	s.keyed = append(s.keyed, r)
	return nil
}

// keyedValues finds values by the names before them.
func (s *Set) keyedValues(t *text, out *findings) {
	for _, h := range t.hits {
		if h.set.has(s.c.vendor) {
			s.vendorValue(t, h, out)
		}
		if !h.set.meets(s.c.keys) {
			continue
		}
		l, ok := follow(t.s, int(h.end), false)
		if !ok || l.at == int(h.end) && (byteClass[t.s[l.at]] == byteUpper || byteClass[t.s[l.at]] == byteLower) && t.s[h.start] < utf8.RuneSelf {
			continue // the rest of a longer word, as in linkRegARM64
		}
		for c := range class(len(s.byClass)) {
			if len(s.byClass[c]) > 0 && h.set.has(c) {
				for _, r := range s.byClass[c] {
					r.try(s.vocab, t, l, out)
				}
			}
		}
	}
}

func (r *keyedRule) try(v *vocab, t *text, l link, out *findings) {
	switch {
	case l.joined, r.link == "sign" && !l.strong, r.link == "is" && !l.strong && !l.is:
		return
	}
	end := min(len(t.s), l.at+maxValue)
	loc := r.value.get().FindStringSubmatchIndex(t.s[l.at:end])
	if loc == nil {
		return
	}
	start, stop := l.at+loc[0], l.at+loc[1]
	if len(loc) > 2 && loc[2] >= 0 {
		start, stop = l.at+loc[2], l.at+loc[3]
	}
	if stop < len(t.s) && (byteClass[t.s[stop]] != byteOther && byteClass[t.s[stop]] != byteWide) {
		return
	}
	value := t.s[start:stop]
	digits, letters := 0, 0
	for i := range len(value) {
		switch byteClass[value[i]] {
		case byteDigit:
			digits++
		case byteLower, byteUpper:
			letters++
		}
	}
	if digits == 0 && letters == len(value) && v.words[strings.ToLower(value)].list&listCommon != 0 {
		return
	}
	if digits < r.digits || r.letter && letters == 0 || digits == 4 && len(value) == 4 && r.digits > 1 && (value[:2] == "19" || value[:2] == "20") {
		return
	}
	if r.check != nil {
		var buf [64]byte
		if !r.check(string(compact(buf[:0], value))) {
			return
		}
	}
	if !r.near.empty() && !t.context(start, stop, contextBefore, contextAfter).meets(r.near) {
		return
	}
	if r.digits >= 4 && dateLike(value) || strings.HasPrefix(value, "0x") && r.info.Label != pii.CryptoWallet {
		return
	}
	score := r.score
	if l.strong {
		score = min(0.95, score+0.08)
	}
	out.add(t, start, stop, r.info, score, pii.RankContext)
}
