package policy_test

import (
	"testing"

	"weir/policy"
)

func TestStrictest(t *testing.T) {
	t.Parallel()
	order := []policy.Action{policy.Allow, policy.Mask, policy.AskUser, policy.KeepLocal, policy.Refuse}
	for i, a := range order {
		for j, b := range order {
			if got, want := policy.Strictest(a, b), order[max(i, j)]; got != want {
				t.Errorf("Strictest(%s, %s) is %s", a, b, got)
			}
		}
		// What is no action must not lose against one.
		for _, bad := range []policy.Action{"", "block", "ALLOW"} {
			if policy.Strictest(a, bad) != policy.Refuse || policy.Strictest(bad, a) != policy.Refuse || bad.Valid() {
				t.Errorf("%q is laxer than refuse", bad)
			}
		}
		if !a.Valid() {
			t.Errorf("%s is not valid", a)
		}
	}
}
