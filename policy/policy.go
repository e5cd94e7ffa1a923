// Package policy decides what happens to what was found in a request.
//
// Begin at [Load], which compiles Rego modules and their data once, and at
// [Policy.Decide], which turns an [Input] into a [Decision]. Both documents are
// specified by JSON Schemas in the folder schema and described in
// docs/policy.md; the shipped rules are in the folder rego, see [Shipped].
//
// It promises that every finding and every piece of opaque content gets exactly
// one action; that the action for the whole is never laxer than the strictest of
// the parts, whatever the Rego says of the whole; and that anything else, be it
// an error, a timeout, an undefined result or a document that breaks its
// schema, is an error wrapping [ErrUndecided], on which the caller keeps the
// step off the cloud. A policy cannot reach the network, the environment or
// randomness, and it never sees a value, only labels, places and counts.
//
// Finding things is left to package pii, placing a step and asking the user to
// package router.
package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/open-policy-agent/opa/v1/rego"
)

// ErrUndecided reports that the policy gave no valid decision. The caller must
// not let the step leave the device.
var ErrUndecided = errors.New("policy gave no decision")

// DefaultTimeout bounds one evaluation where [Options.Timeout] says nothing. A
// decision takes about a millisecond. The margin is for a machine whose cores
// all run a model: there 100 ms were exceeded now and then, and each time a step
// would have been kept from the cloud for nothing.
const DefaultTimeout = time.Second

// Policy is a compiled policy with its data. It never changes and is safe for
// concurrent use; a reload is a new Policy.
type Policy struct {
	query   rego.PreparedEvalQuery
	version string
	timeout time.Duration
	// cache is nil if the modules name something that may answer differently
	// for the same input, such as the clock.
	cache *otter.Cache[cacheKey, Decision]
}

// cacheKey is the digest of an input's JSON: as wide as it is so that no client
// can make two inputs that share one.
type cacheKey [sha256.Size]byte

// Version identifies modules and data: equal versions decide equally, unless a
// module asks the clock.
func (p *Policy) Version() string { return p.version }

// Decide evaluates the policy for in. Every error wraps [ErrUndecided]; if ctx
// ended first, the error wraps the context's error too.
//
// The findings and opaque parts of the result stand in the order of the input.
// The result belongs to the caller.
func (p *Policy) Decide(ctx context.Context, in Input) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, fmt.Errorf("%w: %w", ErrUndecided, err)
	}
	if err := in.check(); err != nil {
		return Decision{}, fmt.Errorf("%w: input: %w", ErrUndecided, err)
	}
	doc, err := encode(&in)
	if err != nil {
		return Decision{}, fmt.Errorf("%w: input: %w", ErrUndecided, err)
	}
	if p.cache == nil {
		return p.decide(ctx, &in, doc)
	}
	key := cacheKey(sha256.Sum256(doc))
	if d, ok := p.cache.GetIfPresent(key); ok {
		return d.clone(), nil
	}
	d, err := p.decide(ctx, &in, doc)
	if err != nil {
		return Decision{}, err
	}
	p.cache.Set(key, d.clone())
	return d, nil
}

func (p *Policy) decide(ctx context.Context, in *Input, doc []byte) (Decision, error) {
	value, err := p.eval(ctx, doc)
	if err != nil {
		return Decision{}, fmt.Errorf("%w: %w", ErrUndecided, err)
	}
	d, err := decode(value)
	if err != nil {
		return Decision{}, fmt.Errorf("%w: decision: %w", ErrUndecided, err)
	}
	if err := d.settle(in); err != nil {
		return Decision{}, fmt.Errorf("%w: decision: %w", ErrUndecided, err)
	}
	d.PolicyVersion = p.version
	return d, nil
}
