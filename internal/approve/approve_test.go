package approve_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/approve"
	"weir/internal/seal"
	"weir/internal/store"
	"weir/internal/store/sqlite"
)

// bubble runs f with a desk in a bubble of its own time. The store is opened
// inside, so that its goroutines belong to the bubble.
func bubble(t *testing.T, f func(t *testing.T, d *approve.Desk, db *sqlite.DB)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		must(t, err)
		d := newDesk(t, db)
		f(t, d, db)
		d.Close()
		must(t, db.Close())
	})
}

func newDesk(t testing.TB, st store.Answers) *approve.Desk {
	t.Helper()
	keys, err := seal.New([seal.Size]byte{1})
	must(t, err)
	return approve.New(st, keys)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func question() approve.Question {
	return approve.Question{
		Caller: "laptop", Task: "task_a", Destination: "main",
		Counts:    map[string]int{"HEALTH_DATA": 2, "PERSON_NAME": 1},
		Excerpts:  []approve.Excerpt{{Label: "HEALTH_DATA", Before: "I have ", Text: "an invented illness", After: "."}},
		Choices:   []string{"mask", "keep_local", "refuse"},
		OnTimeout: "refuse",
	}
}

func repeatable() approve.Question {
	q := question()
	q.Request = [32]byte{1}
	return q
}

type result struct {
	approve.Answer
	err error
}

// ask asks in the background.
func ask(ctx context.Context, d *approve.Desk, q approve.Question) <-chan result {
	out := make(chan result, 1)
	go func() {
		a, err := d.Ask(ctx, q)
		out <- result{a, err}
	}()
	synctest.Wait()
	return out
}

// only returns the one open question.
func only(t *testing.T, d *approve.Desk) approve.Pending {
	t.Helper()
	synctest.Wait()
	open := d.Pending(t.Context())
	if len(open) != 1 {
		t.Fatalf("%d open questions, want 1", len(open))
	}
	return open[0]
}

func wantNone(t *testing.T, d *approve.Desk) {
	t.Helper()
	synctest.Wait()
	if n := len(d.Pending(t.Context())); n != 0 {
		t.Errorf("%d open questions, want none", n)
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, _ *sqlite.DB) {
		got := ask(t.Context(), d, question())
		p := only(t, d)
		if !p.Waiting || p.Until.Sub(p.Asked) != time.Minute || p.Excerpts[0].Text != "an invented illness" {
			t.Errorf("pending: %+v", p)
		}
		time.Sleep(time.Second)
		for _, bad := range []struct {
			id, choice string
			scope      approve.Scope
			want       error
		}{
			{"ask_none", "mask", approve.Once, approve.ErrNotFound},
			{p.ID, "allow", approve.Once, approve.ErrInvalidChoice},
			{p.ID, "", approve.Once, approve.ErrInvalidChoice},
			{p.ID, "mask", "forever", approve.ErrInvalidScope},
			{p.ID, "mask", "", approve.ErrInvalidScope},
		} {
			if err := d.Answer(t.Context(), bad.id, bad.choice, bad.scope, "console"); !errors.Is(err, bad.want) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		must(t, d.Answer(t.Context(), p.ID, "mask", approve.Once, "console"))
		want := approve.Answer{ID: p.ID, Choice: "mask", Scope: approve.Once, Who: "console"}
		r := <-got
		if diff := cmp.Diff(want, r.Answer); diff != "" || r.err != nil {
			t.Errorf("answer (-want +got), %v:\n%s", r.err, diff)
		}
		if err := d.Answer(t.Context(), p.ID, "refuse", approve.Once, "terminal"); !errors.Is(err, approve.ErrAnswered) {
			t.Errorf("second answer: %v", err)
		}
		wantNone(t, d)
	})
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, _ *sqlite.DB) {
		q := question()
		q.Wait = 5 * time.Second
		begin := time.Now()
		a, err := d.Ask(t.Context(), q)
		if err != nil || !a.TimedOut || a.Choice != "refuse" || a.Who != "" || time.Since(begin) != 5*time.Second {
			t.Errorf("after %v: %+v, %v", time.Since(begin), a, err)
		}
		// Nothing could repeat it: the question is over.
		wantNone(t, d)
		if err := d.Answer(t.Context(), a.ID, "mask", approve.Once, "console"); !errors.Is(err, approve.ErrNotFound) {
			t.Errorf("answer after the end: %v", err)
		}
	})
}

func TestGivingUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, _ *sqlite.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		got := ask(ctx, d, question())
		cancel()
		if r := <-got; !errors.Is(r.err, context.Canceled) {
			t.Errorf("%+v", r)
		}
		wantNone(t, d)
	})
}

// A request that could not wait is repeated: before the answer it joins the
// question, after it it gets the answer, once.
func TestRepetition(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, _ *sqlite.DB) {
		first, err := d.Ask(t.Context(), repeatable())
		must(t, err)
		p := only(t, d)
		if !first.TimedOut || p.ID != first.ID || p.Waiting || time.Until(p.Until) != 10*time.Minute {
			t.Fatalf("%+v, then %+v", first, p)
		}
		// Joined, and timed out again: the same question.
		time.Sleep(9 * time.Minute)
		again, err := d.Ask(t.Context(), repeatable())
		if err != nil || again.ID != first.ID || !again.TimedOut {
			t.Fatalf("%+v, %v", again, err)
		}
		time.Sleep(9 * time.Minute)
		must(t, d.Answer(t.Context(), first.ID, "mask", approve.Once, "console"))
		wantNone(t, d)
		// Not for another request, destination, caller or finding.
		for name, change := range map[string]func(q *approve.Question){
			"request":     func(q *approve.Question) { q.Request = [32]byte{2} },
			"destination": func(q *approve.Question) { q.Destination = "other" },
			"caller":      func(q *approve.Question) { q.Caller = "phone" },
			"findings":    func(q *approve.Question) { q.Counts = map[string]int{"PASSWORD": 1} },
		} {
			q := repeatable()
			change(&q)
			q.Wait, q.Keep = time.Second, time.Second
			if a, err := d.Ask(t.Context(), q); err != nil || !a.TimedOut {
				t.Errorf("another %s: %+v, %v", name, a, err)
			}
		}
		time.Sleep(9 * time.Minute)
		used, err := d.Ask(t.Context(), repeatable())
		want := approve.Answer{ID: first.ID, Choice: "mask", Scope: approve.Once, Who: "console"}
		if diff := cmp.Diff(want, used); err != nil || diff != "" {
			t.Errorf("repetition (-want +got), %v:\n%s", err, diff)
		}
		if a, err := d.Ask(t.Context(), repeatable()); err != nil || !a.TimedOut || a.ID == first.ID {
			t.Errorf("a second repetition: %+v, %v", a, err)
		}
	})
}

func TestKeptAnswerExpires(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, _ *sqlite.DB) {
		a, err := d.Ask(t.Context(), repeatable())
		must(t, err)
		must(t, d.Answer(t.Context(), a.ID, "mask", approve.Once, "console"))
		time.Sleep(10 * time.Minute)
		if b, err := d.Ask(t.Context(), repeatable()); err != nil || !b.TimedOut {
			t.Errorf("%+v, %v", b, err)
		}
		time.Sleep(10 * time.Minute)
		wantNone(t, d) // the question lapsed too
	})
}

// A kept answer that the policy does not offer any more is not an answer.
func TestKeptAnswerMustBeOffered(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, _ *sqlite.DB) {
		a, err := d.Ask(t.Context(), repeatable())
		must(t, err)
		must(t, d.Answer(t.Context(), a.ID, "mask", approve.Once, "console"))
		q := repeatable()
		q.Choices = []string{"keep_local", "refuse"}
		if b, err := d.Ask(t.Context(), q); err != nil || !b.TimedOut {
			t.Errorf("%+v, %v", b, err)
		}
	})
}

// The client went away at the moment the answer came: its retry gets the answer.
func TestAnswerToOneWhoLeft(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, _ *sqlite.DB) {
		for i := range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			q := repeatable()
			q.Request[1] = byte(i)
			got := ask(ctx, d, q)
			id := only(t, d).ID
			var wg sync.WaitGroup
			wg.Go(cancel)
			wg.Go(func() { must(t, d.Answer(t.Context(), id, "mask", approve.Once, "console")) })
			wg.Wait()
			r := <-got
			if r.err == nil { // the answer came first
				if r.Choice != "mask" {
					t.Errorf("%+v", r)
				}
				continue
			}
			a, err := d.Ask(t.Context(), q)
			if err != nil || a.TimedOut || a.Choice != "mask" || a.ID != id {
				t.Errorf("retry: %+v, %v", a, err)
			}
		}
	})
}

// The same request twice at once is one question with one answer.
func TestSameRequestAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, _ *sqlite.DB) {
		a, b := ask(t.Context(), d, repeatable()), ask(t.Context(), d, repeatable())
		must(t, d.Answer(t.Context(), only(t, d).ID, "keep_local", approve.Once, "console"))
		if ra, rb := <-a, <-b; ra.err != nil || ra != rb || ra.Choice != "keep_local" {
			t.Errorf("%+v and %+v", ra, rb)
		}
		// Without a digest they are two.
		a, b = ask(t.Context(), d, question()), ask(t.Context(), d, question())
		if n := len(d.Pending(t.Context())); n != 2 {
			t.Errorf("%d questions, want 2", n)
		}
		d.Close()
		if ra, rb := <-a, <-b; !errors.Is(ra.err, approve.ErrClosed) || !errors.Is(rb.err, approve.ErrClosed) {
			t.Errorf("closed: %v, %v", ra.err, rb.err)
		}
		if _, err := d.Ask(t.Context(), question()); !errors.Is(err, approve.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestFirstAnswerWins(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, _ *sqlite.DB) {
		for _, scope := range []approve.Scope{approve.Once, approve.Always} {
			got := ask(t.Context(), d, question())
			id := only(t, d).ID
			var won atomic.Value
			var wins atomic.Int32
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					who, choice := fmt.Sprint("screen ", i), []string{"mask", "refuse"}[i%2]
					switch err := d.Answer(t.Context(), id, choice, scope, who); {
					case err == nil:
						wins.Add(1)
						won.Store(who)
					case !errors.Is(err, approve.ErrAnswered):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if r := <-got; wins.Load() != 1 || r.Who != won.Load() || r.err != nil {
				t.Errorf("%d won, the last %v, the answer is %+v", wins.Load(), won.Load(), r)
			}
		}
		kept, err := d.Remembered(t.Context())
		if err != nil || len(kept) != 2 || kept[0].Who != kept[1].Who {
			t.Errorf("remembered: %+v, %v", kept, err)
		}
	})
}

// An answer that cannot be kept is not in force: the question stays open.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		fault := errors.New("fault")
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{TestOnlyFault: func(string) error {
			if broken.Load() {
				return fault
			}
			return nil
		}})
		must(t, err)
		d := newDesk(t, db)
		got := ask(t.Context(), d, question())
		id := only(t, d).ID
		broken.Store(true)
		if err := d.Answer(t.Context(), id, "mask", approve.Always, "console"); !errors.Is(err, fault) {
			t.Errorf("answer: %v", err)
		}
		// What cannot be looked up is not taken for no answer.
		if _, err := d.Ask(t.Context(), repeatable()); !errors.Is(err, fault) {
			t.Errorf("ask: %v", err)
		}
		if _, err := d.Lookup(t.Context(), "laptop", "task_a", []string{"IBAN"}); !errors.Is(err, fault) {
			t.Errorf("lookup: %v", err)
		}
		broken.Store(false)
		if p := only(t, d); p.ID != id {
			t.Errorf("open: %s", p.ID)
		}
		must(t, d.Answer(t.Context(), id, "refuse", approve.Always, "console"))
		if r := <-got; r.Choice != "refuse" || r.err != nil {
			t.Errorf("%+v", r)
		}
		d.Close()
		must(t, db.Close())
	})
}

func TestTooMany(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, _ *sqlite.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 256 {
			wg.Go(func() { _, _ = d.Ask(ctx, question()) })
		}
		synctest.Wait()
		if _, err := d.Ask(ctx, question()); !errors.Is(err, approve.ErrTooMany) {
			t.Errorf("%v, want ErrTooMany", err)
		}
		cancel()
		wg.Wait()
		wantNone(t, d)
	})
}

func TestBadQuestions(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, _ *sqlite.DB) {
		for name, change := range map[string]func(q *approve.Question){
			"no caller":  func(q *approve.Question) { q.Caller = "" },
			"no choices": func(q *approve.Question) { q.Choices = nil },
			"no verdict": func(q *approve.Question) { q.OnTimeout = "" },
		} {
			q := question()
			change(&q)
			if _, err := d.Ask(t.Context(), q); err == nil {
				t.Errorf("%s: asked", name)
			}
		}
	})
}

func TestChanged(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, _ *sqlite.DB) {
		came := d.Changed()
		select {
		case <-came:
			t.Error("changed before anything happened")
		default:
		}
		got := ask(t.Context(), d, question())
		<-came
		went := d.Changed()
		must(t, d.Answer(t.Context(), only(t, d).ID, "mask", approve.Once, "console"))
		<-went
		<-got
	})
}
