package cpu_test

import (
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"weir/engine/cpu"
)

func TestPoolRunsEveryWorker(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 9} {
		p := cpu.NewPool(n)
		ran := make([]atomic.Int32, n)
		for range 200 {
			p.Run(func(w *cpu.Worker) {
				if w.N != n {
					t.Errorf("worker of %d, want %d", w.N, n)
				}
				ran[w.ID].Add(1)
			})
		}
		p.Close()
		for i := range ran {
			if got := ran[i].Load(); got != 200 {
				t.Errorf("worker %d of %d ran %d times, want 200", i, n, got)
			}
		}
	}
}

// What a worker writes before a gate, all read after it.
func TestSyncOrders(t *testing.T) {
	t.Parallel()
	const n, rounds = 4, 500
	p := cpu.NewPool(n)
	defer p.Close()
	var cell [n]int
	p.Run(func(w *cpu.Worker) {
		for r := 1; r <= rounds; r++ {
			cell[w.ID] = r
			w.Sync()
			for i, got := range cell {
				if got != r {
					t.Errorf("round %d: worker %d sees %d of worker %d", r, w.ID, got, i)
				}
			}
			w.Sync()
		}
	})
}

// Every part is had once, by whichever worker, over more jobs than there are
// counters; and whoever comes late still finds the jobs that the others ended.
func TestPartsCoverOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 5} {
		p := cpu.NewPool(n)
		had := make([]atomic.Int32, 103)
		for round := range 50 {
			p.Run(func(w *cpu.Worker) {
				for range 7 {
					for range 9 {
						for lo, hi := range w.Parts(len(had), 10) {
							if lo%10 != 0 || hi != min(lo+10, len(had)) {
								t.Errorf("part %d to %d", lo, hi)
							}
							for i := lo; i < hi; i++ {
								had[i].Add(1)
							}
						}
						for i := range w.Each(len(had)) {
							had[i].Add(1)
						}
						for range w.Each(0) {
							t.Error("a part of nothing")
						}
					}
					w.Sync()
				}
			})
			for i := range had {
				if got := had[i].Load(); got != int32((round+1)*7*9*2) {
					t.Fatalf("%d workers, round %d: thing %d was had %d times, want %d", n, round, i, got, (round+1)*7*9*2)
				}
			}
		}
		p.Close()
	}
}

func TestSharesCover(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, unit := rapid.IntRange(0, 300).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "unit")
		workers := rapid.IntRange(1, 20).Draw(t, "workers")
		at := 0
		for id := range workers {
			w := cpu.Worker{ID: id, N: workers}
			lo, hi := w.Share(n, unit)
			if lo != at || hi < lo || lo%unit != 0 && lo != n {
				t.Fatalf("worker %d of %d has %d to %d, after %d", id, workers, lo, hi, at)
			}
			at = hi
		}
		if at != n {
			t.Fatalf("shares end at %d of %d", at, n)
		}
	})
}
