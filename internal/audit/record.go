package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/store"
)

// Record is a decision. Its strings are names: of a key, a model, a rule. None
// may hold text of a conversation; names that a client chooses are cut to
// [MaxName] bytes.
type Record struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// Task and Request are ids.
	Task    string `json:"task,omitzero"`
	Request string `json:"request,omitzero"`
	// Caller is the name of the client key.
	Caller string `json:"caller,omitzero"`

	// Kind is the kind of step: turn, loop, side, plan and so on.
	Kind string `json:"step,omitzero"`
	// Mode and Model are what the client asked for.
	Mode  string `json:"mode,omitzero"`
	Model string `json:"model,omitzero"`
	// Upstream is the destination by its configured name, UpstreamKind what
	// sort it is: cloud, local.
	Upstream     string `json:"upstream,omitzero"`
	UpstreamKind string `json:"upstream_kind,omitzero"`

	// Placement is where the step runs: local, cloud, cloud-masked; empty if
	// it does not run.
	Placement string `json:"placement,omitzero"`
	// Action is the strictest verdict, Rule what gave it and Reason why, in
	// the policy's words.
	Action string `json:"action"`
	Rule   string `json:"rule,omitzero"`
	Reason string `json:"reason,omitzero"`

	Policy     string `json:"policy_version,omitzero"`
	Classifier string `json:"classifier_version,omitzero"`

	// Findings are counts; equal ones are added up.
	Findings []Finding `json:"findings,omitempty"`
	// Sensitivity is how private the conversation is as a whole; nil if nothing
	// was found.
	Sensitivity *Sensitivity `json:"sensitivity,omitempty"`
	// Opaque counts the parts that could not be read, by kind.
	Opaque map[string]int `json:"opaque,omitempty"`
	// Approval is the user's part in it, if there was one.
	Approval *Approval `json:"approval,omitempty"`
}

// Finding counts what was found of one label at one kind of place.
type Finding struct {
	Label  string `json:"label"`
	Source string `json:"source,omitzero"`
	Action string `json:"action"`
	Rule   string `json:"rule,omitzero"`
	Count  int    `json:"count"`
}

// Sensitivity is a score in [0,1] and the class that it gives.
type Sensitivity struct {
	Score float64 `json:"score"`
	Class string  `json:"class"`
}

// Approval is what the user was asked and answered.
type Approval struct {
	ID     string `json:"id,omitzero"`
	Answer string `json:"answer"`
	Scope  string `json:"scope,omitzero"`
	Who    string `json:"who,omitzero"`
}

// Outcome is how a step ended.
type Outcome struct {
	Time time.Time `json:"time"`
	// Status is the HTTP status that the client got.
	Status int `json:"status,omitzero"`
	// Code is the error code, if it failed.
	Code string `json:"code,omitzero"`
	// Restored counts placeholders put back, by label; Unknown those of the
	// right form that stand for nothing.
	Restored map[string]int `json:"restored,omitempty"`
	Unknown  int            `json:"unknown,omitzero"`
	// Micros is the duration in microseconds.
	Micros int64 `json:"micros,omitzero"`
}

// Entry is a decision as the log holds it.
type Entry struct {
	// Seq is the decision's place in the chain.
	Seq int64 `json:"seq"`
	Record
	// Outcome is nil while the step runs, or if it was lost with the process.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// MaxName is the length in bytes to which names are cut.
const MaxName = 256

// stamp is what all rows have in common.
type stamp struct {
	Version int    `json:"v"`
	Row     string `json:"row"`
}

type decisionBody struct {
	stamp
	Record
}

type outcomeBody struct {
	stamp
	ID string `json:"id"`
	Outcome
}

const (
	version     = 1
	rowDecision = "decision"
	rowOutcome  = "outcome"
)

// encode tidies r and returns its canonical bytes (RFC 8785).
func (r *Record) encode() ([]byte, error) {
	for _, s := range []*string{
		&r.Task, &r.Request, &r.Caller, &r.Kind, &r.Mode, &r.Model, &r.Upstream, &r.UpstreamKind,
		&r.Placement, &r.Action, &r.Rule, &r.Reason, &r.Policy, &r.Classifier,
	} {
		*s = clip(*s)
	}
	if r.Approval != nil {
		a := *r.Approval
		a.ID, a.Answer, a.Scope, a.Who = clip(a.ID), clip(a.Answer), clip(a.Scope), clip(a.Who)
		r.Approval = &a
	}
	if r.Sensitivity != nil {
		r.Sensitivity = &Sensitivity{r.Sensitivity.Score, clip(r.Sensitivity.Class)}
	}
	r.Findings = tally(r.Findings)
	r.Opaque = clipKeys(r.Opaque)
	return canonical(decisionBody{stamp{version, rowDecision}, *r})
}

func (o *Outcome) encode(id string) ([]byte, error) {
	o.Code = clip(o.Code)
	o.Restored = clipKeys(o.Restored)
	return canonical(outcomeBody{stamp{version, rowOutcome}, id, *o})
}

func canonical(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	out := jsontext.Value(b)
	if err := out.Canonicalize(); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return out, nil
}

// columns reads from body what the row has in columns.
func columns(body []byte) (store.AuditRow, error) {
	var c struct {
		Version int       `json:"v"`
		Row     string    `json:"row"`
		ID      string    `json:"id"`
		Time    time.Time `json:"time"`
		Task    string    `json:"task"`
		Caller  string    `json:"caller"`
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return store.AuditRow{}, fmt.Errorf("decode audit row: %w", err)
	}
	row := store.AuditRow{ID: c.ID, Time: c.Time, Task: c.Task, Caller: c.Caller, Body: body}
	switch {
	case c.Version != version:
		return row, fmt.Errorf("decode audit row: unknown version %d", c.Version)
	case c.Row == rowDecision:
		row.Kind = store.Decision
	case c.Row == rowOutcome:
		row.Kind = store.Outcome
	default:
		return row, fmt.Errorf("decode audit row: unknown kind of row")
	}
	return row, nil
}

// tally adds up equal findings and sorts them.
func tally(in []Finding) []Finding {
	sum := make(map[Finding]int, len(in))
	for _, f := range in {
		key := Finding{Label: clip(f.Label), Source: clip(f.Source), Action: clip(f.Action), Rule: clip(f.Rule)}
		sum[key] += f.Count
	}
	out := make([]Finding, 0, len(sum))
	for f, n := range sum {
		f.Count = n
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.Source, b.Source),
			cmp.Compare(a.Action, b.Action), cmp.Compare(a.Rule, b.Rule))
	})
	return out
}

func clipKeys(in map[string]int) map[string]int {
	out := make(map[string]int, len(in))
	for k, n := range in {
		out[clip(k)] += n
	}
	return out
}

// clip makes s a name: valid UTF-8 and not long. A client could otherwise write
// a text into the log by asking for a model of that name.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= MaxName {
		return s
	}
	end := MaxName
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
