package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/maypok86/otter/v2"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// eval runs the query on an input document. Errors say where in the policy,
// never what the input held.
func (p *Policy) eval(ctx context.Context, doc []byte) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	input, err := ast.ValueFromReader(bytes.NewReader(doc))
	if err != nil {
		return nil, errors.New("input is not valid JSON")
	}
	stop := topdown.NewCancel()
	defer context.AfterFunc(ctx, stop.Cancel)()
	rs, err := p.query.Eval(ctx, rego.EvalParsedInput(input), rego.EvalExternalCancel(stop))
	switch {
	case ctx.Err() != nil:
		// A result that came in the same moment is late all the same.
		return nil, fmt.Errorf("evaluate: %w", ctx.Err())
	case err != nil:
		return nil, evalError(err)
	case len(rs) != 1 || len(rs[0].Expressions) != 1:
		return nil, errors.New("undefined")
	}
	return rs[0].Expressions[0].Value, nil
}

func evalError(err error) error {
	var e *topdown.Error
	if !errors.As(err, &e) {
		return errors.New("evaluation failed")
	}
	if e.Location == nil {
		return fmt.Errorf("evaluation failed: %s", e.Code)
	}
	return fmt.Errorf("evaluation failed: %s at %s:%d:%d", e.Code, e.Location.File, e.Location.Row, e.Location.Col)
}

// probe decides a few plain inputs: nothing found, and one finding beside one
// image.
func (p *Policy) probe(ctx context.Context) error {
	in := Input{
		Version:     InputVersion,
		Sensitivity: Sensitivity{Class: "none"},
		Step:        Step{Kind: "turn", Mode: "auto", Dialect: "chat", Model: "auto"},
		Destination: Destination{Upstream: "cloud", Kind: "cloud"},
		Caller:      Caller{Key: "anonymous"},
	}
	full := in
	full.Findings = []Finding{{
		Label: "EMAIL_ADDRESS", Source: "user", Field: "content", Score: 1, Count: 1, Direct: true, Maskable: true,
	}}
	full.Opaque = []Opaque{{Kind: "image", Source: "user", Count: 1}}
	for _, in := range []Input{in, full} {
		if _, err := p.Decide(ctx, in); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("try policy: %w", err)
			}
			return CompileErrors{{Code: "probe_error", Message: err.Error()}}
		}
	}
	return nil
}

// cacheBytes bounds the memory of remembered decisions, roughly.
const cacheBytes = 8 << 20

func newCache() *otter.Cache[cacheKey, Decision] {
	return otter.Must(&otter.Options[cacheKey, Decision]{
		MaximumWeight: cacheBytes,
		Weigher:       func(_ cacheKey, d Decision) uint32 { return d.weight() },
		// On the caller's goroutine: it is short, and nobody would wait for
		// another one.
		Executor: func(task func()) { task() },
	})
}

// weight is about how many bytes d takes.
func (d Decision) weight() uint32 {
	n := 256 + len(d.Reason) + len(d.Rule)
	for i := range d.Findings {
		n += 96 + len(d.Findings[i].Rule) + len(d.Findings[i].Reason)
	}
	for i := range d.Opaque {
		n += 80 + len(d.Opaque[i].Rule) + len(d.Opaque[i].Reason)
	}
	return uint32(min(n, math.MaxUint32))
}
