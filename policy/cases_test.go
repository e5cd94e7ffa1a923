package policy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/policy"
)

// decisionCase is an entry of testdata/cases.
type decisionCase struct {
	Note  string         `json:"note"`
	Data  jsontext.Value `json:"data"`
	Input caseInput      `json:"input"`
	Want  outcome        `json:"want"`
}

// outcome is what a case says of a decision: all but the reasons.
type outcome struct {
	Action   policy.Action `json:"action"`
	Rule     string        `json:"rule"`
	Findings [][]string    `json:"findings"`
	Opaque   [][]string    `json:"opaque"`
	Ask      *policy.Ask   `json:"ask"`
}

func outcomeOf(d policy.Decision) outcome {
	o := outcome{Action: d.Action, Rule: d.Rule, Ask: d.Ask}
	for _, f := range d.Findings {
		part := []string{string(f.Action), f.Rule}
		if f.Style != "" {
			part = append(part, f.Style)
		}
		o.Findings = append(o.Findings, part)
	}
	for _, p := range d.Opaque {
		o.Opaque = append(o.Opaque, []string{string(p.Action), p.Rule})
	}
	return o
}

// caseInput reads as an input that says only what is not plain.
type caseInput struct{ policy.Input }

func (in *caseInput) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var raw struct {
		Step        jsontext.Value   `json:"step"`
		Destination jsontext.Value   `json:"destination"`
		Caller      jsontext.Value   `json:"caller"`
		Task        jsontext.Value   `json:"task"`
		Sensitivity jsontext.Value   `json:"sensitivity"`
		Findings    []jsontext.Value `json:"findings"`
		Opaque      []jsontext.Value `json:"opaque"`
	}
	if err := json.UnmarshalDecode(dec, &raw); err != nil {
		return err
	}
	in.Input = request()
	over := func(v jsontext.Value, dst any) error {
		if v == nil {
			return nil
		}
		return json.Unmarshal(v, dst, json.RejectUnknownMembers(true))
	}
	for _, f := range raw.Findings {
		in.Findings = append(in.Findings, finding("", "user"))
		if err := over(f, &in.Findings[len(in.Findings)-1]); err != nil {
			return err
		}
	}
	for _, o := range raw.Opaque {
		in.Opaque = append(in.Opaque, policy.Opaque{Source: "user", Count: 1})
		if err := over(o, &in.Opaque[len(in.Opaque)-1]); err != nil {
			return err
		}
	}
	for dst, v := range map[any]jsontext.Value{
		&in.Step: raw.Step, &in.Destination: raw.Destination, &in.Caller: raw.Caller, &in.Task: raw.Task,
		&in.Sensitivity: raw.Sensitivity,
	} {
		if err := over(v, dst); err != nil {
			return err
		}
	}
	return nil
}

func readCases(t *testing.T) []decisionCase {
	t.Helper()
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var out []decisionCase
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var cases []decisionCase
		if err := json.Unmarshal(raw, &cases, json.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, cases...)
	}
	return out
}

func TestCases(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range readCases(t) {
		if c.Note == "" || seen[c.Note] {
			t.Errorf("note %q is empty or not unique", c.Note)
		}
		seen[c.Note] = true
		if c.Input.Version == 0 {
			c.Input.Input = request()
		}
		t.Run(c.Note, func(t *testing.T) {
			t.Parallel()
			p := load(t, policy.Options{Data: c.Data})
			d, err := p.Decide(t.Context(), c.Input.Input)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.Want, outcomeOf(d), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if d.PolicyVersion != p.Version() || d.Version != policy.DecisionVersion {
				t.Errorf("versions are %d and %q", d.Version, d.PolicyVersion)
			}
		})
	}
}
