package gate_test

import (
	"context"

	"weir/policy"
)

// decider is a policy written in Go.
type decider func(policy.Input) policy.Decision

func (f decider) Decide(_ context.Context, in policy.Input) (policy.Decision, error) {
	return f(in), nil
}

func (decider) Version() string { return "test" }
