package weir.gate

import data.weir.settings

# reason says in words what happens to a label or kind in a source, and why.
reason(name, source, v) := sprintf("%s in %s: %s (%s)", [
	object.get(settings.words, name, replace(lower(name), "_", " ")),
	source_words[source],
	action_words[v.action],
	rule_words[v.rule],
])

source_words := {
	"system": "the system text",
	"user": "a user message",
	"assistant": "an earlier reply",
	"tool": "a tool result",
	"tools": "a tool definition",
	"schema": "a response format",
	"metadata": "the metadata",
	"other": "another part of the request",
}

action_words := {
	"allow": "sent as it is",
	"mask": "replaced by a placeholder",
	"ask_user": "held until you have chosen",
	"keep_local": "kept on this device",
	"refuse": "not sent to any model",
}

rule_words := {
	"key_override": "set for this client key",
	"source_override": "set for this part of a request",
	"label_action": "set for this type of value",
	"opaque_kind": "content that cannot be examined",
	"unknown_label": "no setting names this type of value",
	"low_score": "too uncertain to count",
	"quasi_alone": "nothing here identifies a person",
	"answered": "your answer",
	"answered_refusal": "your answer, as far as it may lower a refusal",
	"settled": "decided in an earlier turn",
	"unmaskable": "cannot be replaced by a placeholder where it stands",
	"local_destination": "the model runs on this device",
}
