package weir.gate

import data.weir.settings

# finding_verdict is the verdict on one finding: the action that the settings
# name, changed by the first circumstance that applies, and then made to fit
# what can be done.
finding_verdict(i, f) := object.union(
	{
		"index": i,
		"action": final.action,
		"rule": final.rule,
		"reason": reason(f.label, f.source, final),
	},
	style(f.label, final.action),
) if {
	final := at_destination(feasible(f, finding_circumstance(f, configured(f.label, f.source))))
}

style(label, "mask") := {"style": object.get(settings.styles, label, "placeholder")}

style(_, action) := {} if action != "mask"

# A finding that is too uncertain or that identifies nobody is let through
# whatever its label. Any other is decided like all content.
finding_circumstance(f, base) := {"action": "allow", "rule": "low_score"} if {
	uncertain(f)
} else := {"action": settings.quasi_alone, "rule": "quasi_alone"} if {
	not someone_identified
	rank[settings.quasi_alone] < rank[base.action]
} else := circumstance(f, base)

uncertain(f) if f.score < settings.min_score[f.label]

# Something in the request identifies a person, which any direct finding does by
# itself, and so a place or an age in it is about somebody.
someone_identified if {
	some f in input.findings
	f.direct
	not uncertain(f)
}

# What should be masked and cannot be stays here.
feasible(f, v) := {"action": "keep_local", "rule": "unmaskable"} if {
	v.action == "mask"
	not f.maskable
} else := v
