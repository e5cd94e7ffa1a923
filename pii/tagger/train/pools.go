package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"weir/pii"
	"weir/pii/tagger/internal/feature"
)

// pool holds what names and places look like in one language.
type pool struct {
	first, last, full, city, street, suffix, legal, orgs []string
}

// pools holds all languages; any mixes names from everywhere.
type pools struct {
	byLang map[string]*pool
	any    []*pool
	listed pool // from the word lists
	places []string
}

// locales says which lists belong to a language.
var locales = map[string]struct{ faker, countries []string }{
	"en": {[]string{"en", "en_US", "en_GB", "en_IN", "en_CA", "en_AU", "en_ZA", "en_NG"}, []string{"US", "GB", "CA", "AU", "NZ", "IE", "IN", "PH", "JM"}},
	"de": {[]string{"de", "de_AT", "de_CH"}, []string{"DE", "AT", "CH", "LI"}},
	"fr": {[]string{"fr", "fr_BE", "fr_CH"}, []string{"FR", "LU", "MC"}},
	"es": {[]string{"es", "es_MX"}, []string{"ES", "MX", "AR", "CL", "CO", "PE", "VE"}},
	"it": {[]string{"it"}, []string{"IT", "SM"}},
	"pt": {[]string{"pt_BR", "pt_PT"}, []string{"BR", "PT"}},
	"nl": {[]string{"nl", "nl_BE"}, []string{"NL", "BE"}},
	"pl": {[]string{"pl"}, []string{"PL"}},
	"el": {[]string{"el"}, []string{"GR", "CY"}},
	"sv": {[]string{"sv"}, []string{"SE"}},
	"da": {[]string{"da", "nb_NO"}, []string{"DK", "NO"}},
	"ja": {[]string{"ja"}, []string{"JP"}},
	"ko": {[]string{"ko"}, []string{"KR"}},
	"zh": {[]string{"zh_CN"}, []string{"CN"}},
	// In traditional characters.
	"zh_TW": {[]string{"zh_TW"}, []string{"TW"}},
	"ar":    {[]string{"ar"}, nil},
	"ru":    {[]string{"ru"}, nil},
}

// others are locales that only lend names to other languages.
var others = []string{"fi", "cs_CZ", "sk", "hu", "ro", "hr", "sr_RS_latin", "lv", "tr", "vi", "id_ID", "az", "af_ZA", "uk", "mk", "he", "fa"}

type fakerLocale struct {
	First  []string `json:"first"`
	Last   []string `json:"last"`
	City   []string `json:"city"`
	Street []string `json:"street"`
	Suffix []string `json:"streetSuffix"`
	Legal  []string `json:"legal"`
	State  []string `json:"state"`
	Full   []string `json:"full"`
	Org    []string `json:"org"`
	Common []string `json:"common"`
}

func readPools(o options, lists map[string]uint8, seen []labelled) (*pools, error) {
	faker, err := readLocales(o.locales)
	if err != nil {
		return nil, err
	}
	east, err := readLocales(o.east)
	if err != nil {
		return nil, err
	}
	first, err := columns(o.forenames)
	if err != nil {
		return nil, err
	}
	last, err := columns(o.surnames)
	if err != nil {
		return nil, err
	}
	p := &pools{byLang: map[string]*pool{}}
	for _, lang := range sortedKeys(locales) {
		src, q := locales[lang], &pool{}
		for _, name := range src.faker {
			q.join(faker[name])
			q.join(east[name])
		}
		for _, c := range src.countries {
			q.first = append(q.first, native(lang, first[c])...)
			q.last = append(q.last, native(lang, last[c])...)
		}
		if lang == "en" || lang == "nl" || lang == "pt" || lang == "sv" || lang == "da" {
			q.city = append(q.city, q.last[:min(len(q.last), 40)]...)
		}
		p.byLang[lang] = q
		p.any = append(p.any, q)
	}
	for _, name := range others {
		q := &pool{}
		q.join(faker[name])
		p.any = append(p.any, q)
	}
	for _, c := range sortedKeys(first) {
		p.listed.first = append(p.listed.first, native("en", first[c])...)
		p.listed.last = append(p.listed.last, native("en", last[c])...)
	}
	for _, w := range sortedKeys(lists) {
		flags := lists[w]
		if strings.IndexFunc(w, func(r rune) bool { return !unicode.Is(unicode.Latin, r) }) >= 0 {
			continue
		}
		if flags&feature.ListName != 0 && flags&feature.ListCommon == 0 {
			// Most are names of families.
			p.listed.last = append(p.listed.last, title(w))
		}
		if flags&feature.ListForename != 0 {
			p.listed.first = append(p.listed.first, title(w))
		}
		if flags&feature.ListSurname != 0 {
			p.listed.last = append(p.listed.last, title(w))
		}
	}
	p.harvest(seen)
	return p, p.readPlaces(o.places)
}

func readLocales(name string) (map[string]fakerLocale, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var faker map[string]fakerLocale
	if err := json.Unmarshal(b, &faker, json.RejectUnknownMembers(false)); err != nil {
		return nil, fmt.Errorf("read locales: %w", err)
	}
	return faker, nil
}

// poolOf is where the names of a labelled document's language are: Chinese ones
// are in traditional characters.
func poolOf(lang string) string {
	if lang == "zh" {
		return "zh_TW"
	}
	return lang
}

func (q *pool) join(f fakerLocale) {
	q.first = append(q.first, f.First...)
	q.last = append(q.last, f.Last...)
	q.city = append(append(q.city, f.City...), f.State...)
	q.street = append(q.street, f.Street...)
	q.suffix = append(q.suffix, f.Suffix...)
	q.legal = append(q.legal, f.Legal...)
	q.full = append(q.full, f.Full...)
	q.orgs = append(q.orgs, f.Org...)
}

// harvest takes places and organizations from the labelled documents.
func (p *pools) harvest(seen []labelled) {
	for _, d := range seen {
		q := p.byLang[poolOf(d.Lang)]
		if q == nil || strings.HasPrefix(d.Source, "europeana") {
			continue
		}
		for _, sp := range d.Spans {
			v := d.Text[sp.Start:sp.End]
			if strings.ContainsAny(v, "\n@#/0123456789") || len(v) < 4 || len(v) > 60 {
				continue
			}
			switch sp.Label {
			case pii.Location:
				q.city = append(q.city, v)
			case pii.Organization:
				q.orgs = append(q.orgs, v)
			case pii.PersonName:
				if d.Source == "lifebench" {
					continue
				}
				if w := strings.Fields(v); len(w) == 2 && d.Lang != "ja" && d.Lang != "zh" {
					q.last = append(q.last, w[1])
				}
			}
		}
	}
}

func (p *pools) readPlaces(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var list []struct {
		Code string `json:"code"`
		Name string `json:"name"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("read places: %w", err)
	}
	country := map[string]string{
		"US": "en", "GB": "en", "AU": "en", "CA": "en", "DE": "de", "AT": "de", "CH": "de", "FR": "fr", "BE": "fr", "ES": "es", "MX": "es", "AR": "es", "CO": "es",
		"IT": "it", "BR": "pt", "PT": "pt", "NL": "nl", "PL": "pl", "SE": "sv", "DK": "da",
	}
	for _, e := range list {
		p.places = append(p.places, e.Name)
		if lang := country[e.Code[:2]]; lang != "" {
			p.byLang[lang].city = append(p.byLang[lang].city, e.Name)
		}
	}
	return nil
}

// columns reads the names of each country, in local and in Latin script.
func columns(name string) (map[string][]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	head, err := r.Read()
	if err != nil {
		return nil, err
	}
	local, roman := slices.Index(head, "Localized Name"), slices.Index(head, "Romanized Name")
	if local < 0 || roman < 0 {
		return nil, errors.New("name list without the expected columns")
	}
	out := map[string][]string{}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		for _, i := range [...]int{local, roman} {
			if v := strings.TrimSpace(row[i]); len(v) > 1 && !strings.ContainsAny(v, "/(,") {
				out[row[0]] = append(out[row[0]], v)
			}
		}
	}
}

// native keeps the names in the script of a language.
func native(lang string, names []string) []string {
	table := unicode.Latin
	switch lang {
	case "el":
		table = unicode.Greek
	case "ja", "zh", "zh_TW":
		table = unicode.Han
	case "ko":
		table = unicode.Hangul
	}
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		for _, r := range n {
			return !unicode.Is(table, r)
		}
		return true
	})
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func title(w string) string {
	r := []rune(w)
	return string(unicode.ToUpper(r[0])) + string(r[1:])
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }
