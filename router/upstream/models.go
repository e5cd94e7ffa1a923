package upstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/sashabaranov/go-openai"
)

const (
	modelsPath = "/models"
	// The longest list known is some hundred kilobytes; beyond this it is not
	// a list of models.
	maxModelsBytes = 8 << 20
)

// Model is one entry of a server's list.
type Model struct {
	ID      string
	OwnedBy string
	// Created is in seconds since 1970, or 0.
	Created int64
	// ContextLength is how many tokens the server says the model reads, or 0.
	ContextLength int
}

// modelCache holds the last list. Its turn is a semaphore of one place, so that
// many clients at once ask the server once, and each can still give up waiting.
type modelCache struct {
	turn  chan struct{}
	list  []Model
	until time.Time
	auth  [sha256.Size]byte
}

func newModelCache() modelCache { return modelCache{turn: make(chan struct{}, 1)} }

// Models returns the server's models, at most [Options.ModelsTTL] old. If the
// server cannot be asked the list it last gave is returned instead. clientAuth
// is as in [Request]; a server that passes it on is asked anew when it changes.
func (s *Server) Models(ctx context.Context, clientAuth string) ([]Model, error) {
	c := &s.models
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, s.failure(ctx, ctx.Err(), false)
	}
	var auth [sha256.Size]byte
	if s.opts.PassClientKey {
		auth = sha256.Sum256([]byte(clientAuth))
	}
	same := c.auth == auth
	if same && time.Now().Before(c.until) {
		return slices.Clone(c.list), nil
	}
	list, err := s.fetchModels(ctx, clientAuth)
	switch {
	case err == nil:
		c.list, c.auth, c.until = list, auth, time.Now().Add(s.opts.ModelsTTL)
	case same && c.list != nil && !refused(err):
		s.log.WarnContext(ctx, "upstream models stale", "error", err)
	default:
		return nil, err
	}
	return slices.Clone(c.list), nil
}

// refused says that the server does not want this caller to see its list.
func refused(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden)
}

func (s *Server) fetchModels(ctx context.Context, clientAuth string) ([]Model, error) {
	d := &doer{s: s, clientAuth: clientAuth}
	cfg := openai.DefaultConfig("")
	cfg.BaseURL, cfg.HTTPClient = doerBase, d
	got, err := openai.NewClientWithConfig(cfg).ListModels(ctx)
	if err != nil {
		return nil, d.reduce(err)
	}
	lengths := contextLengths(d.body)
	list := make([]Model, 0, len(got.Models))
	for _, m := range got.Models {
		list = append(list, Model{ID: m.ID, OwnedBy: m.OwnedBy, Created: m.CreatedAt, ContextLength: lengths[m.ID]})
	}
	return list, nil
}

// contextLengths reads what go-openai's type drops: how much context a model
// has, under the names that vLLM, OpenRouter, Groq and LM Studio use. What a
// model was trained for (llama.cpp's n_ctx_train) is not taken: it may be more
// than is being served. A list that cannot be read so has no lengths.
func contextLengths(body []byte) map[string]int {
	var list struct {
		Data []struct {
			ID            string `json:"id"`
			MaxModelLen   int    `json:"max_model_len"`
			ContextLength int    `json:"context_length"`
			ContextWindow int    `json:"context_window"`
			Loaded        int    `json:"loaded_context_length"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &list) != nil {
		return nil
	}
	out := make(map[string]int, len(list.Data))
	for _, m := range list.Data {
		n := cmp.Or(m.MaxModelLen, m.ContextLength, m.ContextWindow, m.Loaded)
		out[m.ID] = max(n, 0)
	}
	return out
}

// doerBase stands for the server in go-openai's URLs and is never dialled.
const doerBase = "http://upstream.invalid"

// doer lets go-openai's client go through [Server.Do], and keeps the reply.
type doer struct {
	s          *Server
	clientAuth string
	status     int
	body       []byte
}

func (d *doer) Do(req *http.Request) (*http.Response, error) {
	resp, err := d.s.Do(req.Context(), Request{
		Method:     req.Method,
		Path:       strings.TrimPrefix(req.URL.String(), doerBase),
		ClientAuth: d.clientAuth,
	})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	d.status = resp.Status
	d.body, err = io.ReadAll(io.LimitReader(resp.Body, maxModelsBytes))
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: resp.Status,
		Header:     resp.Header,
		Body:       io.NopCloser(bytes.NewReader(d.body)),
		Request:    req,
	}, nil
}

// reduce drops go-openai's errors, which quote the reply.
func (d *doer) reduce(err error) error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case d.status >= 300:
		return &Error{Class: ClassStatus, Upstream: d.s.opts.Name, Status: d.status}
	}
	return &Error{Class: ClassProtocol, Upstream: d.s.opts.Name, Err: errMalformed}
}
