package model

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// served empties a queue and returns the clients in the order of their turns.
func served(q *queue, all []*ticket) (order string) {
	for {
		i := slices.IndexFunc(all, func(t *ticket) bool { return q.running == t })
		if i < 0 {
			return order
		}
		order += all[i].client
		q.leave(all[i])
	}
}

func TestClientsTakeTurns(t *testing.T) {
	t.Parallel()
	for arrivals, want := range map[string]string{
		"aaaa":   "aaaa",
		"aaab":   "abaa", // one request waits for one of another's, not for three
		"aaabb":  "ababa",
		"aabbcc": "abcabc",
	} {
		q := newQueue(10)
		var all []*ticket
		for _, c := range arrivals {
			tk, err := q.enter(string(c))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, tk)
		}
		said := make([]byte, len(all))
		for _, tk := range all {
			said[q.position(tk)] = tk.client[0]
		}
		if string(said) != want {
			t.Errorf("%s: positions say %q, want %q", arrivals, said, want)
		}
		if got := served(q, all); got != want {
			t.Errorf("%s: turns %q, want %q", arrivals, got, want)
		}
		if len(q.served) != 0 {
			t.Errorf("%s: %d clients are remembered that have gone", arrivals, len(q.served))
		}
	}
}

func TestQueueBound(t *testing.T) {
	t.Parallel()
	q := newQueue(1)
	first, err := q.enter("a")
	if err != nil {
		t.Fatal(err)
	}
	second, err := q.enter("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.enter("b"); err == nil {
		t.Error("a third request got a place")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	q.leave(second)
	if _, err := q.enter("b"); err != nil {
		t.Errorf("a place that was given up is not free: %v", err)
	}
	q.leave(first)
}

// Whatever the pieces, the text before the first stop string comes out, all of it
// and nothing more.
func TestStopperIsIndependentOfCuts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		alphabet := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 1, 4, -1)
		stops := rapid.SliceOfN(alphabet, 0, 3).Draw(t, "stops")
		pieces := rapid.SliceOfN(alphabet, 0, 12).Draw(t, "pieces")
		all := strings.Join(pieces, "")
		want, hitWanted := all, false
		// The first stop to be complete ends the text; of several that end in the
		// same piece the one that begins first does.
		s := stopper{stops: stops}
		var got strings.Builder
		hit := false
		for _, p := range pieces {
			text, h := s.push(p)
			got.WriteString(text)
			if hit = h; hit {
				break
			}
		}
		if !hit {
			got.WriteString(s.flush())
		}
		for _, stop := range stops {
			hitWanted = hitWanted || strings.Contains(all, stop)
		}
		if hit != hitWanted {
			t.Fatalf("hit is %v", hit)
		}
		if !hit && got.String() != want {
			t.Fatalf("got %q of %q", got.String(), all)
		}
		rest, ok := strings.CutPrefix(all, got.String())
		if !ok {
			t.Fatalf("got %q of %q", got.String(), all)
		}
		if hit && !slices.ContainsFunc(stops, func(s string) bool { return strings.HasPrefix(rest, s) }) {
			t.Fatalf("no stop string follows %q in %q", got.String(), all)
		}
		for _, stop := range stops {
			if strings.Contains(got.String(), stop) {
				t.Fatalf("%q holds a stop string", got.String())
			}
		}
	})
}
