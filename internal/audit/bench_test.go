package audit_test

import (
	"slices"
	"testing"
	"time"
)

func BenchmarkAppendLone(b *testing.B) {
	l, _ := newLog(b)
	rec := sample()
	var each []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		begin := time.Now()
		if _, err := l.Append(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
		each = append(each, time.Since(begin))
	}
	slices.Sort(each)
	b.ReportMetric(float64(each[len(each)/2]), "p50-ns")
	b.ReportMetric(float64(each[len(each)*99/100]), "p99-ns")
}

// 32 goroutines share commits; ns/op is per append.
func BenchmarkAppendParallel32(b *testing.B) {
	l, _ := newLog(b)
	rec := sample()
	b.ReportAllocs()
	b.SetParallelism(16) // times GOMAXPROCS, 2 on the machine measured
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := l.Append(b.Context(), rec); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// The whole log is read, hashed and compared with its columns.
func BenchmarkVerify1000(b *testing.B) {
	l, _ := newLog(b)
	for range 1000 {
		if _, err := l.Append(b.Context(), sample()); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if rep, err := l.Verify(b.Context()); err != nil || !rep.OK() {
			b.Fatal(rep, err)
		}
	}
}
