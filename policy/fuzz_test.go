package policy_test

import (
	"errors"
	"testing"

	"weir/policy"
)

// FuzzLoad holds that no file makes Load panic, and that a policy which loads
// decides within its rules or not at all.
func FuzzLoad(f *testing.F) {
	f.Add(false, night, "actions: {IBAN: allow}")
	f.Add(true, whole, "")
	f.Add(true, whole, `{"custom": {"a": [1, null, 1e400]}}`)
	f.Add(false, "package weir.gate\nstep_rules contains {\"action\": \"mask\"}", "a: &a [*a]")
	f.Add(false, "# METADATA\n# schemas:\n# - input: schema.settings\npackage x\ny := input.ask", "ask: {choices: [refuse]}")
	f.Fuzz(func(t *testing.T, gate bool, text, data string) {
		name := map[bool]string{true: "gate.rego", false: "night.rego"}[gate]
		p, err := policy.Load(t.Context(), policy.Options{Dir: dir(name, text), Data: []byte(data)})
		if err != nil {
			return
		}
		d, err := p.Decide(t.Context(), request(finding("IBAN", "user"), finding("PASSWORD", "tool")))
		switch {
		case err != nil:
			if !errors.Is(err, policy.ErrUndecided) {
				t.Errorf("error is %v", err)
			}
		case !d.Action.Valid() || len(d.Findings) != 2 || policy.Strictest(d.Action, d.Findings[1].Action) != d.Action:
			t.Errorf("decision is %+v", d)
		}
	})
}
