package policy_test

import (
	"testing"
	"time"

	"weir/policy"
)

// load loads a policy that must load. Its time is not bounded, so that a busy
// machine fails no test that is not about time.
func load(tb testing.TB, opts policy.Options) *policy.Policy {
	tb.Helper()
	if opts.Timeout == 0 {
		opts.Timeout = time.Hour
	}
	p, err := policy.Load(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// request is a turn that goes to the cloud.
func request(findings ...policy.Finding) policy.Input {
	return policy.Input{
		Version:     policy.InputVersion,
		Step:        policy.Step{Kind: "turn", Mode: "auto", Dialect: "chat", Model: "auto"},
		Destination: policy.Destination{Upstream: "cloud", Kind: "cloud"},
		Caller:      policy.Caller{Key: "anonymous"},
		Sensitivity: policy.Sensitivity{Class: "none"},
		Findings:    findings,
	}
}

// finding is one direct, certain, maskable finding.
func finding(label, source string) policy.Finding {
	return policy.Finding{
		Label: label, Source: source, Field: "content", Score: 0.9, Count: 1, Direct: true, Maskable: true,
	}
}

// decide decides what must be decided.
func decide(tb testing.TB, p *policy.Policy, in policy.Input) policy.Decision {
	tb.Helper()
	d, err := p.Decide(tb.Context(), in)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}
