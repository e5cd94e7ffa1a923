package main

import (
	"bufio"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"weir/pii"
	"weir/pii/eval"
)

// unseenSources are kept from training whole.
var unseenSources = map[string]bool{"ambientmeta": true, "uner_de_pud": true}

// labelled is a document of the labelled data.
type labelled struct{ eval.Doc }

// divide keeps one document in five from training, with all that share its
// template, and whole sources.
func divide(docs []eval.Doc) (seen, unseen []labelled) {
	for _, d := range docs {
		h := fnv.New32a()
		h.Write([]byte(d.Source + "/" + group(d)))
		if unseenSources[d.Source] || h.Sum32()%5 == 0 {
			unseen = append(unseen, labelled{d})
		} else {
			seen = append(seen, labelled{d})
		}
	}
	return seen, unseen
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

func writeHeld(dir string, docs []labelled, cov eval.Coverage) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b, err := json.Marshal(cov)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "coverage.json"), b, 0o644); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "held.jsonl"))
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
