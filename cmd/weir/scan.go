package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"weir/internal/config"
	"weir/internal/gate"
	"weir/internal/wire"
	"weir/pii"
	"weir/policy"
)

type scanCommand struct {
	File   string `arg:"" help:"File to scan, or - for standard input. A JSON file is scanned string by string."`
	JSON   bool   `help:"Print JSON."`
	Values bool   `help:"Show the values, not only where they are."`
}

// scanFinding is a finding in a file. Offsets are bytes of the text that Pointer
// names, or of the file if it is empty.
type scanFinding struct {
	Pointer string        `json:"pointer,omitzero"`
	Line    int           `json:"line,omitzero"`
	Start   int           `json:"start"`
	End     int           `json:"end"`
	Label   string        `json:"label"`
	Score   float64       `json:"score"`
	By      string        `json:"recognizer"`
	Action  policy.Action `json:"action"`
	Rule    string        `json:"rule"`
	Reason  string        `json:"reason"`
	Value   string        `json:"value,omitzero"`
	direct  bool
}

type scanResult struct {
	Action policy.Action `json:"action"`
	Rule   string        `json:"rule"`
	Reason string        `json:"reason"`
	// Sensitivity is that of all findings together.
	Sensitivity scanSensitivity `json:"sensitivity"`
	Findings    []scanFinding   `json:"findings"`
}

type scanSensitivity struct {
	Score   float64   `json:"score"`
	Class   pii.Class `json:"class"`
	Because []string  `json:"because"`
}

// maxScanBytes bounds the file that is scanned.
const maxScanBytes = 256 << 20

// Run scans and reports; its exit code tells scripts how strict the verdict is.
func (c scanCommand) Run(ctx context.Context, io streams, root *cli) error {
	cfg, err := loadConfig(root.Config)
	if err != nil {
		return err
	}
	data, err := c.read(io.in)
	if err != nil {
		return err
	}
	if bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		fmt.Fprintln(io.err, "this is not text: a file like it cannot be examined, and stays on this machine by default")
		return exitCode(exitBlocked)
	}
	res, err := c.scan(ctx, cfg, data)
	if err != nil {
		return err
	}
	if c.JSON {
		err = json.MarshalWrite(io.out, res)
		fmt.Fprintln(io.out)
	} else {
		err = res.print(io.out, c.Values)
	}
	if err != nil {
		return err
	}
	switch res.Action {
	case policy.Allow:
		return nil
	case policy.Mask, policy.AskUser:
		return exitCode(exitFindings)
	case policy.KeepLocal, policy.Refuse:
	}
	return exitCode(exitBlocked)
}

func (c scanCommand) read(stdin io.Reader) ([]byte, error) {
	r := stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, maxScanBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	if len(data) > maxScanBytes {
		return nil, fmt.Errorf("input is larger than %d bytes", maxScanBytes)
	}
	return data, nil
}

func (c scanCommand) scan(ctx context.Context, cfg *config.Config, data []byte) (scanResult, error) {
	p := &parts{cfg: cfg}
	if err := p.openGate(ctx); err != nil {
		return scanResult{}, err
	}
	found, err := scanAll(ctx, p.scanner, data)
	if err != nil {
		return scanResult{}, fmt.Errorf("scan: %w", err)
	}
	values := pii.Values{}
	for _, f := range found {
		values.Add(pii.Label(f.Label), f.Value)
	}
	s := pii.Assess(values.Counts())
	in := policy.Input{
		Version: policy.InputVersion, Step: policy.Step{Kind: "turn", Mode: "cloud", Dialect: "scan"},
		Destination: policy.Destination{Kind: "cloud"}, Caller: policy.Caller{Key: "anonymous"},
		Sensitivity: policy.Sensitivity{Score: s.Score, Class: string(s.Class)},
	}
	fs := make([]policy.Finding, len(found))
	for i, f := range found {
		fs[i] = policy.Finding{
			Label: f.Label, Source: "user", Field: "content", Rule: f.By, Score: f.Score, Count: 1, Direct: f.direct, Maskable: true,
		}
	}
	var at []int
	in.Findings, at = policy.Aggregate(fs)
	dec, err := p.policy.Decide(ctx, in)
	if err != nil {
		return scanResult{}, fmt.Errorf("decide: %w", err)
	}
	res := scanResult{Action: dec.Action, Rule: dec.Rule, Reason: dec.Reason, Findings: found, Sensitivity: scanSensitivity{s.Score, s.Class, append([]string{}, s.Because...)}}
	for i := range found {
		v := dec.Findings[at[i]]
		found[i].Action, found[i].Rule, found[i].Reason = v.Action, v.Rule, v.Reason
		if !c.Values {
			found[i].Value = ""
		}
	}
	return res, nil
}

// scanAll scans a JSON document string by string, and anything else as text.
func scanAll(ctx context.Context, s *pii.Scanner, data []byte) ([]scanFinding, error) {
	out := []scanFinding{}
	trimmed := strings.TrimSpace(string(data))
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if d, err := wire.Parse(data, wire.Limits{}, nil); err == nil {
			private := map[string]bool{}
			var leaves []int
			for i, l := range d.Leaves() {
				spans, err := s.Scan(ctx, pii.Text{Value: l.Value, Key: gate.Context(l)})
				if err != nil {
					return nil, err
				}
				for _, sp := range spans {
					out, leaves = append(out, newScanFinding(sp, l.Value)), append(leaves, i)
					private[l.Value] = private[l.Value] || l.Kind == wire.Name
				}
			}
			for n, i := range leaves {
				out[n].Pointer = cmp.Or(d.PointerWithout(i, private), "/")
			}
			return out, nil
		}
	}
	text := string(data)
	spans, err := s.Scan(ctx, pii.Text{Value: text})
	if err != nil {
		return nil, err
	}
	line, at := 1, 0
	for _, sp := range spans {
		line += strings.Count(text[at:sp.Start], "\n")
		at = sp.Start
		f := newScanFinding(sp, text)
		f.Line = line
		out = append(out, f)
	}
	return out, nil
}

func newScanFinding(sp pii.Span, text string) scanFinding {
	known, _ := pii.Lookup(sp.Label)
	return scanFinding{
		Start: sp.Start, End: sp.End, Label: string(sp.Label), Score: sp.Score, By: sp.Rule, Value: text[sp.Start:sp.End], direct: known.Direct,
	}
}

func (r scanResult) print(w io.Writer, values bool) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, f := range r.Findings {
		where := fmt.Sprintf("line %d, bytes %d-%d", f.Line, f.Start, f.End)
		if f.Pointer != "" {
			where = fmt.Sprintf("%s, bytes %d-%d", f.Pointer, f.Start, f.End)
		}
		value := ""
		if values {
			value = "\t" + clip(f.Value)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s%s\n", f.Action, f.Label, where, f.By, value)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Sensitivity.Score > 0 {
		fmt.Fprintf(w, "sensitivity: %s, %.2f (%s)\n", r.Sensitivity.Class, r.Sensitivity.Score, strings.Join(r.Sensitivity.Because, ", "))
	}
	_, err := fmt.Fprintf(w, "verdict: %s (%s: %s)\n", r.Action, r.Rule, r.Reason)
	return err
}

// clip shortens a value for a table, and shows control characters escaped.
func clip(s string) string {
	const limit = 60
	if len(s) > limit {
		cut := limit
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	q := fmt.Sprintf("%q", s)
	return q[1 : len(q)-1]
}
