package policy

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// capabilities returns what a policy may call. It is a list of what is allowed,
// so that a builtin which a later OPA brings stays out until it has been looked
// at: nothing that reaches the network, the environment, keys or randomness,
// and nothing that reads or parses other languages without need.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins), func(b *ast.Builtin) bool {
		return !allowedBuiltin(b)
	})
	c.AllowNet = []string{} // not nil, which would allow schemas from anywhere
	return c
}

func allowedBuiltin(b *ast.Builtin) bool {
	if b.Infix != "" {
		return true
	}
	if family, _, ok := strings.Cut(b.Name, "."); ok {
		return oneOf(family, "array", "bits", "glob", "internal", "numbers", "object", "regex", "strings", "time", "units") ||
			oneOf(b.Name, "graph.reachable", "json.filter", "json.patch", "json.remove", "semver.compare", "semver.is_valid")
	}
	return oneOf(
		b.Name,
		"abs", "ceil", "floor", "round", "max", "min", "sum", "product", "count", "sort", "to_number", "format_int",
		"all", "any", "intersection", "union", "walk",
		"concat", "contains", "startswith", "endswith", "indexof", "indexof_n", "lower", "upper", "replace", "split",
		"sprintf", "substring", "trim", "trim_left", "trim_right", "trim_prefix", "trim_suffix", "trim_space",
		"is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string", "type_name",
		"print", // erased when compiled, see compile
	)
}

// deterministic reports whether modules call nothing that may answer
// differently for the same arguments. Naming such a builtin is enough, as it
// may be called through a with statement.
func deterministic(modules map[string]*ast.Module, c *ast.Capabilities) bool {
	changing := map[string]bool{}
	for _, b := range c.Builtins {
		if b.IsNondeterministic() {
			changing[b.Name] = true
		}
	}
	found := false
	for _, m := range modules {
		ast.WalkRefs(m, func(r ast.Ref) bool {
			found = found || changing[r.String()]
			return found
		})
	}
	return !found
}
