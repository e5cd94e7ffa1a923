package router

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json"

	"weir/internal/wire"
)

type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Context int    `json:"context_length,omitzero"`
}

func object(m Model) modelObject {
	return modelObject{ID: m.ID, Object: "model", Created: m.Created, OwnedBy: m.OwnedBy, Context: m.Context}
}

func (s *Server) models(r *http.Request) []Model {
	ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
	defer cancel()
	auth := ""
	if len(s.opts.Keys) == 0 {
		auth = r.Header.Get("Authorization")
	}
	return s.Routes.list(ctx, auth)
}

// listModels is GET /v1/models: all names that a request may use.
func (s *Server) listModels(w http.ResponseWriter, r *http.Request) {
	list := struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
	}{Object: "list", Data: []modelObject{}}
	for _, m := range s.models(r) {
		list.Data = append(list.Data, object(m))
	}
	writeJSON(w, http.StatusOK, list)
}

// getModel is GET /v1/models/{id}; ids may hold slashes.
func (s *Server) getModel(w http.ResponseWriter, r *http.Request) {
	id := chi.URLParam(r, "*")
	for _, m := range s.models(r) {
		if m.ID == id {
			writeJSON(w, http.StatusOK, object(m))
			return
		}
	}
	wire.WriteError(w, wire.Errorf(wire.CodeModelNotFound, "no model goes by this name; GET /v1/models lists them"))
}

// writeJSON answers with v, which the caller knows to be writable as JSON.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		wire.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client may be gone; there is nobody to tell
}
