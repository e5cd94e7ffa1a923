package policy

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// entry is the rule that holds the decision.
const entry = "data.weir.gate.decision"

// Options says what to load. The zero value is the shipped policy.
type Options struct {
	// Dir holds the user's files, see docs/policy.md. With a gate.rego it is a
	// whole policy and takes the place of the shipped modules; without one its
	// modules join them, a module of the same path taking the shipped one's
	// place. Its data.yaml or data.json is laid over the shipped data in either
	// case. Nil stands for no files. Use [os.DirFS] for a path.
	Dir fs.FS
	// Data is laid over all other data: YAML or JSON of the same shape as
	// data.yaml. Empty changes nothing.
	Data []byte
	// Labels is the labels that exist: the built-in ones, which the shipped data
	// names, and the user's own. If it is not nil, data that names another one
	// does not load.
	Labels []string
	// Timeout bounds one evaluation; [DefaultTimeout] if it is not positive.
	Timeout time.Duration
}

// Load compiles a policy and tries it on a few inputs, so that one which cannot
// decide at all does not replace one that can. Faults of the files are
// [CompileErrors]; other errors are failures to read them.
func Load(ctx context.Context, opts Options) (*Policy, error) {
	src, err := read(opts)
	if err != nil {
		return nil, err
	}
	compiler, err := compile(src.modules)
	if err != nil {
		return nil, err
	}
	query, err := rego.New(
		rego.Query(entry),
		rego.Compiler(compiler),
		rego.Store(inmem.NewFromObjectWithOpts(
			map[string]any{"weir": map[string]any{"settings": src.data}},
			inmem.OptReturnASTValuesOnRead(true),
		)),
		rego.StrictBuiltinErrors(true),
	).PrepareForEval(ctx)
	if err != nil {
		return nil, fmt.Errorf("prepare policy: %w", err)
	}
	version, err := src.version()
	if err != nil {
		return nil, err
	}
	p := &Policy{query: query, version: version, timeout: opts.Timeout}
	if p.timeout <= 0 {
		p.timeout = DefaultTimeout
	}
	if err := p.probe(ctx); err != nil {
		return nil, err
	}
	if deterministic(compiler.Modules, compiler.Capabilities()) {
		p.cache = newCache()
	}
	return p, nil
}
