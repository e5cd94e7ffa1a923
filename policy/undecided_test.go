package policy_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"weir/policy"
)

// faulty is a whole policy that is sound until the model is called fault: then
// its decision is what body says.
func faulty(body string) policy.Options {
	return policy.Options{Dir: dir("gate.rego", strings.Replace(whole, "decision := object.union(", "sound := object.union(", 1)+`
decision := sound if input.step.model != "fault"

`+body)}
}

// faultyInput has one finding and one opaque part and makes faulty show it.
func faultyInput() policy.Input {
	in := request(finding("IBAN", "user"))
	in.Opaque = []policy.Opaque{{Kind: "image", Source: "user", Count: 1}}
	in.Step.Model = "fault"
	return in
}

func TestUndecided(t *testing.T) {
	t.Parallel()
	// edit is a decision that would be sound but for one edit by json.patch.
	edit := func(op, path, value string) string {
		return fmt.Sprintf("decision := json.patch(sound, [{\"op\": %q, \"path\": %q, \"value\": %s}]) if input.step.model == \"fault\"\n", op, path, value)
	}
	for _, c := range []struct{ name, body, text string }{
		{"undefined", "", "undefined"},
		{"two values at once", "decision := sound if input.step.model == \"fault\"\n\ndecision := 1 if input.step.model == \"fault\"\n", "eval_conflict_error at gate.rego"},
		{"a builtin fails", "decision := sound if {\n\tinput.step.model == \"fault\"\n\tto_number(input.step.model) == 1\n}\n", "eval_builtin_error at gate.rego"},
		{"not an object", "decision := true if input.step.model == \"fault\"\n", "wrong type"},
		{"null", "decision := null if input.step.model == \"fault\"\n", "wrong type"},
		{"a set for an array", edit("replace", "/findings", "{1}"), "wrong type"},
		{"an object for an array", edit("replace", "/findings", `{"0": {}}`), "wrong type"},
		{"no findings", edit("replace", "/findings", "null"), "wrong type"},
		{"no opaque", edit("replace", "/opaque", "null"), "wrong type"},
		{"another version", edit("replace", "/version", "2"), "version"},
		{"a version in quotes", edit("replace", "/version", `"1"`), "wrong type"},
		{"an unknown action", edit("replace", "/action", `"block"`), "action"},
		{"an action in capitals", edit("replace", "/action", `"ALLOW"`), "action"},
		{"no action", edit("replace", "/action", `""`), "action"},
		{"an unknown member", edit("add", "/allow", "true"), "unknown member"},
		{"a member in other case", edit("add", "/Action", `"allow"`), "unknown member"},
		{"a rule that is no word", edit("replace", "/rule", `"my rule"`), "rule"},
		{"no reason", edit("replace", "/reason", `""`), "reason"},
		{"a reason of two lines", edit("replace", "/reason", `"a\nb"`), "reason"},
		{"one finding too few", edit("replace", "/findings", "[]"), "one entry for each"},
		{"one finding too many", edit("add", "/findings/-", "object.union(part, {\"index\": 1})"), "one entry for each"},
		{"one opaque too few", edit("replace", "/opaque", "[]"), "one entry for each"},
		{"an entry for another finding", edit("replace", "/findings/0/index", "1"), "out of order"},
		{"an entry for no finding", edit("replace", "/findings/0/index", "-1"), "negative"},
		{"an entry for half a finding", edit("replace", "/findings/0/index", "0.5"), "wrong type"},
		{"an entry without index", edit("replace", "/findings/0", "part"), "index is missing"},
		{"an opaque entry without index", edit("replace", "/opaque/0", "part"), "index is missing"},
		{"an opaque entry out of order", edit("replace", "/opaque/0/index", "1"), "out of order"},
		{"an opaque entry for nothing", edit("replace", "/opaque/0/index", "-1"), "negative"},
		{"an unknown action for a finding", edit("replace", "/findings/0/action", `"drop"`), "action"},
		{"an unknown action for opaque content", edit("replace", "/opaque/0/action", `"drop"`), "action"},
		{"an image masked", edit("replace", "/opaque/0/action", `"mask"`), "cannot be masked"},
		{"a mask without style", edit("replace", "/findings/0/action", `"mask"`), "style"},
		{"a style without mask", edit("add", "/findings/0/style", `"surrogate"`), "style"},
		{"an unknown style", edit("replace", "/findings/0", `{"index": 0, "action": "mask", "style": "stars", "rule": "x", "reason": "x"}`), "style"},
		{"an unknown member of a finding", edit("add", "/findings/0/label", `"IBAN"`), "unknown member"},
		{"a question that nobody can put", edit("replace", "/action", `"ask_user"`), "saying how"},
		{"a question about a finding that nobody can put", edit("replace", "/findings/0/action", `"ask_user"`), "saying how"},
		{"a question without choices", edit("add", "/ask", `{"timeout_seconds": 1, "on_timeout": "refuse", "choices": []}`), "choices"},
		{"a question that answers itself with yes", edit("add", "/ask", `{"timeout_seconds": 1, "on_timeout": "allow", "choices": ["refuse"]}`), "on_timeout"},
		{"a question open for years", edit("add", "/ask", `{"timeout_seconds": 86401, "on_timeout": "refuse", "choices": ["refuse"]}`), "timeout_seconds"},
		{"a question open for no time", edit("add", "/ask", `{"on_timeout": "refuse", "choices": ["refuse"]}`), "timeout_seconds"},
		{"a choice to be asked again", edit("add", "/ask", `{"timeout_seconds": 1, "on_timeout": "refuse", "choices": ["ask_user"]}`), "choices"},
		{"a choice twice", edit("add", "/ask", `{"timeout_seconds": 1, "on_timeout": "refuse", "choices": ["refuse", "refuse"]}`), "choices"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := load(t, faulty(c.body))
			for range 2 { // a failure must not be remembered as a decision
				d, err := p.Decide(t.Context(), faultyInput())
				if !errors.Is(err, policy.ErrUndecided) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("error is %v", err)
				}
				if d.Action != "" || d.Findings != nil {
					t.Errorf("a decision came with the error: %+v", d)
				}
			}
			sound := faultyInput()
			sound.Step.Model = "auto"
			if d := decide(t, p, sound); d.Action != policy.Allow {
				t.Errorf("the same policy does not decide otherwise: %+v", d)
			}
		})
	}
}

func TestAMaskWhereNoneCanStandIsUndecided(t *testing.T) {
	t.Parallel()
	p := load(t, faulty(`decision := json.patch(sound, [{"op": "replace", "path": "/findings/0", "value": {
	"index": 0, "action": "mask", "style": "placeholder", "rule": "x", "reason": "x",
}}]) if input.step.model == "fault"`))
	in := faultyInput()
	if d := decide(t, p, in); d.Action != policy.Mask {
		t.Errorf("decision is %+v", d)
	}
	in.Findings[0].Maskable = false
	if _, err := p.Decide(t.Context(), in); !errors.Is(err, policy.ErrUndecided) {
		t.Errorf("error is %v", err)
	}
}

// A slip in a rule of the user's own must not make the rule count for nothing.
func TestAFaultyStepRuleIsUndecided(t *testing.T) {
	t.Parallel()
	for name, verdict := range map[string]string{
		"unknown action": `{"action": "block", "rule": "night", "reason": "night"}`,
		"no action":      `{"acton": "refuse", "rule": "night", "reason": "night"}`,
		"no rule":        `{"action": "refuse", "reason": "night"}`,
		"no reason":      `{"action": "refuse", "rule": "night"}`,
		"no object":      `"refuse"`,
	} {
		p := load(t, policy.Options{Dir: dir("night.rego",
			"package weir.gate\n\nstep_rules contains "+verdict+" if input.step.model == \"fault\"\n")})
		if _, err := p.Decide(t.Context(), faultyInput()); !errors.Is(err, policy.ErrUndecided) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestADecisionIsNeverLaxerThanItsParts(t *testing.T) {
	t.Parallel()
	// The model's name says what the policy is to say of the whole, of the
	// finding and of the opaque part. A question is always there.
	p := load(t, policy.Options{Dir: dir("gate.rego", `package weir.gate

said := split(input.step.model, "/")

decision := {
	"version": 1, "action": said[0], "rule": "whole", "reason": "whole",
	"findings": [object.union({"index": 0, "action": said[1], "rule": "finding", "reason": "finding"}, style)],
	"opaque": [{"index": 0, "action": said[2], "rule": "opaque", "reason": "opaque"}],
	"ask": {"timeout_seconds": 1, "on_timeout": "refuse", "choices": ["refuse"]},
	"policy_version": "mine",
} if count(said) == 3

decision := {"version": 1, "action": "allow", "rule": "open", "reason": "open", "findings": [], "opaque": []} if {
	count(input.findings) == 0
}

decision := {
	"version": 1, "action": "allow", "rule": "open", "reason": "open",
	"findings": [{"index": 0, "action": "allow", "rule": "open", "reason": "open"}],
	"opaque": [{"index": 0, "action": "allow", "rule": "open", "reason": "open"}],
} if {
	count(said) == 1
	count(input.findings) == 1
}

style := {"style": "surrogate"} if said[1] == "mask"

style := {} if said[1] != "mask"
`)})
	actions := []policy.Action{policy.Allow, policy.Mask, policy.AskUser, policy.KeepLocal, policy.Refuse}
	for _, whole := range actions {
		for _, finding := range actions {
			for _, opaque := range []policy.Action{policy.Allow, policy.AskUser, policy.KeepLocal, policy.Refuse} {
				in := faultyInput()
				in.Step.Model = fmt.Sprintf("%s/%s/%s", whole, finding, opaque)
				d := decide(t, p, in)
				want, rule := policy.Strictest(whole, policy.Strictest(finding, opaque)), "opaque"
				switch want { // of equal ones the whole comes first, then findings
				case whole:
					rule = "whole"
				case finding:
					rule = "finding"
				}
				if d.Action != want || d.Rule != rule || d.Reason != rule {
					t.Errorf("%s: %+v", in.Step.Model, d)
				}
				if (d.Ask != nil) != (want == policy.AskUser) {
					t.Errorf("%s: ask is %+v", in.Step.Model, d.Ask)
				}
				if d.PolicyVersion != p.Version() {
					t.Errorf("%s: version is %q", in.Step.Model, d.PolicyVersion)
				}
			}
		}
	}
}

// slow counts for as long as it is let.
const slow = `decision := sound if {
	input.step.model == "fault"
	n := numbers.range(1, 2000)
	count([1 | some a in n; some b in n; some c in n; a + b == c; a * b == c]) == 1
}
`

func TestATimeoutIsUndecided(t *testing.T) {
	t.Parallel()
	opts := faulty(slow)
	opts.Timeout = time.Second // enough for what is tried on loading
	p := load(t, opts)
	_, err := p.Decide(t.Context(), faultyInput())
	if !errors.Is(err, policy.ErrUndecided) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
}

func TestACallerThatGoesAwayEndsTheEvaluation(t *testing.T) {
	t.Parallel()
	opts := faulty(slow)
	opts.Timeout = time.Hour
	p := load(t, opts)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Decide(ctx, faultyInput()); !errors.Is(err, policy.ErrUndecided) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := p.Decide(ctx, request()); !errors.Is(err, policy.ErrUndecided) || !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestAnInputThatBreaksItsSchemaIsUndecided(t *testing.T) {
	t.Parallel()
	p := load(t, policy.Options{})
	long := strings.Repeat("x", 257)
	for name, edit := range map[string]func(in *policy.Input){
		"version":                func(in *policy.Input) { in.Version = 0 },
		"kind":                   func(in *policy.Input) { in.Step.Kind = "plan" },
		"mode":                   func(in *policy.Input) { in.Step.Mode = "" },
		"dialect":                func(in *policy.Input) { in.Step.Dialect = "soap" },
		"long model":             func(in *policy.Input) { in.Step.Model = long },
		"model that is no text":  func(in *policy.Input) { in.Step.Model = "\xff" },
		"long upstream":          func(in *policy.Input) { in.Destination.Upstream = long },
		"destination":            func(in *policy.Input) { in.Destination.Kind = "" },
		"no caller":              func(in *policy.Input) { in.Caller.Key = "" },
		"step answer":            func(in *policy.Input) { in.Task.Answer = policy.AskUser },
		"no label":               func(in *policy.Input) { in.Findings[0].Label = "" },
		"label in other case":    func(in *policy.Input) { in.Findings[0].Label = "Password" },
		"label that is a value":  func(in *policy.Input) { in.Findings[0].Label = "A B" },
		"source":                 func(in *policy.Input) { in.Findings[0].Source = "developer" },
		"field":                  func(in *policy.Input) { in.Findings[0].Field = "/messages/0" },
		"tool":                   func(in *policy.Input) { in.Findings[0].Tool = long },
		"rule":                   func(in *policy.Input) { in.Findings[0].Rule = "\xff" },
		"score 0":                func(in *policy.Input) { in.Findings[0].Score = 0 },
		"score above 1":          func(in *policy.Input) { in.Findings[0].Score = 1.01 },
		"score that is no score": func(in *policy.Input) { in.Findings[0].Score = math.NaN() },
		"count":                  func(in *policy.Input) { in.Findings[0].Count = 0 },
		"answer":                 func(in *policy.Input) { in.Findings[0].Answer = "yes" },
		"opaque kind":            func(in *policy.Input) { in.Opaque[0].Kind = "video" },
		"opaque source":          func(in *policy.Input) { in.Opaque[0].Source = "" },
		"opaque count":           func(in *policy.Input) { in.Opaque[0].Count = -1 },
		"opaque answer":          func(in *policy.Input) { in.Opaque[0].Answer = policy.AskUser },
	} {
		in := faultyInput()
		decide(t, p, in)
		edit(&in)
		if _, err := p.Decide(t.Context(), in); !errors.Is(err, policy.ErrUndecided) {
			t.Errorf("%s: error is %v", name, err)
		} else if strings.Contains(err.Error(), long) || strings.Contains(err.Error(), "A B") {
			t.Errorf("%s: the error holds the value", name)
		}
	}
}
