package gate

import "weir/internal/audit"

// Record writes the decision for the audit log: labels, places and counts.
// Placement is where the step will run, or empty; upstream its destination.
func (d *Decided) Record(placement, upstream, upstreamKind string) audit.Record {
	r := audit.Record{
		Task: d.task.ID(), Caller: d.step.Caller, Kind: d.step.Kind, Mode: d.step.Mode,
		Upstream: upstream, UpstreamKind: upstreamKind, Placement: placement,
		Action: string(d.Action()), Rule: d.Rule(), Reason: d.Reason(),
	}
	if len(d.findings) > 0 {
		r.Sensitivity = &audit.Sensitivity{Score: d.sensitivity.Score, Class: string(d.sensitivity.Class)}
	}
	for n, f := range d.findings {
		rule := "undecided"
		if d.failed == nil {
			rule = d.verdicts[n].Rule
		}
		r.Findings = append(r.Findings, audit.Finding{
			Label: string(f.Label), Source: string(f.Place.Source), Action: string(d.actionOf(n)), Rule: rule, Count: 1,
		})
	}
	for _, o := range d.Examined.opaque {
		if r.Opaque == nil {
			r.Opaque = map[string]int{}
		}
		r.Opaque[o.Kind]++
	}
	return r
}
