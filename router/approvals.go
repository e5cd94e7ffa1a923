package router

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json"

	"weir/internal/approve"
	"weir/internal/store"
	"weir/internal/wire"
)

// Approval is a question to the user as the API shows it. It holds findings in
// clear: it is answered to local callers only.
type Approval struct {
	ID          string         `json:"id"`
	Task        string         `json:"task"`
	Caller      string         `json:"caller"`
	Destination string         `json:"destination"`
	Labels      map[string]int `json:"labels"`
	Excerpts    []Excerpt      `json:"excerpts"`
	Choices     []string       `json:"choices"`
	OnTimeout   string         `json:"on_timeout"`
	Asked       time.Time      `json:"asked"`
	Until       time.Time      `json:"until"`
	Waiting     bool           `json:"waiting"`
}

// Excerpt is a finding with the text around it.
type Excerpt struct {
	Label  string `json:"label"`
	Before string `json:"before"`
	Text   string `json:"text"`
	After  string `json:"after"`
}

// listApprovals is GET /v1/weir/approvals: the open questions, oldest first. A
// caller sees its own.
func (s *Server) listApprovals(w http.ResponseWriter, r *http.Request) {
	out := struct {
		Data []Approval `json:"data"`
	}{Data: []Approval{}}
	for _, p := range s.Approvals.Pending(r.Context()) {
		if p.Caller != caller(r.Context()) {
			continue
		}
		a := Approval{
			ID: p.ID, Task: p.Task, Caller: p.Caller, Destination: p.Destination, Labels: p.Counts, Excerpts: []Excerpt{},
			Choices: p.Choices, OnTimeout: p.OnTimeout, Asked: p.Asked, Until: p.Until, Waiting: p.Waiting,
		}
		for _, e := range p.Excerpts {
			a.Excerpts = append(a.Excerpts, Excerpt(e))
		}
		out.Data = append(out.Data, a)
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, out)
}

// AnswerRequest is the body of POST /v1/weir/approvals and
// POST /v1/weir/approvals/{id}.
type AnswerRequest struct {
	ID     string `json:"id"`
	Choice string `json:"choice"`
	// Scope is once (the default), task or always.
	Scope string `json:"scope"`
}

// answerApproval takes the user's answer. The first answer wins.
func (s *Server) answerApproval(w http.ResponseWriter, r *http.Request) {
	body, err := s.readBody(w, r)
	if err != nil {
		wire.WriteError(w, err)
		return
	}
	var a AnswerRequest
	if json.Unmarshal(body, &a) != nil {
		wire.WriteError(w, wire.Errorf(wire.CodeInvalidRequest, "the body must be an object with choice and scope"))
		return
	}
	id := first(chi.URLParam(r, "id"), a.ID)
	if !s.isOpen(r, id) {
		wire.WriteError(w, answerError(approve.ErrNotFound))
		return
	}
	scope := approve.Scope(first(a.Scope, string(approve.Once)))
	if err := s.Approvals.Answer(r.Context(), id, a.Choice, scope, caller(r.Context())); err != nil {
		wire.WriteError(w, answerError(err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// isOpen says that a question may be answered by the caller. One that was
// answered counts: the desk says so itself.
func (s *Server) isOpen(r *http.Request, id string) bool {
	for _, p := range s.Approvals.Pending(r.Context()) {
		if p.ID == id {
			return p.Caller == caller(r.Context())
		}
	}
	return true
}

func answerError(err error) error {
	switch {
	case errors.Is(err, approve.ErrNotFound), errors.Is(err, store.ErrNotFound):
		return wire.Errorf(wire.CodeNotFound, "there is no such question; it may have timed out")
	case errors.Is(err, approve.ErrAnswered):
		return wire.Errorf(wire.CodeApprovalConflict, "this question was answered before")
	case errors.Is(err, approve.ErrInvalidChoice):
		return wire.Errorf(wire.CodeInvalidRequest, "this is not one of the question's choices; the list of questions shows them")
	case errors.Is(err, approve.ErrInvalidScope):
		return wire.Errorf(wire.CodeInvalidRequest, "the scope must be once, task or always")
	}
	return storeError("keep the answer", err)
}

// RememberedAnswer is a choice of the user that holds until it is forgotten; for
// one task, if Task is set.
type RememberedAnswer struct {
	ID      string    `json:"id"`
	Label   string    `json:"label"`
	Choice  string    `json:"choice"`
	Task    string    `json:"task,omitzero"`
	Created time.Time `json:"created"`
}

// listAnswers is GET /v1/weir/answers: what is remembered of the user's choices.
func (s *Server) listAnswers(w http.ResponseWriter, r *http.Request) {
	rows, err := s.Approvals.Remembered(r.Context())
	if err != nil {
		wire.WriteError(w, storeError("read the answers", err))
		return
	}
	out := struct {
		Data []RememberedAnswer `json:"data"`
	}{Data: []RememberedAnswer{}}
	for _, a := range rows {
		if a.Caller == caller(r.Context()) {
			out.Data = append(out.Data, RememberedAnswer{a.ID, a.Label, a.Choice, a.Task, a.Created})
		}
	}
	writeJSON(w, http.StatusOK, out)
}

// forgetAnswer is DELETE /v1/weir/answers/{id}. A caller can forget its own
// answers only.
func (s *Server) forgetAnswer(w http.ResponseWriter, r *http.Request) {
	id := chi.URLParam(r, "id")
	rows, err := s.Approvals.Remembered(r.Context())
	if err == nil {
		err = store.ErrNotFound
		for _, a := range rows {
			if a.ID == id && a.Caller == caller(r.Context()) {
				err = s.Approvals.Forget(r.Context(), id)
			}
		}
	}
	if err != nil {
		wire.WriteError(w, answerError(err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
