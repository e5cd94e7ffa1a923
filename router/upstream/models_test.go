package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/weirtest"
	"weir/router/upstream"
)

func TestModels(t *testing.T) {
	t.Parallel()
	in := standIn(t, weirtest.Options{})
	s := server(t, upstream.Options{Name: "u", BaseURL: in.URL()})
	// Many at once ask the server once.
	var g errgroup.Group
	for range 16 {
		g.Go(func() error {
			list, err := s.Models(t.Context(), "")
			if err == nil && (len(list) == 0 || list[0].OwnedBy != weirtest.Owner || list[0].ContextLength != 128_000 || list[0].Created == 0) {
				err = errors.New("list is not the stand-in's")
			}
			if err == nil {
				list[0].ID = "changed by its reader"
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := len(in.Calls()); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	if list, _ := s.Models(t.Context(), ""); list[0].ID == "changed by its reader" {
		t.Error("a reader changed the cache")
	}
}

// A list is asked for anew when it is old, and served old when the server is
// gone.
func TestModelsStale(t *testing.T) {
	t.Parallel()
	in := standIn(t, weirtest.Options{})
	s := server(t, upstream.Options{Name: "u", BaseURL: in.URL(), ModelsTTL: time.Nanosecond, Retry: fast})
	for range 2 {
		if _, err := s.Models(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(in.Calls()); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
	in.Close()
	if list, err := s.Models(t.Context(), ""); err != nil || len(list) == 0 {
		t.Errorf("%d models, error %v", len(list), err)
	}
	if err := s.Probe(t.Context()); class(err) != upstream.ClassConnect {
		t.Errorf("Probe: %v", err)
	}
}

// One client's list is not shown to another.
func TestModelsPerClient(t *testing.T) {
	t.Parallel()
	in := standIn(t, weirtest.Options{Key: "right"})
	s := server(t, upstream.Options{Name: "u", BaseURL: in.URL(), PassClientKey: true})
	if _, err := s.Models(t.Context(), "Bearer right"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Models(t.Context(), "Bearer wrong")
	var e *upstream.Error
	if !errors.As(err, &e) || e.Status != http.StatusUnauthorized {
		t.Errorf("error %v", err)
	}
	in.Close()
	if list, err := s.Models(t.Context(), "Bearer another"); class(err) != upstream.ClassConnect {
		t.Errorf("%d models of another client, error %v", len(list), err)
	}
}

func TestModelsFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body  string
		code  int
		class upstream.Class
	}{
		"not JSON":     {"<html>" + canary, 200, upstream.ClassProtocol},
		"error":        {`{"error":{"message":"` + canary + `"}}`, 403, upstream.ClassStatus},
		"bare error":   {canary, 500, upstream.ClassStatus},
		"odd lengths":  {`{"data":[{"id":"a","context_length":"many"}]}`, 200, ""},
		"no list":      {`{}`, 200, ""},
		"cut in half":  {`{"data":[{"id":"a"`, 200, upstream.ClassProtocol},
		"wrong shapes": {`{"data":"` + canary + `"}`, 200, upstream.ClassProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, upstream.Options{Name: "u", BaseURL: fixedServer(t, tt.code, tt.body)})
			_, err := s.Models(t.Context(), "")
			if class(err) != tt.class || (err == nil) != (tt.class == "") {
				t.Errorf("error %v, want %q", err, tt.class)
			}
			if err != nil && contains(err, canary) {
				t.Errorf("error quotes the reply: %v", err)
			}
		})
	}
}

func TestModelsCanceled(t *testing.T) {
	t.Parallel()
	s := server(t, upstream.Options{Name: "u", BaseURL: "http://127.0.0.1:9"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Models(ctx, ""); class(err) != upstream.ClassCanceled {
		t.Errorf("error %v", err)
	}
	if h := s.Health(); h.LastError != "" || h.Breaker != "closed" {
		t.Errorf("health %+v", h)
	}
}
