package policy

import "slices"

// DecisionVersion is the version of the decision document that this package
// reads.
const DecisionVersion = 1

// The styles of a placeholder.
const (
	// StylePlaceholder is an opaque word such as EMAIL_Q7K2M.
	StylePlaceholder = "placeholder"
	// StyleSurrogate is a made-up value of the same shape.
	StyleSurrogate = "surrogate"
)

// Decision is what the policy decided for a step.
type Decision struct {
	// Version is [DecisionVersion].
	Version int `json:"version"`
	// Action is the action for the whole step: the strictest of all actions in
	// Findings and Opaque and of what the policy said for the whole.
	Action Action `json:"action"`
	// Rule names the rule that gave Action, and Reason says why in words for
	// the user.
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
	// Findings has one entry for each of [Input.Findings], in its order.
	Findings []FindingDecision `json:"findings"`
	// Opaque has one entry for each of [Input.Opaque], in its order.
	Opaque []OpaqueDecision `json:"opaque"`
	// Ask says how to ask. It is there exactly when Action is [AskUser]; what is
	// asked about is the entries whose own action is [AskUser], or the step as
	// a whole if there is none.
	Ask *Ask `json:"ask,omitempty"`
	// PolicyVersion is [Policy.Version] of the policy that decided.
	PolicyVersion string `json:"policy_version,omitempty"`
}

// FindingDecision is what happens to one finding.
type FindingDecision struct {
	// Index is the finding's place in [Input.Findings].
	Index  int    `json:"index"`
	Action Action `json:"action"`
	// Style says what replaces the value, if and only if Action is [Mask]:
	// [StylePlaceholder] or [StyleSurrogate].
	Style  string `json:"style,omitempty"`
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// OpaqueDecision is what happens to one piece of opaque content. Its action is
// never [Mask].
type OpaqueDecision struct {
	// Index is the content's place in [Input.Opaque].
	Index  int    `json:"index"`
	Action Action `json:"action"`
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// Ask says how the user is asked.
type Ask struct {
	// TimeoutSeconds is how long to wait, from 1 to 86400.
	TimeoutSeconds int `json:"timeout_seconds"`
	// OnTimeout is what happens if nobody answers: [Mask], [KeepLocal] or
	// [Refuse].
	OnTimeout Action `json:"on_timeout"`
	// Choices is what the user may choose, at least one, in the order to show
	// them: [Allow], [Mask], [KeepLocal] or [Refuse].
	Choices []Action `json:"choices"`
}

// clone returns a copy that shares no memory which could be written to.
func (d Decision) clone() Decision {
	d.Findings = slices.Clone(d.Findings)
	d.Opaque = slices.Clone(d.Opaque)
	if d.Ask != nil {
		ask := *d.Ask
		ask.Choices = slices.Clone(ask.Choices)
		d.Ask = &ask
	}
	return d
}
