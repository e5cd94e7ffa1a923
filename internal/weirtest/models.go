package weirtest

import (
	"crypto/sha256"
	"maps"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
)

type model struct {
	ID            string `json:"id"`
	Object        string `json:"object"`
	Created       int64  `json:"created"`
	OwnedBy       string `json:"owned_by"`
	ContextLength int    `json:"context_length"`
}

// contextLength is what the stand-in claims to read.
const contextLength = 128_000

func (s *StandIn) models() []model {
	ids := slices.Sorted(maps.Keys(s.opts.Models))
	for _, name := range Names() {
		if !slices.Contains(ids, name) {
			ids = append(ids, name)
		}
	}
	out := make([]model, 0, len(ids))
	for _, id := range ids {
		out = append(out, model{id, "model", created, Owner, contextLength})
	}
	return out
}

func (s *StandIn) listModels(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", s.models()})
}

func (s *StandIn) getModel(w http.ResponseWriter, r *http.Request) {
	for _, m := range s.models() {
		if m.ID == r.PathValue("id") {
			writeJSON(w, m)
			return
		}
	}
	s.notFound(w, r)
}

func (s *StandIn) notFound(w http.ResponseWriter, _ *http.Request) {
	writeError(w, http.StatusNotFound, "not_found", "There is nothing here.")
}

// embeddings gives each text a vector made from its digest: equal texts have
// equal vectors, and that is all they are good for.
func (s *StandIn) embeddings(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model string   `json:"model"`
		Input textList `json:"input"`
	}
	body, err := readAll(r)
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", "The body is not an embedding request.")
		return
	}
	type item struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float64 `json:"embedding"`
	}
	out := struct {
		Object string `json:"object"`
		Data   []item `json:"data"`
		Model  string `json:"model"`
		Usage  usage  `json:"usage"`
	}{Object: "list", Data: []item{}, Model: req.Model}
	for i, text := range req.Input {
		sum := sha256.Sum256([]byte(text))
		v := make([]float64, 8)
		for j := range v {
			v[j] = float64(sum[j])/127.5 - 1
		}
		out.Data = append(out.Data, item{"embedding", i, v})
		out.Usage.Prompt += len(text) / 4
	}
	out.Usage.Total = out.Usage.Prompt
	writeJSON(w, out)
}

// textList is one text or a list of them.
type textList []string

func (l *textList) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = textList{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(l))
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(encode(v)) //nolint:errcheck // nobody to tell
}
