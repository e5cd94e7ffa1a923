package gate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/internal/gate"
)

// A conversation that grew turn by turn, with what each turn taught the task, has
// the findings of the same conversation that comes at once to a task which knows
// nothing.
func TestGrownConversationIsWhole(t *testing.T) {
	t.Parallel()
	texts := []string{"Write to " + email, "I am " + person, "and ask lee", "nothing at all", "Ann", "see " + person + ".", "PERSON_AAAAA"}
	b := setUp(t, known(), nil, gate.Options{})
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		grown, fresh := fmt.Sprint("grown", n), fmt.Sprint("fresh", n)
		said := rapid.SliceOfN(rapid.SampledFrom(texts), 1, 4).Draw(rt, "said")
		var messages []string
		for i, text := range said {
			messages = append(messages, message("user", fmt.Sprintf("%d %s", n, text)))
			b.clearedIn(grown, chat(messages...))
			if i < len(said)-1 {
				messages = append(messages, message("assistant", rapid.SampledFrom(texts).Draw(rt, "answer")))
			}
		}
		body := chat(messages...)
		if d := cmp.Diff(places(b.examinedIn(fresh, body)), places(b.examinedIn(grown, body))); d != "" {
			rt.Fatalf("%s: %s", body, d)
		}
	})
}

// places lists the findings by leaf and bytes.
func places(e *gate.Examined) []string {
	var out []string
	for _, f := range e.Findings() {
		out = append(out, fmt.Sprint(f.Leaf, " ", f.Start, "-", f.End, " ", f.Label))
	}
	slices.Sort(out)
	return out
}
