// Command train makes the data from which the tagger is trained.
//
// It reads labelled documents, name and place lists, text without anything
// private and text without labels; generates labelled text from the templates
// beside it; divides the labelled documents into a part to train on, one to tune
// on and one to report from; and writes feature rows and tags in binary, which
// train.py trains on. The part to report from is in none of them. See README.md
// for the whole recipe.
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"

	"weir/pii"
	"weir/pii/eval"
	"weir/pii/tagger/internal/feature"
)

func main() {
	var o options
	flag.StringVar(&o.dev, "dev", "", "directory of labelled documents, with coverage.json")
	flag.StringVar(&o.forenames, "forenames", "", "common-forenames-by-country.csv")
	flag.StringVar(&o.surnames, "surnames", "", "common-surnames-by-country.csv")
	flag.StringVar(&o.names, "names", "", "names of persons, one a line")
	flag.StringVar(&o.places, "places", "", "admin1.json")
	flag.StringVar(&o.towns, "towns", "", "admin2.json.gz")
	flag.StringVar(&o.locales, "locales", "", "names and places by locale, as locales.mjs writes them")
	flag.StringVar(&o.east, "east", "", "words of Chinese and Japanese, as east.mjs writes them")
	flag.StringVar(&o.scowl, "scowl", "", "directory of SCOWL's word lists")
	flag.StringVar(&o.clean, "clean", "", "JSON lines of text without anything private, as clean.py writes them")
	flag.StringVar(&o.plain, "plain", "", "JSON lines of text without labels, as plain.py writes them")
	flag.StringVar(&o.silver, "silver", "", "labelled documents of text that labels itself, as silver.py writes them")
	flag.StringVar(&o.words, "words", "", "word lists, as of package rules")
	flag.StringVar(&o.out, "out", "", "directory to write to")
	flag.StringVar(&o.parts, "parts", "", "directory to write the documents to that are not trained on")
	flag.IntVar(&o.n, "n", 100_000, "documents to generate")
	flag.Uint64Var(&o.seed, "seed", 1, "seed")
	flag.Parse()
	if err := run(o); err != nil {
		log.Fatal(err)
	}
}

type options struct {
	dev, forenames, surnames, names, places, towns, locales, east, scowl, clean, plain, silver, words, out, parts string
	n                                                                                                             int
	seed                                                                                                          uint64
}

func run(o options) error {
	docs, cov, err := eval.Read(o.dev)
	if err != nil {
		return fmt.Errorf("read labelled documents: %w", err)
	}
	clean, err := readText(o.clean)
	if err != nil {
		return err
	}
	plain, err := readText(o.plain)
	if err != nil {
		return err
	}
	silver, err := readSilver(o.silver, cov)
	if err != nil {
		return err
	}
	sides := divide(docs)
	clean = divideClean(clean, &sides)
	if err := sides.write(o.parts, cov); err != nil {
		return err
	}
	lists, err := wordLists(o, append(clean, plain...))
	if err != nil {
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
	p, err := readPools(o, lists, append(silver, sides[train]...))
	if err != nil {
		return err
	}
	g, err := newGenerator(p, clean, rand.New(rand.NewPCG(o.seed, 1)))
	if err != nil {
		return err
	}
	w := newShards(feature.NewExtractor(table), cov)
	for _, d := range sides[train] {
		w.add(d.doc(), d.Source, kindGold)
		for range copies(d.Source) {
			w.add(g.noise(g.swap(d.doc())), d.Source, kindSwap)
		}
	}
	for _, d := range silver {
		w.add(d.doc(), d.Source, kindOwn)
		w.add(g.noise(g.swap(d.doc())), d.Source, kindOwn)
	}
	for range o.n {
		w.add(g.document(), "own", kindOwn)
	}
	for _, c := range clean {
		w.add(g.noise(c.doc()), "own", kindClean)
	}
	for _, d := range sides[tune] {
		w.add(d.doc(), d.Source, kindTune)
	}
	for _, t := range plain {
		w.add(t.doc(), "own", kindPlain)
	}
	return w.write(o.out)
}

// readSilver reads documents of which only names, places and organizations are
// labelled, and enters this into the coverage.
func readSilver(name string, cov eval.Coverage) ([]labelled, error) {
	if name == "" {
		return nil, nil
	}
	docs, _, err := eval.Read(name)
	if err != nil {
		return nil, fmt.Errorf("read text that labels itself: %w", err)
	}
	var out []labelled
	for _, d := range docs {
		cov[d.Source] = []pii.Label{pii.PersonName, pii.Location, pii.Organization}
		out = append(out, labelled{d})
	}
	return out, nil
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
