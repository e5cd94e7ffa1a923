// Package gate is what a request must pass to leave the machine.
//
// Begin at [Gate.Examine]. A request goes through four steps, and each takes
// what only the step before it can make:
//
//	found, err   := g.Examine(ctx, chat, task)            // *Examined
//	decided      := g.Decide(ctx, found, step)            // *Decided
//	receipt, err := log.Append(ctx, decided.Record(...))  // audit.Receipt
//	out, err     := g.Clear(ctx, decided, receipt, to)    // Cleared
//
// [Cleared] and [Kept] have no exported fields and no other constructors, and
// they are all that an upstream accepts: a cloud upstream takes a Cleared, a
// local one a Kept. Text that was not examined, decided and recorded does not
// compile into a call.
//
// It promises that an error, a timeout or content it cannot read never lets a
// step go to the cloud, and that the bytes of a Cleared hold no value that the
// decision masks. Where a step runs is decided in package router; what an action
// is, in package policy.
package gate

import (
	"context"
	"time"

	"weir/internal/wire"
	"weir/pii"
	"weir/policy"
)

// Scanner finds private values in a text.
type Scanner interface {
	Scan(ctx context.Context, t pii.Text) ([]pii.Span, error)
	Version() string
}

// Decider decides what happens to findings.
type Decider interface {
	Decide(ctx context.Context, in policy.Input) (policy.Decision, error)
	Version() string
}

// Options adjusts a gate. The zero value works.
type Options struct {
	// ScanBudget bounds the examination of one request; default 10 s. Over it
	// the request counts as unexamined.
	ScanBudget time.Duration
	// NoNote leaves out the line in the system text that tells the model what
	// placeholders are.
	NoNote bool
	// Limits bounds the JSON of bodies that are read again.
	Limits wire.Limits
}

// Gate examines, decides and clears. It is immutable and safe for concurrent
// use.
type Gate struct {
	scanner Scanner
	decider Decider
	opts    Options
}

// New returns a gate.
func New(s Scanner, d Decider, opts Options) *Gate {
	if opts.ScanBudget == 0 {
		opts.ScanBudget = 10 * time.Second
	}
	return &Gate{scanner: s, decider: d, opts: opts}
}

// Versions returns the versions of the classifier and the policy.
func (g *Gate) Versions() (classifier, policy string) {
	return g.scanner.Version(), g.decider.Version()
}
