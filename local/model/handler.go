package model

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"weir/internal/wire"
)

// maxBody is the longest request over HTTP.
const maxBody = 32 << 20

type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Context int    `json:"context_length,omitzero"`
}

// Handler serves the model over HTTP: GET /health, GET /v1/models and POST
// /v1/chat/completions. Only requests that name one of hosts are answered and
// none that a web page sent, so that a page in the user's browser cannot use the
// model.
func (m *Model) Handler(hosts []string) http.Handler {
	object := modelObject{ID: m.Name(), Object: "model", Created: m.created, OwnedBy: "weir", Context: m.Context()}
	mux := http.NewServeMux()
	on(mux, http.MethodGet, "/health", m.serveHealth)
	on(mux, http.MethodGet, "/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, modelList{"list", []modelObject{object}})
	})
	on(mux, http.MethodGet, "/v1/models/{id...}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") != object.ID {
			wire.WriteError(w, wire.Errorf(wire.CodeModelNotFound, "no such model here"))
			return
		}
		writeJSON(w, http.StatusOK, object)
	})
	on(mux, http.MethodPost, "/v1/chat/completions", m.serveChat)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		wire.WriteError(w, wire.Errorf(wire.CodeNotFound, "there is nothing at this path"))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !slices.Contains(hosts, hostname(r.Host)):
			wire.WriteError(w, wire.Errorf(wire.CodeForbiddenHost, "the Host header is not one that this server answers to"))
		case r.Header.Get("Origin") != "":
			wire.WriteError(w, wire.Errorf(wire.CodeForbiddenOrigin, "web pages may not use the engine directly; weir serve has a list of those that may"))
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

type modelList struct {
	Object string        `json:"object"`
	Data   []modelObject `json:"data"`
}

// on answers one method of a path, and tells others that there is no such method.
func on(mux *http.ServeMux, method, path string, h http.HandlerFunc) {
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			w.Header().Set("Allow", method)
			wire.WriteError(w, wire.Errorf(wire.CodeMethodNotAllowed, "this path takes %s", method))
			return
		}
		h(w, r)
	})
}

func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.Trim(host, "[]")
}

func (m *Model) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if m.Health() != nil {
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "restarting"})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (m *Model) serveChat(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			err = wire.Errorf(wire.CodeBodyTooLarge, "the body is larger than %d bytes", maxBody)
		} else {
			err = wire.Errorf(wire.CodeInvalidRequest, "the body broke off")
		}
		wire.WriteError(w, err)
		return
	}
	reply, err := m.Chat(r.Context(), callerOf(r), raw)
	switch {
	case r.Context().Err() != nil && reply == nil:
		return // nobody listens
	case err != nil:
		wire.WriteError(w, err)
		return
	}
	defer reply.Body.Close()
	copyReply(w, reply)
}

// callerOf tells clients apart: by key, or else by address.
func callerOf(r *http.Request) string {
	if key := r.Header.Get("Authorization"); key != "" {
		return key
	}
	return hostname(r.RemoteAddr)
}

// copyReply writes a reply and flushes each piece as it comes.
func copyReply(w http.ResponseWriter, reply *wire.Reply) {
	for name, values := range reply.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(reply.Status)
	control, buf := http.NewResponseController(w), make([]byte, 32<<10)
	for {
		n, err := reply.Body.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil || control.Flush() != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		wire.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(raw) //nolint:errcheck // the client may be gone; there is nobody to tell
}
