package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// document is [Decision] as a policy writes it. The pointers tell what is
// missing from what is 0 or empty.
type document struct {
	Decision
	Findings []struct {
		FindingDecision
		Index *int    `json:"index"`
		Style *string `json:"style"`
	} `json:"findings"`
	Opaque []struct {
		OpaqueDecision
		Index *int `json:"index"`
	} `json:"opaque"`
}

// decode reads the value of an evaluated query. It accepts what
// schema/decision.v1.json accepts and nothing else; errors hold no strings of
// the document.
func decode(value any) (Decision, error) {
	if path, found := nullAt(value); found {
		return Decision{}, fmt.Errorf("wrong type at %q", strings.Join(path, "/"))
	}
	raw, err := json.Marshal(value, json.WithMarshalers(json.MarshalToFunc(marshalNumber)))
	if err != nil {
		return Decision{}, errors.New("is not valid JSON")
	}
	var doc document
	if err := json.Unmarshal(raw, &doc, json.RejectUnknownMembers(true)); err != nil {
		var bad *json.SemanticError
		if errors.As(err, &bad) {
			return Decision{}, fmt.Errorf("wrong type or unknown member at %q", bad.JSONPointer)
		}
		return Decision{}, errors.New("is not valid JSON")
	}
	return doc.decision()
}

// nullAt returns the way to a null in v. Null would read as though the member
// were not there.
func nullAt(v any) (path []string, found bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if path, found := nullAt(v[k]); found {
				return append([]string{k}, path...), true
			}
		}
	case []any:
		for i := range v {
			if path, found := nullAt(v[i]); found {
				return append([]string{strconv.Itoa(i)}, path...), true
			}
		}
	}
	return nil, false
}

// marshalNumber writes OPA's numbers. They are of a string type of the standard
// library's first JSON package, which the second would write as a string.
func marshalNumber(enc *jsontext.Encoder, n interface {
	Int64() (int64, error)
	Float64() (float64, error)
	String() string
},
) error {
	return enc.WriteValue(jsontext.Value(n.String()))
}

// decision checks what the types did not.
func (doc *document) decision() (Decision, error) {
	d := doc.Decision
	if d.Version != DecisionVersion {
		return Decision{}, errors.New("version is not supported")
	}
	if err := checkEntry(d.Action, d.Rule, d.Reason); err != nil {
		return Decision{}, err
	}
	if doc.Findings == nil || doc.Opaque == nil {
		return Decision{}, errors.New("findings or opaque is missing")
	}
	d.Findings = make([]FindingDecision, len(doc.Findings))
	for i, f := range doc.Findings {
		if f.Index == nil {
			return Decision{}, fmt.Errorf("findings[%d]: index is missing", i)
		}
		f.FindingDecision.Index = *f.Index
		if f.Style != nil {
			f.FindingDecision.Style = *f.Style
		}
		if (f.Style != nil) != (f.Action == Mask) {
			return Decision{}, fmt.Errorf("findings[%d]: style and mask go together", i)
		}
		if err := f.check(); err != nil {
			return Decision{}, fmt.Errorf("findings[%d]: %w", i, err)
		}
		d.Findings[i] = f.FindingDecision
	}
	d.Opaque = make([]OpaqueDecision, len(doc.Opaque))
	for i, o := range doc.Opaque {
		if o.Index == nil {
			return Decision{}, fmt.Errorf("opaque[%d]: index is missing", i)
		}
		o.OpaqueDecision.Index = *o.Index
		if err := o.check(); err != nil {
			return Decision{}, fmt.Errorf("opaque[%d]: %w", i, err)
		}
		d.Opaque[i] = o.OpaqueDecision
	}
	if d.Ask != nil {
		if err := d.Ask.check(); err != nil {
			return Decision{}, fmt.Errorf("ask: %w", err)
		}
	}
	return d, nil
}

func checkEntry(a Action, rule, reason string) error {
	switch {
	case !a.Valid():
		return errors.New("action is not known")
	case !isWord(rule):
		return errors.New("rule is no word")
	case !isReason(reason):
		return errors.New("reason is no line of text")
	}
	return nil
}

func (f *FindingDecision) check() error {
	if f.Index < 0 {
		return errors.New("index is negative")
	}
	if f.Action == Mask && !isStyle(f.Style) {
		return errors.New("style is not known")
	}
	return checkEntry(f.Action, f.Rule, f.Reason)
}

func (o *OpaqueDecision) check() error {
	if o.Index < 0 {
		return errors.New("index is negative")
	}
	if o.Action == Mask {
		return errors.New("masks what cannot be masked")
	}
	return checkEntry(o.Action, o.Rule, o.Reason)
}

func (a *Ask) check() error {
	if a.TimeoutSeconds < 1 || a.TimeoutSeconds > maxAskSeconds {
		return errors.New("timeout_seconds is out of range")
	}
	if !isOnTimeout(a.OnTimeout) {
		return errors.New("on_timeout is not known")
	}
	if len(a.Choices) == 0 {
		return errors.New("no choices")
	}
	for i, c := range a.Choices {
		if c == "" || !isAnswer(c) {
			return fmt.Errorf("choices[%d] is not known", i)
		}
		for _, other := range a.Choices[:i] {
			if c == other {
				return fmt.Errorf("choices[%d] stands there twice", i)
			}
		}
	}
	return nil
}
