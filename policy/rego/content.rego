package weir.gate

import data.weir.settings

# What findings and opaque content have in common.

# configured is the action for a label or a kind of opaque content: what is set
# for the client's key, else for the source, else for the label or kind itself.
configured(name, source) := {"action": action, "rule": "key_override"} if {
	action := settings.keys[input.caller.key][name]
} else := {"action": action, "rule": "source_override"} if {
	action := settings.sources[source][name]
} else := {"action": action, "rule": "label_action"} if {
	action := settings.actions[name]
} else := {"action": action, "rule": "opaque_kind"} if {
	action := settings.opaque[name]
} else := {"action": settings.unknown_label, "rule": "unknown_label"}

# circumstance changes an action for content that the user has answered for, or
# that was decided in an earlier turn.
circumstance(part, base) := {"action": part.answer, "rule": "answered"} if {
	part.answer != ""
	base.action == "ask_user"
} else := {"action": answer_to_refusal[part.answer], "rule": "answered_refusal"} if {
	# A refused turn comes back with every later one: without this its
	# conversation could never go on.
	part.settled
	base.action == "refuse"
} else := {"action": action, "rule": "settled"} if {
	part.settled
	action := settings.settled[base.action]
} else := base

# An answer lowers a settled refusal, but not to sending the content as it is.
answer_to_refusal := {"allow": "mask", "mask": "mask", "keep_local": "keep_local"}

# A model on this device may see all that is not refused.
at_destination(v) := {"action": "allow", "rule": "local_destination"} if {
	input.destination.kind == "local"
	v.action != "refuse"
} else := v
