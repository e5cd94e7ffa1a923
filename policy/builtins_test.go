package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"weir/policy"
)

func TestAPolicyReachesNothingOutside(t *testing.T) {
	t.Parallel()
	callable := policy.Callable()
	for _, b := range ast.CapabilitiesForThisVersion().Builtins {
		family, _, _ := strings.Cut(b.Name, ".")
		outside := b.IsNondeterministic() && b.Name != "time.now_ns" ||
			slices.Contains([]string{"http", "net", "opa", "rand", "uuid", "crypto", "io", "providers", "rego", "trace"}, family)
		if outside && slices.Contains(callable, b.Name) {
			t.Errorf("%s can be called", b.Name)
		}
	}
	// What rules are made of must be there.
	for _, name := range []string{
		"eq", "plus", "internal.member_2", "internal.member_3", "internal.template_string", "count", "sprintf", "walk",
		"object.get", "array.concat", "regex.match", "glob.match", "time.now_ns", "time.weekday", "time.clock", "print",
	} {
		if !slices.Contains(callable, name) {
			t.Errorf("%s cannot be called", name)
		}
	}
}
