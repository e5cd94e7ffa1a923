package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/config"
	"weir/pii"
	"weir/pii/custom"
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
func (c piiEvalCommand) Run(ctx context.Context, io streams, root *cli) error {
	cfg, err := loadConfig(root.Config)
	if err != nil {
		return err
	}
	parts, own, err := classifiers(cfg, c.Only)
	if err != nil {
		return err
	}
	docs, cov, err := eval.Read(c.Path)
	if err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	opts := eval.Options{Coarse: c.Coarse}
	for _, l := range c.Label {
		if _, ok := pii.Lookup(pii.Label(l)); !ok && !slices.Contains(own, pii.Label(l)) {
			return hinted{fmt.Errorf("no label %q", l), "weir pii rules lists the labels"}
		}
		opts.Labels = append(opts.Labels, pii.Label(l))
	}
	report, err := eval.Run(ctx, pii.NewScanner(pii.ScannerOptions{CacheBytes: -1, Labels: own}, parts...), docs, cov, opts)
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
	ID         string `arg:"" optional:"" help:"Explain this one, with its examples."`
	Validators bool   `help:"List what recognizers of your own may name as validator."`
	JSON       bool   `help:"Print JSON."`
}

// ruleListing is a recognizer as the command prints it.
type ruleListing struct {
	ID    string    `json:"id"`
	Label pii.Label `json:"label"`
	Text  string    `json:"text"`
	Own   bool      `json:"own,omitzero"`
	How   []string  `json:"how,omitzero"`
	Yes   []string  `json:"finds,omitzero"`
	No    []string  `json:"leaves,omitzero"`
}

// Run lists the recognizers, the user's own ones last.
func (c piiRulesCommand) Run(io streams, root *cli) error {
	if c.Validators {
		if c.JSON {
			return printJSON(io, rules.Checks())
		}
		_, err := fmt.Fprintln(io.out, strings.Join(rules.Checks(), "\n"))
		return err
	}
	all, err := listRules(root)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(all, func(r ruleListing) bool { return c.ID != "" && c.ID != r.ID })
	if len(list) == 0 {
		return hinted{fmt.Errorf("no recognizer %q", c.ID), "weir pii rules lists them"}
	}
	if c.JSON {
		return printJSON(io, list)
	}
	t := tabwriter.NewWriter(io.out, 0, 4, 2, ' ', 0)
	for _, r := range list {
		text := r.Text
		if r.Own {
			text += " (yours)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.ID, r.Label, text)
	}
	if err := t.Flush(); err != nil || c.ID == "" {
		return err
	}
	for _, x := range list[0].How {
		fmt.Fprintf(io.out, "how:    %s\n", x)
	}
	for _, x := range list[0].Yes {
		fmt.Fprintf(io.out, "finds:  %s\n", clip(x))
	}
	for _, x := range list[0].No {
		fmt.Fprintf(io.out, "leaves: %s\n", clip(x))
	}
	return nil
}

func listRules(root *cli) ([]ruleListing, error) {
	cfg, err := loadConfig(root.Config)
	if err != nil {
		return nil, err
	}
	set, err := rules.Default()
	if err != nil {
		return nil, fmt.Errorf("load recognizers: %w", err)
	}
	own, err := custom.Compile(cfg.Recognizers)
	if err != nil {
		return nil, fmt.Errorf("load the configuration's recognizers: %w", err)
	}
	if err := clash(set, own); err != nil {
		return nil, err
	}
	var list []ruleListing
	for _, r := range set.Rules() {
		list = append(list, ruleListing{ID: r.ID, Label: r.Label, Text: r.Text, Yes: r.Yes, No: r.No})
	}
	for _, r := range cfg.Recognizers {
		list = append(list, ruleListing{ID: r.ID, Label: pii.Label(r.Label), Text: r.Text, Own: true, How: how(r), Yes: r.Finds, No: r.Spares})
	}
	return list, nil
}

// how explains a recognizer of the user without repeating long lists.
func how(r custom.Recognizer) []string {
	var out []string
	if r.Pattern != "" {
		shown := r.Pattern
		if !strconv.CanBackquote(shown) {
			shown = clip(shown)
		}
		out = append(out, "pattern "+shown)
	}
	if n := len(r.Words); n > 0 {
		out = append(out, fmt.Sprintf("one of %d words or phrases", n))
	}
	if r.Validator != "" {
		out = append(out, "passes "+r.Validator)
	}
	if n := len(r.Context); n > 0 {
		out = append(out, fmt.Sprintf("near one of %d context words: score %v; else %v", n, r.Score, r.ScoreAlone))
	} else {
		out = append(out, fmt.Sprintf("score %v", r.Score))
	}
	return append(out, "a task masks it as "+pii.Stem(pii.Label(r.Label))+"_Q7K2M or the like, where the policy says mask")
}

func printJSON(io streams, v any) error {
	if err := json.MarshalWrite(io.out, v, jsontext.WithIndent("  "), json.Deterministic(true)); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := fmt.Fprintln(io.out)
	return err
}

// classifiers returns the parts of which a scanner is made, and the labels that
// they find beside the built-in ones. The user's recognizers run beside either.
func classifiers(cfg *config.Config, only string) ([]pii.Part, []pii.Label, error) {
	set, err := rules.Default()
	if err != nil {
		return nil, nil, fmt.Errorf("load recognizers: %w", err)
	}
	own, err := custom.Compile(cfg.Recognizers)
	if err != nil {
		return nil, nil, fmt.Errorf("load the configuration's recognizers: %w", err)
	}
	if err := clash(set, own); err != nil {
		return nil, nil, err
	}
	var parts []pii.Part
	switch only {
	case "rules":
		parts = append(parts, pii.Part{Name: "rules", Version: set.Version(), Classifier: set})
	default:
		learned, err := tagger.Load()
		if err != nil {
			return nil, nil, err
		}
		if only == "tagger" {
			parts = append(parts, pii.Part{Name: "tagger", Version: learned.Version(), Classifier: learned})
		} else {
			parts = append(parts, pii.Part{Name: "rules and tagger", Version: set.Version() + "-" + learned.Version(), Classifier: tagger.Join(set, learned)})
		}
	}
	if len(cfg.Recognizers) > 0 {
		parts = append(parts, pii.Part{Name: "the configuration's recognizers", Version: own.Version(), Classifier: own})
	}
	return parts, own.Labels(), nil
}

// clash says that a recognizer of the user has the name of a built-in one: an
// explanation must mean one of them.
func clash(set *rules.Set, own *custom.Set) error {
	for _, o := range own.Recognizers() {
		if slices.ContainsFunc(set.Rules(), func(r rules.Rule) bool { return r.ID == o.ID }) {
			return hinted{fmt.Errorf("recognizer %s has the id of a built-in one", o.ID), "give it another id; weir pii rules lists those that are taken"}
		}
	}
	return nil
}
