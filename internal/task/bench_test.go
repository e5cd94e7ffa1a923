package task_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"weir/internal/store/sqlite"
	"weir/internal/task"
)

func digest(s string) task.Digest { return sha256.Sum256([]byte(s)) }

// A turn of a conversation of 40 messages in which nothing was found.
func BenchmarkOpenClean(b *testing.B) {
	ts, _ := newTasks(b)
	words := make([]string, 40)
	for i := range words {
		words[i] = strconv.Itoa(i)
	}
	ref := task.Ref{Caller: "laptop", Chain: chain(words...), Lead: 1}
	b.ReportAllocs()
	for b.Loop() {
		tk, err := ts.Open(b.Context(), ref)
		if err != nil {
			b.Fatal(err)
		}
		if err := tk.Commit(b.Context(), task.Update{}); err != nil {
			b.Fatal(err)
		}
	}
}

func fill(b *testing.B, ts *task.Tasks, n int) task.Ref {
	b.Helper()
	ref := task.Ref{Caller: "laptop", Explicit: "bench"}
	tk := open(b, ts, ref)
	for i := range n {
		issue(b, tk, fmt.Sprintf("Ines Halvorsen %d", i))
	}
	commit(b, tk, task.Update{})
	return ref
}

// The first request of a task after a start: 100 values are read and unsealed.
func BenchmarkOpen100Cold(b *testing.B) {
	db := openDB(b, filepath.Join(b.TempDir(), "weir.db"), sqlite.Options{})
	keys := newKeys(b, 1)
	ref := fill(b, task.New(db, keys, task.Options{}), 100)
	b.ReportAllocs()
	for b.Loop() {
		ts := task.New(db, keys, task.Options{})
		if _, err := ts.Open(b.Context(), ref); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen100Warm(b *testing.B) {
	ts, _ := newTasks(b)
	ref := fill(b, ts, 100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ts.Open(b.Context(), ref); err != nil {
			b.Fatal(err)
		}
	}
}

// A request that adds five values and one decision.
func BenchmarkCommit5(b *testing.B) {
	ts, _ := newTasks(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tk := open(b, ts, task.Ref{Caller: "laptop", Explicit: strconv.Itoa(i / 20)})
		for j := range 5 {
			issue(b, tk, fmt.Sprintf("Ines Halvorsen %d %d", i, j))
		}
		commit(b, tk, task.Update{Settled: map[task.Digest]task.Settled{
			digest(strconv.Itoa(i)): {Placement: "cloud-masked", Actions: map[string]string{"PERSON_NAME": "mask"}},
		}})
	}
}
