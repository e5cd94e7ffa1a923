package router_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/weirtest"
)

// TestThousandStreams has 1,000 streams open at once: none breaks, memory stays
// within a bound for each, and all of it is given back. It measures the process,
// so no other test runs beside it.
func TestThousandStreams(t *testing.T) { //nolint:paralleltest // see above
	streams := 1000
	if raceDetector {
		streams = 100
	}
	pace := make(chan struct{})
	h := open(t, plan{cloud: weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: 120, Pace: pace}}, noLocal: true})
	h.http.Client().Transport.(*http.Transport).MaxConnsPerHost = 0
	text := func(i int) string {
		return fmt.Sprintf("%d: write to %s at %s. %s", i, person, email, strings.Repeat("Some more words. ", 20))
	}
	heap, goroutines := measure()
	var wg sync.WaitGroup
	var broken atomic.Int64
	for i := range streams {
		wg.Go(func() {
			a := h.post(user("gpt-x", text(i), stream))
			if got := hear(t, a.body); got.done != 1 || got.errs != 0 || got.choices[0].Content != text(i) {
				broken.Add(1)
			}
		})
	}
	for n := range streams { // all have arrived: none has ended
		awaitCall(t, h.cloud, n)
	}
	open, _ := measure()
	close(pace)
	wg.Wait()
	if n := broken.Load(); n > 0 {
		t.Errorf("%d streams broke", n)
	}
	// The stand-in keeps every request that it got, and the client connections.
	h.cloud.Forget()
	h.http.Client().CloseIdleConnections()
	h.http.CloseClientConnections()
	after, left := measure()
	t.Logf("heap: %d KiB before, %d KiB with all open (%d KiB a stream, with both ends of it), %d KiB after; goroutines %d, then %d",
		heap>>10, open>>10, (open-heap)>>10/uint64(streams), after>>10, goroutines, left)
	if perStream := (int64(open) - int64(heap)) / int64(streams); perStream > 400<<10 && !raceDetector {
		t.Errorf("%d bytes a stream", perStream)
	}
	if grown := int64(after) - int64(heap); grown > 24<<20 {
		t.Errorf("%d bytes are still held", grown)
	}
}

// measure returns the live heap and the goroutines, once those that are about to
// end have ended.
func measure() (heap uint64, goroutines int) {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, runtime.NumGoroutine()
}

func awaitCall(t testing.TB, s *weirtest.StandIn, n int) {
	t.Helper()
	done := time.AfterFunc(30*time.Second, func() { s.Close() }) // a limit for failing
	defer done.Stop()
	if _, err := s.Await(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

// The cost of a history: a conversation that grows has requests that take
// longer only by what reading them takes.
func BenchmarkGrowingHistory(b *testing.B) {
	for _, turns := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			h := open(b, plan{cloud: echo(), noLocal: true})
			var messages []string
			for i := range turns {
				messages = append(messages, message("user", fmt.Sprintf("%d: write to %s. %s", i, email, strings.Repeat("Some words. ", 40))), message("assistant", "Done."))
			}
			body := chat(append(messages, message("user", "Go on."))...)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				resp, err := http.Post(h.http.URL+"/v1/chat/completions", "application/json", strings.NewReader(body)) //nolint:noctx // a benchmark's length is its limit
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body) //nolint:errcheck // counted as read
				resp.Body.Close()
				h.cloud.Forget()
			}
		})
	}
}
