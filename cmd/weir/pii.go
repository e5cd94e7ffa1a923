package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/pii"
	"weir/pii/eval"
	"weir/pii/rules"
	"weir/pii/tagger"
)

type piiCommand struct {
	Eval    piiEvalCommand    `cmd:"" help:"Measure how well private values are found in labelled documents."`
	Compare piiCompareCommand `cmd:"" help:"Show what changed between two reports of eval --json."`
	Rules   piiRulesCommand   `cmd:"" help:"List and explain the recognizers."`
}

type piiEvalCommand struct {
	Path   string   `arg:"" help:"JSON lines of labelled documents, or a directory of such files."`
	JSON   bool     `help:"Print JSON."`
	Coarse bool     `help:"Fold the labels to nine categories."`
	Label  []string `help:"Score these labels only." placeholder:"LABEL"`
	Only   string   `help:"Run only this part: rules or tagger." enum:",rules,tagger" default:""`
}

// Run scans the documents without a cache, so that the speed is that of new text.
func (c piiEvalCommand) Run(ctx context.Context, io streams) error {
	docs, cov, err := eval.Read(c.Path)
	if err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	opts := eval.Options{Coarse: c.Coarse}
	for _, l := range c.Label {
		if _, ok := pii.Lookup(pii.Label(l)); !ok {
			return hinted{fmt.Errorf("no label %q", l), "weir pii rules lists the labels"}
		}
		opts.Labels = append(opts.Labels, pii.Label(l))
	}
	parts, err := classifiers(c.Only)
	if err != nil {
		return err
	}
	report, err := eval.Run(ctx, pii.NewScanner(pii.ScannerOptions{CacheBytes: -1}, parts...), docs, cov, opts)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(io, report)
	}
	return report.Print(io.out)
}

type piiCompareCommand struct {
	Old  string `arg:"" help:"The earlier report." type:"existingfile"`
	New  string `arg:"" help:"The later report." type:"existingfile"`
	JSON bool   `help:"Print JSON."`
}

// Run prints the rows that differ.
func (c piiCompareCommand) Run(io streams) error {
	var reports [2]eval.Report
	for i, name := range []string{c.Old, c.New} {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(b, &reports[i]); err != nil {
			return hinted{fmt.Errorf("read report %s: %w", name, err), "write it with weir pii eval --json"}
		}
	}
	if reports[0].Coarse != reports[1].Coarse {
		return errors.New("one report is folded to nine categories, the other is not")
	}
	changes := eval.Compare(&reports[0], &reports[1])
	if c.JSON {
		return printJSON(io, changes)
	}
	return eval.PrintChanges(io.out, changes)
}

type piiRulesCommand struct {
	ID   string `arg:"" optional:"" help:"Explain this one, with its examples."`
	JSON bool   `help:"Print JSON."`
}

// ruleListing is a recognizer as the command prints it.
type ruleListing struct {
	ID    string    `json:"id"`
	Label pii.Label `json:"label"`
	Text  string    `json:"text"`
	Yes   []string  `json:"finds,omitzero"`
	No    []string  `json:"leaves,omitzero"`
}

// Run lists the recognizers.
func (c piiRulesCommand) Run(io streams) error {
	set, err := rules.Default()
	if err != nil {
		return fmt.Errorf("load recognizers: %w", err)
	}
	var list []ruleListing
	for _, r := range set.Rules() {
		if c.ID == "" || c.ID == r.ID {
			list = append(list, ruleListing(r))
		}
	}
	if len(list) == 0 {
		return hinted{fmt.Errorf("no recognizer %q", c.ID), "weir pii rules lists them"}
	}
	if c.JSON {
		return printJSON(io, list)
	}
	t := tabwriter.NewWriter(io.out, 0, 4, 2, ' ', 0)
	for _, r := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.ID, r.Label, r.Text)
	}
	if err := t.Flush(); err != nil || c.ID == "" {
		return err
	}
	for _, x := range list[0].Yes {
		fmt.Fprintf(io.out, "finds:  %s\n", clip(x))
	}
	for _, x := range list[0].No {
		fmt.Fprintf(io.out, "leaves: %s\n", clip(x))
	}
	return nil
}

func printJSON(io streams, v any) error {
	if err := json.MarshalWrite(io.out, v, jsontext.WithIndent("  "), json.Deterministic(true)); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := fmt.Fprintln(io.out)
	return err
}

// classifiers returns the parts of which a scanner is made.
func classifiers(only string) ([]pii.Part, error) {
	set, err := rules.Default()
	if err != nil {
		return nil, fmt.Errorf("load recognizers: %w", err)
	}
	if only == "rules" {
		return []pii.Part{{Name: "rules", Version: set.Version(), Classifier: set}}, nil
	}
	learned, err := tagger.Load()
	if err != nil {
		return nil, err
	}
	if only == "tagger" {
		return []pii.Part{{Name: "tagger", Version: learned.Version(), Classifier: learned}}, nil
	}
	return []pii.Part{{Name: "rules and tagger", Version: set.Version() + "-" + learned.Version(), Classifier: tagger.Join(set, learned)}}, nil
}
