package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"weir/policy"
)

// oracleData is settings that use each key.
const oracleData = `
sources: {tool: {PASSWORD: mask, image: allow}, metadata: {EMAIL_ADDRESS: ask_user}}
keys: {ci: {PAYMENT_CARD: refuse, LOCATION: allow, audio: ask_user}}
opaque: {file: ask_user, encrypted: refuse}
min_score: {EMAIL_ADDRESS: 0.5, PASSWORD: 0.2}
quasi_alone: mask
settled: {refuse: refuse, mask: mask}
tainted: ask_user
sensitivity: {sensitive: keep_local}
styles: {EMAIL_ADDRESS: surrogate}
ask: {choices: [mask, refuse]}
`

// oracle is the shipped rules with oracleData, written down a second time and
// in another language: it reads a table and goes down a list.
type oracle struct {
	in      policy.Input
	someone bool // somebody is identified
}

func (o oracle) base(name, source string) (policy.Action, string) {
	byKey := map[string]policy.Action{"PAYMENT_CARD": "refuse", "LOCATION": "allow", "audio": "ask_user"}
	bySource := map[string]map[string]policy.Action{
		"tool":     {"PASSWORD": "mask", "image": "allow"},
		"metadata": {"EMAIL_ADDRESS": "ask_user"},
	}
	labels := map[string]policy.Action{
		"EMAIL_ADDRESS": "mask", "LOCATION": "mask", "HEALTH_DATA": "ask_user", "PAYMENT_CARD": "keep_local",
		"PASSWORD": "refuse",
	}
	kinds := map[string]policy.Action{
		"image": "keep_local", "audio": "keep_local", "file": "ask_user", "encrypted": "refuse",
		"unknown": "keep_local", "unexamined": "keep_local",
	}
	if a, ok := byKey[name]; ok && o.in.Caller.Key == "ci" {
		return a, "key_override"
	}
	if a, ok := bySource[source][name]; ok {
		return a, "source_override"
	}
	if a, ok := labels[name]; ok {
		return a, "label_action"
	}
	if a, ok := kinds[name]; ok {
		return a, "opaque_kind"
	}
	return "keep_local", "unknown_label"
}

// decided follows an action through answer, settled turn, masking and
// destination.
func (o oracle) decided(a policy.Action, rule string, answer policy.Action, settled, maskable bool) (policy.Action, string) {
	switch {
	case a == "ask_user" && answer != "":
		a, rule = answer, "answered"
	case a == "refuse" && settled && answer == "keep_local":
		a, rule = "keep_local", "answered_refusal"
	case a == "refuse" && settled && (answer == "mask" || answer == "allow"):
		a, rule = "mask", "answered_refusal"
	case settled && (a == "ask_user" || a == "keep_local" || a == "mask"):
		a, rule = "mask", "settled"
	case settled && a == "refuse":
		rule = "settled"
	}
	return o.possible(a, rule, maskable)
}

func (o oracle) possible(a policy.Action, rule string, maskable bool) (policy.Action, string) {
	if a == "mask" && !maskable {
		a, rule = "keep_local", "unmaskable"
	}
	if o.in.Destination.Kind == "local" && a != "refuse" {
		a, rule = "allow", "local_destination"
	}
	return a, rule
}

func weak(f policy.Finding) bool {
	return f.Label == "EMAIL_ADDRESS" && f.Score < 0.5 || f.Label == "PASSWORD" && f.Score < 0.2
}

func (o oracle) finding(f policy.Finding) (policy.Action, string) {
	a, rule := o.base(f.Label, f.Source)
	switch {
	case weak(f):
		return o.possible("allow", "low_score", f.Maskable)
	case !o.someone && a != "allow" && a != "mask":
		return o.possible("mask", "quasi_alone", f.Maskable)
	}
	return o.decided(a, rule, f.Answer, f.Settled, f.Maskable)
}

// decide is the whole outcome.
func (o oracle) decide() outcome {
	out := outcome{Action: "allow", Rule: "clean"}
	first := true
	add := func(a policy.Action, rule string) {
		if first || policy.Strictest(out.Action, a) != out.Action {
			out.Action, out.Rule, first = a, rule, false
		}
	}
	step := policy.Action("ask_user")
	if o.in.Task.Answer != "" {
		step = o.in.Task.Answer
	}
	if o.in.Task.Tainted && (o.in.Destination.Kind == "cloud" || step == "refuse") {
		// Its action is ask_user before the answer, so it stands first.
		add(step, "tainted")
	}
	if o.in.Sensitivity.Class == "sensitive" && o.in.Destination.Kind == "cloud" {
		add("keep_local", "sensitivity")
	}
	maskOffered := true
	for _, f := range o.in.Findings {
		a, rule := o.finding(f)
		part := []string{string(a), rule}
		if a == "mask" {
			part = append(part, map[bool]string{true: "surrogate", false: "placeholder"}[f.Label == "EMAIL_ADDRESS"])
		}
		out.Findings = append(out.Findings, part)
		maskOffered = maskOffered && (a != "ask_user" || f.Maskable)
		add(a, rule)
	}
	for _, p := range o.in.Opaque {
		a, rule := o.base(p.Kind, p.Source)
		a, rule = o.decided(a, rule, p.Answer, p.Settled, false)
		out.Opaque = append(out.Opaque, []string{string(a), rule})
		maskOffered = maskOffered && a != "ask_user"
		add(a, rule)
	}
	if out.Action == "ask_user" {
		out.Ask = &policy.Ask{TimeoutSeconds: 60, OnTimeout: "refuse", Choices: []policy.Action{"mask", "refuse"}}
		if !maskOffered {
			out.Ask.Choices = []policy.Action{"refuse"}
		}
	}
	return out
}

// decidesAsTheOracle is the property that the tests below share.
func decidesAsTheOracle(p *policy.Policy) func(t *rapid.T) {
	return func(t *rapid.T) {
		in := genInput().Draw(t, "input")
		o := oracle{in: in}
		for _, f := range in.Findings {
			o.someone = o.someone || f.Direct && !weak(f)
		}
		d, err := p.Decide(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(o.decide(), outcomeOf(d), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("decision (-want +got):\n%s", diff)
		}
	}
}

func TestDecideAgreesWithASecondReading(t *testing.T) {
	t.Parallel()
	rapid.Check(t, decidesAsTheOracle(load(t, policy.Options{Data: []byte(oracleData)})))
}

func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"))
	f.Fuzz(rapid.MakeFuzz(decidesAsTheOracle(load(f, policy.Options{Data: []byte(oracleData)}))))
}
