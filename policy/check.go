package policy

import (
	"errors"
	"fmt"
)

// check refuses an input that its schema refuses, so that a rule may rely on
// the schema. Errors name the member and never its value.
func (in *Input) check() error {
	switch {
	case in.Version != InputVersion:
		return errors.New("version is not supported")
	case !oneOf(in.Step.Kind, "turn", "loop", "side"):
		return errors.New("step.kind is not known")
	case !oneOf(in.Step.Mode, "auto", "cloud", "local"):
		return errors.New("step.mode is not known")
	case !oneOf(in.Step.Dialect, "chat", "responses", "messages", "scan"):
		return errors.New("step.dialect is not known")
	case !isName(in.Step.Model):
		return errors.New("step.model is no name")
	case !isName(in.Destination.Upstream):
		return errors.New("destination.upstream is no name")
	case !oneOf(in.Destination.Kind, "cloud", "local"):
		return errors.New("destination.kind is not known")
	case !isName(in.Caller.Key) || in.Caller.Key == "":
		return errors.New("caller.key is no name")
	case !isAnswer(in.Task.Answer):
		return errors.New("task.answer is not known")
	case !(in.Sensitivity.Score >= 0 && in.Sensitivity.Score <= 1): // also false for NaN
		return errors.New("sensitivity.score is outside [0,1]")
	case !oneOf(in.Sensitivity.Class, "none", "personal", "sensitive"):
		return errors.New("sensitivity.class is not known")
	}
	for i := range in.Findings {
		if err := in.Findings[i].check(); err != nil {
			return fmt.Errorf("findings[%d]: %w", i, err)
		}
	}
	for i := range in.Opaque {
		if err := in.Opaque[i].check(); err != nil {
			return fmt.Errorf("opaque[%d]: %w", i, err)
		}
	}
	return nil
}

func (f *Finding) check() error {
	switch {
	case !isLabel(f.Label):
		return errors.New("label is no label")
	case !isSource(f.Source):
		return errors.New("source is not known")
	case !isWord(f.Field):
		return errors.New("field is no word")
	case !isName(f.Tool):
		return errors.New("tool is no name")
	case !isName(f.Rule):
		return errors.New("rule is no name")
	case !(f.Score > 0 && f.Score <= 1): // also false for NaN
		return errors.New("score is outside (0,1]")
	case f.Count < 1:
		return errors.New("count is below 1")
	case !isAnswer(f.Answer):
		return errors.New("answer is not known")
	}
	return nil
}

func (o *Opaque) check() error {
	switch {
	case !isOpaqueKind(o.Kind):
		return errors.New("kind is not known")
	case !isSource(o.Source):
		return errors.New("source is not known")
	case o.Count < 1:
		return errors.New("count is below 1")
	case !isAnswer(o.Answer):
		return errors.New("answer is not known")
	}
	return nil
}

// settle holds a decoded decision against the input that it answers, and makes
// the action for the whole the strictest of all.
func (d *Decision) settle(in *Input) error {
	if len(d.Findings) != len(in.Findings) || len(d.Opaque) != len(in.Opaque) {
		return errors.New("not one entry for each part of the input")
	}
	whole := Decision{Action: Allow}
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.Index != i {
			return fmt.Errorf("findings[%d]: index is out of order", i)
		}
		if f.Action == Mask && !in.Findings[i].Maskable {
			return fmt.Errorf("findings[%d]: masks what cannot be masked", i)
		}
		whole.tighten(f.Action, f.Rule, f.Reason)
	}
	for i := range d.Opaque {
		o := &d.Opaque[i]
		if o.Index != i {
			return fmt.Errorf("opaque[%d]: index is out of order", i)
		}
		whole.tighten(o.Action, o.Rule, o.Reason)
	}
	d.tighten(whole.Action, whole.Rule, whole.Reason)
	if d.Action == AskUser && d.Ask == nil {
		return errors.New("asks the user without saying how")
	}
	if d.Action != AskUser {
		d.Ask = nil // something stricter needs no question
	}
	return nil
}

// tighten takes action for the whole if it is stricter than what stands there.
func (d *Decision) tighten(action Action, rule, reason string) {
	if Strictest(d.Action, action) != d.Action {
		d.Action, d.Rule, d.Reason = action, rule, reason
	}
}
