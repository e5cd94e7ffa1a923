package gate

import (
	"context"

	"weir/pii"
	"weir/policy"
)

// Step is the model call to be decided.
type Step struct {
	Kind     string // turn, loop or side
	Mode     string // auto, cloud or local
	Dialect  string
	Model    string
	Upstream string // where it would go
	Local    bool   // whether that is on this machine
	Caller   string // name of the client's key
	// Answers are the choices of the user, by label or "opaque.KIND".
	Answers map[string]policy.Action
}

// Verdict is what happens to one finding.
type Verdict struct {
	Finding
	Action policy.Action
	Style  string
	Rule   string
	Reason string
}

// Decided is an examined request with the policy's decision on it. Only
// [Gate.Decide] makes one.
type Decided struct {
	*Examined
	step     Step
	decision policy.Decision
	verdicts []Verdict
	opaque   []policy.OpaqueDecision // for each of Examined.opaque
	failed   error
	// cloud is what the decision would be for the cloud, if the step was
	// decided for this machine. It says what of the step must be remembered as
	// kept here.
	cloud *Decided
}

// Decide asks the policy about an examined request. It never fails: without a
// valid decision the step must stay on this machine, and Err says why.
func (g *Gate) Decide(ctx context.Context, e *Examined, s Step) *Decided {
	d := &Decided{Examined: e, step: s}
	in, findingAt, opaqueAt := d.input()
	dec, err := g.decider.Decide(ctx, in)
	if err != nil {
		d.failed = err
		d.decision = policy.Decision{Action: policy.KeepLocal, Rule: "undecided", Reason: "policy gave no valid decision"}
		return d
	}
	d.decision = dec
	d.verdicts = make([]Verdict, len(e.findings))
	for i, f := range e.findings {
		v := dec.Findings[findingAt[i]]
		d.verdicts[i] = Verdict{Finding: f, Action: v.Action, Style: v.Style, Rule: v.Rule, Reason: v.Reason}
	}
	d.opaque = make([]policy.OpaqueDecision, len(e.opaque))
	for i := range e.opaque {
		d.opaque[i] = dec.Opaque[opaqueAt[i]]
	}
	if s.Local && len(e.findings)+len(e.opaque) > 0 {
		s.Local = false
		d.cloud = g.Decide(ctx, e, s)
	}
	return d
}

// input writes the policy's input, and says which of its entries each finding
// and each opaque content became.
func (d *Decided) input() (in policy.Input, findingAt, opaqueAt []int) {
	kind := "cloud"
	if d.step.Local {
		kind = "local"
	}
	in = policy.Input{
		Version:     policy.InputVersion,
		Step:        policy.Step{Kind: d.step.Kind, Mode: d.step.Mode, Dialect: d.step.Dialect, Model: d.step.Model},
		Destination: policy.Destination{Upstream: d.step.Upstream, Kind: kind},
		Caller:      policy.Caller{Key: d.step.Caller},
		Task:        policy.Task{Tainted: d.tainted, Answer: d.step.Answers[WholeStep]},
		Sensitivity: policy.Sensitivity{Score: d.sensitivity.Score, Class: string(d.sensitivity.Class)},
	}
	fs := make([]policy.Finding, len(d.findings))
	for i, f := range d.findings {
		known, _ := pii.Lookup(f.Label)
		fs[i] = policy.Finding{
			Label: string(f.Label), Source: string(f.Place.Source), Field: f.Place.Field, Tool: f.Place.Tool,
			Rule: f.Rule, Score: f.Score, Count: 1, Direct: known.Direct, Settled: f.Settled,
			Answer: answer(d.step.Answers[string(f.Label)], f.Before), Maskable: f.Place.Maskable,
		}
	}
	in.Findings, findingAt = policy.Aggregate(fs)
	opaqueAt = make([]int, len(d.Examined.opaque))
	seen := map[policy.Opaque]int{}
	for i, o := range d.Examined.opaque {
		key := policy.Opaque{
			Kind: o.Kind, Source: string(o.Source), Settled: o.settled,
			Answer: answer(d.step.Answers["opaque."+o.Kind], o.before),
		}
		n, ok := seen[key]
		if !ok {
			n = len(in.Opaque)
			seen[key] = n
			in.Opaque = append(in.Opaque, key)
		}
		in.Opaque[n].Count++
		opaqueAt[i] = n
	}
	return in, findingAt, opaqueAt
}

// answer is the user's choice, or what an earlier step did about the same
// content, as far as that was a choice: an answer is remembered for its turn.
func answer(chosen, before policy.Action) policy.Action {
	if chosen != "" {
		return chosen
	}
	return before
}

// Err returns why there is no valid decision, or nil.
func (d *Decided) Err() error { return d.failed }

// Step returns the step that was decided.
func (d *Decided) Step() Step { return d.step }

// Action is the strictest action of all.
func (d *Decided) Action() policy.Action { return d.decision.Action }

// Rule names the rule behind Action, Reason says it in words.
func (d *Decided) Rule() string { return d.decision.Rule }

// Reason says in words why Action was taken.
func (d *Decided) Reason() string { return d.decision.Reason }

// Ask says how to ask the user, if Action is to ask.
func (d *Decided) Ask() *policy.Ask { return d.decision.Ask }

// Verdicts returns what happens to each finding. The slice is shared.
func (d *Decided) Verdicts() []Verdict { return d.verdicts }

// Labels returns the labels (and "opaque.KIND" names) with the given action, in
// order of first appearance.
func (d *Decided) Labels(a policy.Action) []string {
	var out []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	for _, v := range d.verdicts {
		if v.Action == a {
			add(string(v.Label))
		}
	}
	for i, o := range d.opaque {
		if o.Action == a {
			add("opaque." + d.Examined.opaque[i].Kind)
		}
	}
	return out
}

// MaskDamage is the share of the running turn's text that is masked, in [0,1].
func (d *Decided) MaskDamage() float64 {
	masked, total := 0, 0
	for i, l := range d.chat.Leaves() {
		if p := d.chat.Places[i]; p.Source == "user" && p.Field == "content" && p.Message == len(d.chat.Messages)-1 {
			total += len(l.Value)
		}
	}
	for _, v := range d.verdicts {
		if p := v.Place; v.Action == policy.Mask && p.Source == "user" && p.Field == "content" && p.Message == len(d.chat.Messages)-1 {
			masked += v.End - v.Start
		}
	}
	if total == 0 {
		return 0
	}
	return float64(masked) / float64(total)
}
