package approve_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"weir/internal/approve"
	"weir/internal/store"
	"weir/internal/store/sqlite"
)

func TestRemembered(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, d *approve.Desk, db *sqlite.DB) {
		answer := func(q approve.Question, choice string, scope approve.Scope) {
			t.Helper()
			got := ask(t.Context(), d, q)
			must(t, d.Answer(t.Context(), only(t, d).ID, choice, scope, "console"))
			if r := <-got; r.err != nil || r.Choice != choice || r.Scope != scope {
				t.Errorf("%+v", r)
			}
			time.Sleep(time.Second)
		}
		q := question()
		answer(q, "mask", approve.Always)
		q.Counts = map[string]int{"HEALTH_DATA": 1}
		answer(q, "keep_local", approve.Task)
		d = newDesk(t, db) // a restart
		lookup := func(caller, task string) map[string]string {
			t.Helper()
			got, err := d.Lookup(t.Context(), caller, task, []string{"HEALTH_DATA", "PERSON_NAME", "IBAN"})
			must(t, err)
			return got
		}
		for _, c := range []struct {
			caller, task string
			want         map[string]string
		}{
			{"laptop", "task_a", map[string]string{"HEALTH_DATA": "keep_local", "PERSON_NAME": "mask"}},
			{"laptop", "task_b", map[string]string{"HEALTH_DATA": "mask", "PERSON_NAME": "mask"}},
			{"phone", "task_a", map[string]string{}},
		} {
			if diff := cmp.Diff(c.want, lookup(c.caller, c.task)); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", c.caller, c.task, diff)
			}
		}
		kept, err := d.Remembered(t.Context())
		if err != nil || len(kept) != 3 || kept[2].Task != "task_a" || kept[2].Choice != "keep_local" {
			t.Fatalf("remembered: %+v, %v", kept, err)
		}
		must(t, d.Forget(t.Context(), kept[2].ID))
		if err := d.Forget(t.Context(), kept[2].ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("forgotten twice: %v", err)
		}
		if got := lookup("laptop", "task_a")["HEALTH_DATA"]; got != "mask" {
			t.Errorf("after forgetting: %q", got)
		}
		// Without a task or a label there is nothing to remember it by.
		for _, change := range []func(q *approve.Question){
			func(q *approve.Question) { q.Task = "" },
			func(q *approve.Question) { q.Counts = nil },
		} {
			q := question()
			change(&q)
			got := ask(t.Context(), d, q)
			p := only(t, d)
			if err := d.Answer(t.Context(), p.ID, "mask", approve.Task, "console"); !errors.Is(err, approve.ErrInvalidScope) {
				t.Errorf("%v", err)
			}
			must(t, d.Answer(t.Context(), p.ID, "mask", approve.Once, "console"))
			<-got
		}
	})
}

// The text in clear is in memory while the question is open, and nowhere else.
func TestExcerptsStayInMemory(t *testing.T) {
	t.Parallel()
	const secret = "an invented illness"
	path := filepath.Join(t.TempDir(), "weir.db")
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		must(t, err)
		d := newDesk(t, db)
		got := ask(t.Context(), d, repeatable())
		p := only(t, d)
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
			fmt.Fprintf(&out, verb, p)
			fmt.Fprintf(&out, verb, p.Excerpts[0])
		}
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "excerpt", p.Excerpts[0])
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "question", p)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "question", p, "all", []any{p, p.Excerpts})
		encoded, err := json.Marshal(p.Excerpts)
		must(t, err)
		out.Write(encoded)
		if !bytes.Contains(encoded, []byte("HEALTH_DATA(19 bytes)")) {
			t.Errorf("encoded: %s", encoded)
		}
		if strings.Contains(out.String(), secret) || strings.Contains(out.String(), fmt.Sprintf("%x", secret)) {
			t.Errorf("printed: %s", out.String())
		}
		must(t, d.Answer(t.Context(), p.ID, "mask", approve.Always, "console"))
		<-got
		names, err := filepath.Glob(path + "*")
		must(t, err)
		for _, name := range names {
			b, err := os.ReadFile(name)
			must(t, err)
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("the text stands in %s", filepath.Base(name))
			}
		}
		d.Close()
		must(t, db.Close())
	})
}
