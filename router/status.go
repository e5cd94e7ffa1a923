package router

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/go-chi/chi/v5"

	"weir/internal/audit"
	"weir/internal/store"
	"weir/internal/wire"
)

// health is GET /health: the process answers.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

type readiness struct {
	Ready     bool              `json:"ready"`
	Upstreams map[string]string `json:"upstreams"`
	Store     string            `json:"store"`
	Gate      string            `json:"gate"`
}

// ready is GET /readyz: the gate works, the store answers, and at least one
// upstream is there.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := s.probeContext(r)
	defer cancel()
	out := readiness{Upstreams: s.probe(ctx), Store: "ok", Gate: "ok"}
	for _, state := range out.Upstreams {
		out.Ready = out.Ready || state == "ok"
	}
	if _, err := s.Audit.List(ctx, audit.Filter{Limit: 1}); err != nil {
		out.Store, out.Ready = "unavailable", false
	}
	if err := s.Gate.SelfTest(ctx); err != nil {
		s.Log.ErrorContext(ctx, "gate self-test failed", "error", err)
		out.Gate, out.Ready = "failed", false
	}
	select {
	case <-s.closing:
		out.Ready = false
	default:
	}
	status := http.StatusOK
	if !out.Ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, out)
}

// probe asks all upstreams at once.
func (s *Server) probe(ctx context.Context) map[string]string {
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := map[string]string{}
	ask := func(u Upstream) {
		wg.Go(func() {
			state := "ok"
			if err := u.Probe(ctx); err != nil {
				state = "unavailable"
			}
			mu.Lock()
			defer mu.Unlock()
			out[u.Name()] = state
		})
	}
	for i := range s.Routes.Clouds {
		ask(&s.Routes.Clouds[i])
	}
	for i := range s.Routes.Locals {
		ask(&s.Routes.Locals[i])
	}
	wg.Wait()
	return out
}

// decision is GET /v1/weir/decisions/{id}: what was decided, and why. A caller
// sees its own decisions only.
func (s *Server) decision(w http.ResponseWriter, r *http.Request) {
	e, err := s.Audit.Get(r.Context(), chi.URLParam(r, "id"))
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && e.Caller != caller(r.Context()):
		wire.WriteError(w, wire.Errorf(wire.CodeNotFound, "there is no such decision"))
	case err != nil:
		wire.WriteError(w, storeError("read the decision", err))
	default:
		writeJSON(w, http.StatusOK, e)
	}
}

// deleteTask is DELETE /v1/weir/tasks/{id}: placeholders and all. A caller can
// delete its own tasks only.
func (s *Server) deleteTask(w http.ResponseWriter, r *http.Request) {
	id := chi.URLParam(r, "id")
	tasks, err := s.Tasks.List(r.Context(), caller(r.Context()), maxListed)
	if err != nil {
		wire.WriteError(w, storeError("read the tasks", err))
		return
	}
	for _, t := range tasks {
		if t.ID != id {
			continue
		}
		if err := s.Tasks.Delete(r.Context(), id); err != nil && !errors.Is(err, store.ErrNotFound) {
			wire.WriteError(w, storeError("delete the task", err))
			return
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	wire.WriteError(w, wire.Errorf(wire.CodeNotFound, "there is no such task"))
}

const maxListed = 10_000
