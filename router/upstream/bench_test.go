package upstream_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"weir/router/upstream"
)

// BenchmarkDo is a whole call of a 2 KB prompt, beside the same call made with
// nothing but net/http.
func BenchmarkDo(b *testing.B) {
	reply := bytes.Repeat([]byte("x"), 2<<10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Write(reply)
	}))
	defer srv.Close()
	body := bytes.Repeat([]byte("y"), 2<<10)
	b.Run("bare", func(b *testing.B) {
		transport := &http.Transport{MaxIdleConnsPerHost: 64}
		defer transport.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, srv.URL+"/x", bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
	b.Run("upstream", func(b *testing.B) {
		s, err := upstream.New(upstream.Options{Name: "u", BaseURL: srv.URL}, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		b.ReportAllocs()
		for b.Loop() {
			resp, err := s.Do(b.Context(), upstream.Request{Path: "/x", Body: body})
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
}
