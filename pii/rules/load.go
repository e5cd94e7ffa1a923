package rules

import (
	"embed"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"

	"weir/pii"
)

//go:embed data/*.yaml data/words.txt.gz
var data embed.FS

// classes are those that the code itself asks for; the data names the others.
type classes struct {
	vendor, password, apikey, token, oauth, username, phone, notphone                        class
	dob, event, age, coords, wallet, network, address, street, lead, germanLead, pobox, unit class
	title, personKey, personCue, orgForm, orgNoun, orgCue, live                              class
	people, health, ethnicity, belief, gender, criminal                                      class
	keys                                                                                     classSet // of keyed rules
}

// ownSource describes a recognizer that is code.
type ownSource struct {
	ID    string   `yaml:"id"`
	Label string   `yaml:"label"`
	Text  string   `yaml:"text"`
	Yes   []string `yaml:"finds"`
	No    []string `yaml:"spares"`
}

type peopleSource struct {
	Stop      []string `yaml:"stop"`
	Known     []string `yaml:"known"`
	Particles []string `yaml:"particles"`
	Suffixes  []string `yaml:"suffixes"`
}

// loader reads the embedded data and keeps the first error.
type loader struct {
	err   error
	parts [][]byte
}

func (l *loader) file(name string) []byte {
	b, err := data.ReadFile("data/" + name)
	if err != nil && l.err == nil {
		l.err = err
	}
	l.parts = append(l.parts, b)
	return b
}

func (l *loader) yaml(name string, into any) {
	b := l.file(name)
	if l.err != nil {
		return
	}
	if err := yaml.UnmarshalWithOptions(b, into, yaml.Strict()); err != nil {
		l.err = fmt.Errorf("%s: %w", name, err)
	}
}

func (s *Set) load() error {
	var (
		l       loader
		ids     []idSource
		keyed   []keyedSource
		tokens  []tokenSource
		vendors []tokenSource
		own     []ownSource
		people  peopleSource
		traits  traitSource
	)
	l.yaml("ids.yaml", &ids)
	l.yaml("keyed.yaml", &keyed)
	l.yaml("tokens.yaml", &tokens)
	l.yaml("secrets.yaml", &vendors)
	l.yaml("own.yaml", &own)
	l.yaml("people.yaml", &people)
	l.yaml("traits.yaml", &traits)
	vocabulary, words := l.file("vocab.yaml"), l.file("words.txt.gz")
	if l.err != nil {
		return l.err
	}
	s.version = digest(l.parts...)
	v, err := newVocab(vocabulary, words)
	if err != nil {
		return err
	}
	s.vocab = v
	s.people.load(people)
	s.street = newStreetPatterns()
	for _, o := range own {
		if err := s.register(&ruleInfo{ID: o.ID, Label: pii.Label(o.Label), Text: o.Text, Yes: o.Yes, No: o.No}); err != nil {
			return err
		}
		s.own[o.ID] = s.rules[len(s.rules)-1]
	}
	s.traits.load(v, traits, s.own)
	if err := s.nameClasses(); err != nil {
		return err
	}
	if err := s.loadTokens(append(tokens, vendors...)); err != nil {
		return err
	}
	return s.loadNumbers(ids, keyed)
}

func (s *Set) loadTokens(sources []tokenSource) error {
	s.tokens.starts, s.tokens.near = map[uint16][]tokenRule{}, map[string][]tokenRule{}
	for _, src := range sources {
		label := pii.APIKey
		if src.Label != "" {
			label = pii.Label(src.Label)
		}
		info := &ruleInfo{ID: src.ID, Label: label, Text: src.Text, Yes: src.Yes, No: src.No}
		if err := s.register(info); err != nil {
			return err
		}
		if err := s.tokens.add(src, info, s.vocab); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) loadNumbers(ids []idSource, keyed []keyedSource) error {
	all := checks()
	for _, src := range ids {
		info := &ruleInfo{ID: src.ID, Label: pii.Label(src.Label), Text: src.Text, Yes: src.Yes, No: src.No}
		if err := s.register(info); err != nil {
			return err
		}
		if err := s.index.add(src, info, s.vocab, all); err != nil {
			return err
		}
	}
	for _, src := range keyed {
		info := &ruleInfo{ID: src.ID, Label: pii.Label(src.Label), Text: src.Text, Yes: src.Yes, No: src.No}
		if err := s.register(info); err != nil {
			return err
		}
		if err := s.addKeyed(src, info, all); err != nil {
			return err
		}
	}
	for c := range s.byClass {
		if len(s.byClass[c]) > 0 {
			s.c.keys.add(class(c))
		}
	}
	return nil
}

// register lists a rule, after looking at what the data says of it.
func (s *Set) register(r *ruleInfo) error {
	if _, ok := pii.Lookup(r.Label); !ok || r.ID == "" || r.Text == "" {
		return fmt.Errorf("rule %q: label %q, text %q", r.ID, r.Label, r.Text)
	}
	for _, other := range s.rules {
		if other.ID == r.ID {
			return fmt.Errorf("rule %q stands twice", r.ID)
		}
	}
	s.rules = append(s.rules, r)
	return nil
}

func (s *Set) nameClasses() error {
	for name, at := range map[string]*class{
		"vendor": &s.c.vendor, "password": &s.c.password, "apikey": &s.c.apikey, "token": &s.c.token, "oauth": &s.c.oauth, "username": &s.c.username,
		"phone": &s.c.phone, "notphone": &s.c.notphone, "dob": &s.c.dob, "event": &s.c.event, "age": &s.c.age, "coords": &s.c.coords, "wallet": &s.c.wallet, "network": &s.c.network,
		"address": &s.c.address, "street": &s.c.street, "lead": &s.c.lead, "german_lead": &s.c.germanLead, "pobox": &s.c.pobox, "unit": &s.c.unit,
		"title": &s.c.title, "person_key": &s.c.personKey, "person_cue": &s.c.personCue, "org_form": &s.c.orgForm,
		"org_noun": &s.c.orgNoun, "org_cue": &s.c.orgCue, "live": &s.c.live, "people": &s.c.people, "health": &s.c.health,
		"ethnicity": &s.c.ethnicity, "belief": &s.c.belief, "gender": &s.c.gender, "criminal": &s.c.criminal,
	} {
		c, err := s.vocab.class(name)
		if err != nil {
			return err
		}
		*at = c
	}
	return nil
}

func (p *people) load(src peopleSource) {
	set := func(words []string) map[string]bool {
		m := make(map[string]bool, len(words))
		for _, w := range words {
			m[w] = true
		}
		return m
	}
	p.stop, p.known, p.particles, p.suffixes = set(src.Stop), set(src.Known), set(src.Particles), set(src.Suffixes)
	for k := range p.known {
		p.known[strings.Join(strings.Fields(k), " ")] = true
	}
}

func (x *traitIndex) load(v *vocab, src traitSource, own map[string]*ruleInfo) {
	for _, p := range src.People {
		v.addPhrase(p, v.classes["people"])
	}
	for _, kind := range []struct {
		name    string
		phrases []string
	}{{"health", src.Health}, {"ethnicity", src.Ethnicity}, {"belief", src.Belief}, {"gender", src.Gender}, {"criminal", src.Criminal}} {
		k := traitKind{phrases: v.classes[kind.name], named: own[kind.name], field: own[kind.name+"-field"]}
		k.key = v.classes[kind.name+"_key"]
		for _, p := range kind.phrases {
			v.addPhrase(p, k.phrases)
		}
		x.kinds = append(x.kinds, k)
		x.all.add(k.phrases)
		x.keys.add(k.key)
	}
}
