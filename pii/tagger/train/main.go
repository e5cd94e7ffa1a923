// Command train makes the data from which the tagger is trained.
//
// It reads labelled documents, name and place lists, and text without anything
// private; generates labelled text from the templates beside it; divides the
// labelled documents into a part to train on and one that training never sees;
// and writes feature rows and tags in binary, which train.py trains on. See
// README.md for the whole recipe.
package main

import (
	"bufio"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"weir/pii/eval"
	"weir/pii/tagger/internal/feature"
)

func main() {
	var o options
	flag.StringVar(&o.dev, "dev", "", "directory of labelled documents, with coverage.json")
	flag.StringVar(&o.forenames, "forenames", "", "common-forenames-by-country.csv")
	flag.StringVar(&o.surnames, "surnames", "", "common-surnames-by-country.csv")
	flag.StringVar(&o.places, "places", "", "admin1.json")
	flag.StringVar(&o.towns, "towns", "", "admin2.json.gz")
	flag.StringVar(&o.locales, "locales", "", "names and places by locale, as locales.mjs writes them")
	flag.StringVar(&o.clean, "clean", "", "JSON lines of text without anything private")
	flag.StringVar(&o.words, "words", "", "word lists, as of package rules")
	flag.StringVar(&o.out, "out", "", "directory to write to")
	flag.StringVar(&o.held, "held", "", "directory to write the documents to that training does not see")
	flag.IntVar(&o.n, "n", 100_000, "documents to generate")
	flag.Uint64Var(&o.seed, "seed", 1, "seed")
	flag.Parse()
	if err := run(o); err != nil {
		log.Fatal(err)
	}
}

type options struct {
	dev, forenames, surnames, places, towns, locales, clean, words, out, held string
	n                                                                         int
	seed                                                                      uint64
}

func run(o options) error {
	docs, cov, err := eval.Read(o.dev)
	if err != nil {
		return fmt.Errorf("read labelled documents: %w", err)
	}
	seen, unseen := divide(docs)
	if err := writeHeld(o.held, unseen, cov); err != nil {
		return err
	}
	lists, err := readWords(o.words)
	if err != nil {
		return err
	}
	if err := moreWords(o, lists); err != nil {
		return err
	}
	packed := feature.PackLists(lists)
	if err := os.WriteFile(o.out+"/lists.bin", packed, 0o644); err != nil {
		return err
	}
	table, err := feature.ReadLists(packed)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(o.seed, 1))
	p, err := readPools(o, lists, seen)
	if err != nil {
		return err
	}
	clean, err := readClean(o.clean)
	if err != nil {
		return err
	}
	g, err := newGenerator(p, clean, rng)
	if err != nil {
		return err
	}
	w := newShards(feature.NewExtractor(table), cov)
	for _, d := range seen {
		w.add(d.doc(), d.Source, kindGold)
		for range copies(d.Source) {
			w.add(g.noise(g.swap(d.doc())), d.Source, kindSwap)
		}
	}
	for range o.n {
		w.add(g.document(), "own", kindOwn)
	}
	for _, c := range clean {
		w.add(g.noise(c), "own", kindClean)
	}
	for _, d := range unseen {
		w.add(d.doc(), d.Source, kindHeld)
	}
	return w.write(o.out)
}

// copies is how often a document of a source is repeated with other names.
func copies(source string) int {
	switch source {
	case "credsweeper", "noseyparker":
		return 0
	case "meddocan", "europeana_fr", "europeana_nl":
		return 1
	case "ellin_greek", "pl_pii_bench", "weir_synth", "lifebench":
		return 4
	}
	return 5
}

func readWords(name string) (map[string]uint8, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	words := map[string]uint8{}
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		w, letters, _ := strings.Cut(lines.Text(), "\t")
		for _, c := range letters {
			switch c {
			case 'f':
				words[w] |= feature.ListForename
			case 's':
				words[w] |= feature.ListSurname
			case 'c':
				words[w] |= feature.ListCommon
			case 'p':
				words[w] |= feature.ListPlace
			}
		}
	}
	return words, lines.Err()
}

// moreWords adds names and places of all locales to the lists.
func moreWords(o options, words map[string]uint8) error {
	faker, err := readLocales(o.locales)
	if err != nil {
		return err
	}
	add := func(names []string, flag uint8) {
		for _, n := range names {
			if len(n) > 2 && strings.IndexFunc(n, func(r rune) bool { return !unicode.IsLetter(r) }) < 0 {
				words[strings.ToLower(n)] |= flag
			}
		}
	}
	for _, f := range faker {
		add(f.First, feature.ListForename)
		add(f.Last, feature.ListSurname)
		add(f.City, feature.ListPlace)
		add(f.State, feature.ListPlace)
	}
	f, err := os.Open(o.towns)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	var towns []struct {
		Name string `json:"name"`
	}
	if err := json.UnmarshalRead(z, &towns); err != nil {
		return fmt.Errorf("read towns: %w", err)
	}
	for _, t := range towns {
		add([]string{t.Name}, feature.ListPlace)
	}
	return nil
}

func readClean(name string) ([]doc, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []doc
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var c struct {
			Text string `json:"text"`
			Lang string `json:"lang"`
		}
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		out = append(out, doc{lang: c.Lang, parts: []part{{text: c.Text}}})
	}
}
