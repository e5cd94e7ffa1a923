package main

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"weir/pii"
	"weir/pii/eval"
)

// The sides of the division.
const (
	train  = iota
	tune   // chooses thresholds, steps and trainings
	report // gives the figures of the card, and decides nothing
	numSides
)

var sideNames = [numSides]string{"train", "tune", "report"}

// sides are the labelled documents of each side.
type sides [numSides][]labelled

// labelled is a document of the labelled data.
type labelled struct{ eval.Doc }

// divide gives one document in ten to the side that tunes and one to the side
// that reports, each with all that share its template. Of two sources nothing is
// trained on: one is only reported from, the other tunes with a half.
func divide(docs []eval.Doc) sides {
	var out sides
	for _, d := range docs {
		n := hash(d.Source+"/"+group(d)) % 10
		side := train
		switch {
		case d.Source == "uner_de_pud", d.Source == "ambientmeta" && n%2 == 1, n == 1:
			side = report
		case d.Source == "ambientmeta", n == 0:
			side = tune
		}
		out[side] = append(out[side], labelled{d})
	}
	return out
}

// divideClean does the same with text without anything private, and returns what
// is trained on.
func divideClean(clean []text, out *sides) []text {
	var rest []text
	for i, t := range clean {
		side := train
		switch hash(t.Text) % 10 {
		case 0:
			side = tune
		case 1:
			side = report
		default:
			rest = append(rest, t)
			continue
		}
		out[side] = append(out[side], labelled{eval.Doc{ID: fmt.Sprintf("clean-%d", i), Text: t.Text, Source: "clean", Lang: t.Lang}})
	}
	return rest
}

func hash(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32()
}

// group names what documents have in common that were made from one another.
func group(d eval.Doc) string {
	switch d.Source {
	case "weir_synth": // weir_synth-dev-TEMPLATE-N
		if f := strings.Split(d.ID, "-"); len(f) == 4 {
			return f[2]
		}
	case "pl_pii_bench": // the kind of document, in all its variants
		_, kind, _ := strings.Cut(d.ID, "core-")
		kind = strings.TrimPrefix(kind, "core-")
		for _, cut := range [...]string{"-low", "-medium", "-high"} {
			kind, _, _ = strings.Cut(kind, cut)
		}
		return kind
	case "lifebench": // the persona
		_, rest, _ := strings.Cut(d.ID, "-")
		persona, _, _ := strings.Cut(rest, "_")
		return persona
	}
	// The text with its spans left out, and with its digits alike.
	var b strings.Builder
	at := 0
	for _, sp := range d.Spans {
		b.WriteString(d.Text[at:sp.Start])
		b.WriteString("<" + string(sp.Label) + ">")
		at = sp.End
	}
	b.WriteString(d.Text[at:])
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, b.String())
}

// part is a piece of a text, with the label it has. The label "?" marks a piece
// that is not to be learned either way.
type part struct {
	text  string
	label pii.Label
}

const unsure pii.Label = "?"

// doc is a text in parts.
type doc struct {
	lang  string
	parts []part
}

func (d labelled) doc() doc {
	out := doc{lang: d.Lang}
	at := 0
	for _, sp := range d.Spans {
		if sp.Start > at {
			out.parts = append(out.parts, part{text: d.Text[at:sp.Start]})
		}
		label := sp.Label
		if label == "" || handle(d.Text, sp) {
			label = unsure
		}
		out.parts = append(out.parts, part{d.Text[sp.Start:sp.End], label})
		at = sp.End
	}
	if at < len(d.Text) {
		out.parts = append(out.parts, part{text: d.Text[at:]})
	}
	return out
}

// handle reports an account name that is annotated as what it stands for, as
// some sources of short messages do in part. Where a blank follows the sign, the
// annotation is kept: nobody writes account names so.
func handle(text string, sp eval.Span) bool {
	return sp.End-sp.Start > 1 && text[sp.Start] == '@' || sp.Start > 0 && text[sp.Start-1] == '@'
}

// write writes the documents that are not trained on, a folder for each side.
func (s *sides) write(dir string, cov eval.Coverage) error {
	b, err := json.Marshal(cov)
	if err != nil {
		return err
	}
	for _, side := range [...]int{tune, report} {
		if err := writeDocs(filepath.Join(dir, sideNames[side]), s[side], b); err != nil {
			return err
		}
	}
	return nil
}

func writeDocs(dir string, docs []labelled, cov []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "coverage.json"), cov, 0o644); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "docs.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for _, d := range docs {
		if err := json.MarshalWrite(w, d.Doc); err != nil {
			return err
		}
		if err := w.WriteByte('\n'); err != nil {
			return err
		}
	}
	return w.Flush()
}
