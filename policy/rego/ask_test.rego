package weir.gate_test

import data.weir.gate

# ask is how the user is asked about some findings and opaque parts.
ask(findings, parts) := d.ask if {
	d := gate.decision with input as request(findings, parts) with data.weir.settings as settings
}

test_a_question_says_how_it_is_asked if {
	ask([found("STORY", {})], []) == {
		"timeout_seconds": 60, "on_timeout": "refuse",
		"choices": ["mask", "keep_local", "allow", "refuse"],
	}
}

test_nothing_is_asked_where_something_stricter_stands if {
	not ask([found("STORY", {}), found("NUMBER", {})], [])
	not ask([found("NAME", {})], [])
}

test_masking_is_not_offered_where_it_cannot_be_done if {
	without := ["keep_local", "allow", "refuse"]
	ask([found("STORY", {"maskable": false})], []).choices == without
	ask([found("STORY", {}), found("STORY", {"maskable": false, "source": "tool"})], []).choices == without
	ask([], [unread("audio", {})]).choices == without
	ask([found("STORY", {})], [unread("audio", {})]).choices == without
}

test_masking_is_offered_whatever_else_stands_there if {
	"mask" in ask([found("STORY", {}), found("FREE", {"maskable": false})], [unread("file", {})]).choices
}
