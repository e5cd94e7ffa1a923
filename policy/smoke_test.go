package policy_test

import (
	"testing"

	"weir/policy"
)

func TestSmoke(t *testing.T) {
	p, err := policy.Load(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Decide(t.Context(), policy.Input{
		Version: 1, Step: policy.Step{Kind: "turn", Mode: "auto", Dialect: "chat", Model: "auto"},
		Destination: policy.Destination{Upstream: "c", Kind: "cloud"}, Caller: policy.Caller{Key: "anonymous"},
		Findings: []policy.Finding{
			{Label: "EMAIL_ADDRESS", Source: "user", Field: "content", Score: .9, Count: 2, Direct: true, Maskable: true},
			{Label: "HEALTH_DATA", Source: "tool", Field: "content", Score: .9, Count: 2, Direct: true, Maskable: true},
		},
	})
	t.Logf("%+v %+v %v", d, d.Ask, err)
	if err != nil {
		t.Fatal(err)
	}
}
