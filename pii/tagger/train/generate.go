package main

import (
	"embed"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"weir/pii"
)

//go:embed templates/*.txt
var templateFiles embed.FS

// generator draws labelled texts.
type generator struct {
	rng       *rand.Rand
	p         *pools
	templates map[string][]string
	clean     map[string][]doc
	langs     []string

	// Of the document in the making.
	lang    string
	pool    *pool
	who     person
	neutral bool // nothing in this template is about anybody
}

func newGenerator(p *pools, clean []text, rng *rand.Rand) (*generator, error) {
	g := &generator{rng: rng, p: p, templates: map[string][]string{}, clean: map[string][]doc{}}
	files, err := templateFiles.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		b, err := templateFiles.ReadFile(path.Join("templates", f.Name()))
		if err != nil {
			return nil, err
		}
		lang := strings.TrimSuffix(f.Name(), ".txt")
		if p.byLang[lang] == nil {
			return nil, fmt.Errorf("no names for the templates in %s", lang)
		}
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimRight(line, "\n"); line != "" {
				g.templates[lang] = append(g.templates[lang], strings.ReplaceAll(line, `\n`, "\n"))
			}
		}
		g.langs = append(g.langs, lang)
	}
	for _, c := range clean {
		g.clean[c.Lang] = append(g.clean[c.Lang], c.doc())
	}
	return g, nil
}

// personal are the slots that make the conditions in a text somebody's.
var personal = []string{"{name", "{first", "{last", "{mr}", "my ", "My ", "I ", "I'", "He ", "She ", "{mrn}", "{age", "mein", "Mein", "mon ", "Mon ", "mi ", "Mi ", "mio", "Mio", "meu", "Meu", "mijn", "Mijn", "mój", "Mój", "γιος", "Min ", "息子", "아들", "我", "患", "환자", "المريض", "Пациент", "Моя "}

// document draws a text of one to five templates, at times within clean text.
func (g *generator) document() doc {
	g.lang = "en"
	if g.rng.IntN(10) >= 4 {
		g.lang = pick(g.rng, g.langs)
	}
	g.pool = g.p.byLang[g.lang]
	templates := g.templates[g.lang]
	g.lang, _, _ = strings.Cut(g.lang, "_")
	d := doc{lang: g.lang}
	n := 1
	if g.rng.IntN(3) == 0 {
		n += 1 + g.rng.IntN(4)
	}
	gap := pick(g.rng, []string{"\n", "\n\n", " "})
	for i := range n {
		if i > 0 {
			d.parts = append(d.parts, part{text: gap})
		}
		if c := g.clean[g.lang]; n > 1 && len(c) > 0 && g.rng.IntN(4) == 0 {
			d.parts = append(d.parts, pick(g.rng, c).parts...)
			continue
		}
		d.parts = append(d.parts, g.fill(pick(g.rng, templates))...)
	}
	return g.noise(d)
}

// fill replaces the slots of a template.
func (g *generator) fill(t string) []part {
	g.neutral = true
	for _, p := range personal {
		if strings.Contains(t, p) {
			g.neutral = false
		}
	}
	g.who = g.person()
	var out []part
	for {
		i := strings.IndexByte(t, '{')
		if i < 0 {
			break
		}
		n := strings.IndexByte(t[i:], '}')
		name := ""
		if n > 0 {
			name = t[i+1 : i+n]
		}
		if !slotName(name) {
			out = append(out, part{text: t[:i+1]})
			t = t[i+1:]
			continue
		}
		out = append(out, part{text: t[:i]}, g.slot(name))
		t = t[i+n+1:]
	}
	return append(out, part{text: t})
}

func slotName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && r != '=' && r != '_' }) < 0
}

// swap puts other names, places and organizations into a labelled document.
func (g *generator) swap(d doc) doc {
	g.lang = d.lang
	if g.p.byLang[g.lang] == nil {
		g.lang = "en"
	}
	g.pool = g.p.byLang[poolOf(g.lang)]
	out := doc{lang: d.lang, parts: make([]part, len(d.parts))}
	copy(out.parts, d.parts)
	known := map[string]string{}
	for i, p := range out.parts {
		if strings.ContainsAny(p.text, "@#_\n0123456789") || len(p.text) < 2 {
			continue
		}
		key := string(p.label) + p.text
		if _, ok := known[key]; !ok && g.rng.IntN(10) < 7 {
			known[key] = g.other(p)
		}
		if v := known[key]; v != "" {
			out.parts[i].text = v
		}
	}
	return out
}

// other draws something of a part's label in the same form.
func (g *generator) other(p part) string {
	v := ""
	switch p.label {
	case pii.PersonName:
		who := g.person()
		switch words := len(strings.Fields(p.text)); {
		case who.fused && wide(g.lang):
			v = who.full
			if len([]rune(p.text)) <= 2 {
				v = pick(g.rng, []string{who.first, who.last})
			}
		case words == 1:
			v = pick(g.rng, []string{who.first, who.last})
		case words <= 3:
			v = who.full
		}
	case pii.Location:
		if len(strings.Fields(p.text)) <= 2 {
			v = g.city()
		}
	case pii.Organization:
		if len(strings.Fields(p.text)) <= 4 {
			v = g.org()
		}
	}
	switch {
	case v == "":
	case p.text == strings.ToLower(p.text):
		v = strings.ToLower(v)
	case p.text == strings.ToUpper(p.text) && len(p.text) > 3:
		v = strings.ToUpper(v)
	}
	return v
}

// noise spoils a text as people and programs do.
func (g *generator) noise(d doc) doc {
	var change func(string) string
	switch roll := g.rng.IntN(100); {
	case roll < 10:
		change = strings.ToLower
	case roll < 13:
		change = strings.ToUpper
	case roll < 17:
		change = plain
	case roll < 20:
		change = func(s string) string { return strings.ReplaceAll(s, ", ", " ") }
	case roll < 22:
		change = func(s string) string { return strings.ReplaceAll(s, "\n", " ") }
	case roll < 24:
		change = func(s string) string { return strings.ReplaceAll(s, " ", "  ") }
	default:
		return d
	}
	out := doc{lang: d.lang}
	for _, p := range d.parts {
		if p.label == pii.Password || p.label == pii.APIKey || p.label == pii.AuthToken {
			out.parts = append(out.parts, p)
			continue
		}
		out.parts = append(out.parts, part{change(p.text), p.label})
	}
	return out
}

// plain drops accents.
func plain(s string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		switch {
		case r >= 0x300 && r < 0x370:
			return -1
		case r == 'ł':
			return 'l'
		case r == 'ø':
			return 'o'
		}
		return r
	}, norm.NFD.String(s)))
}
