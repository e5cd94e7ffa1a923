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

# What a model on this device may not be refused for is dropped where the step
# goes to one.
step_verdicts := [v |
	some v in step_rules
	at_destination(v) == v
]
