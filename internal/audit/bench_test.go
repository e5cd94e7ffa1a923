package audit_test

import (
	"testing"
)

func BenchmarkAppendLone(b *testing.B) {
	l, _ := newLog(b)
	rec := sample()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Append(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
	}
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
