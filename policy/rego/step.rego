package weir.gate

import data.weir.settings

# step_rules holds verdicts on the step as a whole. It is the place for rules of
# your own: a file that adds to it makes the decision stricter and can never
# make it laxer.
step_rules contains {
	"action": settings.tainted,
	"rule": "tainted",
	"reason": "the request holds text that was derived on this device from content kept here",
} if {
	input.task.tainted
	settings.tainted != "allow"
}

step_rules contains {
	"action": action,
	"rule": "sensitivity",
	"reason": sprintf("all that was found makes the conversation %s", [input.sensitivity.class]),
} if {
	action := settings.sensitivity[input.sensitivity.class]
	action != "allow"
}

# step_verdicts is the same once the user has answered and the destination is
# known: a model on this device may see all that is not refused.
step_verdicts := [v |
	some rule in step_rules
	v := answered_step(rule)
	at_destination(v) == v
]

answered_step(v) := object.union(v, {"action": input.task.answer}) if {
	v.action == "ask_user"
	input.task.answer != ""
} else := v
