package weir.gate_test

import data.weir.gate

test_a_reason_names_value_place_action_and_rule if {
	f := gate.findings with input as request([found("NAME", {"source": "tool"})], [])
		with data.weir.settings as settings
	f[0].reason == "name of a person in a tool result: replaced by a placeholder (set for this type of value)"
}

test_a_label_without_words_is_spelt_out if {
	f := gate.findings with input as request([found("STAFF_BADGE", {})], []) with data.weir.settings as settings
	startswith(f[0].reason, "staff badge in a user message: kept on this device")
}

test_opaque_content_has_a_reason_too if {
	o := gate.opaque with input as request([], [unread("image", {})]) with data.weir.settings as settings
	o[0].reason == "picture in a user message: kept on this device (content that cannot be examined)"
}

# A source, action or rule without words would leave its findings without a
# verdict.
test_every_source_has_words if {
	every source in ["system", "user", "assistant", "tool", "tools", "schema", "metadata", "other"] {
		gate.reason("NAME", source, {"action": "mask", "rule": "settled"})
	}
}

test_every_action_and_rule_has_words if {
	every action in object.keys(gate.rank) {
		every rule in [
			"key_override", "source_override", "label_action", "opaque_kind", "unknown_label", "low_score",
			"quasi_alone", "answered", "answered_refusal", "settled", "unmaskable", "local_destination",
		] {
			gate.reason("NAME", "user", {"action": action, "rule": rule})
		}
	}
}
