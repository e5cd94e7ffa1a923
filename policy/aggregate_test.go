package policy_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/policy"
)

func TestAggregateJoinsWhatAPolicyCannotTellApart(t *testing.T) {
	t.Parallel()
	a, b := finding("IBAN", "user"), finding("IBAN", "user")
	a.Score, a.Count = 0.5, 2
	b.Score, b.Count = 0.7, 3
	c := finding("AGE", "user")
	out, at := policy.Aggregate([]policy.Finding{a, c, b})
	joined := a
	joined.Score, joined.Count = 0.7, 5
	if diff := cmp.Diff([]policy.Finding{c, joined}, out); diff != "" {
		t.Errorf("out (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 0, 1}, at); diff != "" {
		t.Errorf("at (-want +got):\n%s", diff)
	}
}

func TestAggregateRoundsUp(t *testing.T) {
	t.Parallel()
	for in, want := range map[float64]float64{
		0.001: 0.01, 0.07: 0.07, 0.29: 0.29, 0.57: 0.57, 0.811: 0.82, 0.995: 1, 1: 1,
		// What is no score must not become one.
		0: 0, 1.5: 1.5,
	} {
		f := finding("IBAN", "user")
		f.Score = in
		if out, _ := policy.Aggregate([]policy.Finding{f}); out[0].Score != want {
			t.Errorf("%v becomes %v", in, out[0].Score)
		}
	}
	f := finding("IBAN", "user")
	f.Score = math.NaN()
	if out, _ := policy.Aggregate([]policy.Finding{finding("IBAN", "user"), f}); !math.IsNaN(out[0].Score) {
		t.Errorf("NaN becomes %v", out[0].Score)
	}
}

func TestAggregateLosesNothingAndHasOneOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(genFinding(), 0, 12).Draw(t, "findings")
		out, at := policy.Aggregate(in)
		counts := 0
		for i, f := range in {
			g := out[at[i]]
			if g.Score < f.Score {
				t.Fatalf("score of %d sank", i)
			}
			g.Score, g.Count = f.Score, f.Count
			if g != f {
				t.Fatalf("finding %d became another", i)
			}
			counts += f.Count
		}
		for _, f := range out {
			counts -= f.Count
		}
		if counts != 0 {
			t.Fatalf("counts differ by %d", counts)
		}
		again, _ := policy.Aggregate(out)
		shuffled := append([]policy.Finding(nil), in...)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		other, _ := policy.Aggregate(shuffled)
		if diff := cmp.Diff(out, again) + cmp.Diff(out, other); diff != "" {
			t.Fatalf("order depends on more than the findings:\n%s", diff)
		}
	})
}
