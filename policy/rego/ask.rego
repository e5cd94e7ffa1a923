package weir.gate

import data.weir.settings

# question says how the user is asked, if that is the decision.
default question := {}

question := {"ask": object.union(settings.ask, {"choices": choices})} if overall.action == "ask_user"

# Masking is offered only if it can be done to all that is asked about.
choices := settings.ask.choices if {
	every v in findings {
		mask_offered(v)
	}
	every v in opaque {
		v.action != "ask_user"
	}
} else := [c | some c in settings.ask.choices; c != "mask"]

mask_offered(v) if v.action != "ask_user"

mask_offered(v) if input.findings[v.index].maskable
