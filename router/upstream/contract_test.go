package upstream_test

import (
	"log/slog"
	"testing"

	"weir/internal/weirtest"
	"weir/internal/weirtest/contract"
	"weir/internal/weirtest/leak"
	"weir/router/upstream"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestContract(t *testing.T) {
	t.Parallel()
	for _, kind := range []upstream.Kind{upstream.Cloud, upstream.Local} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			contract.Run(t, func(t *testing.T, s *weirtest.StandIn) contract.Upstream {
				return server(t, upstream.Options{
					Name: "u", Kind: kind, BaseURL: s.URL(), Retry: upstream.Retry{Attempts: 1},
					Breaker: upstream.Breaker{Failures: 1000},
				})
			})
		})
	}
}

// server makes a server that counts nothing and says nothing.
func server(t *testing.T, o upstream.Options) *upstream.Server {
	t.Helper()
	s, err := upstream.New(o, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
