package weir.gate_test

import data.weir.gate

test_nothing_found_is_clean if {
	d := gate.decision with input as request([], []) with data.weir.settings as settings
	d == {
		"version": 1, "action": "allow", "rule": "clean", "reason": "nothing private was found",
		"findings": [], "opaque": [],
	}
}

test_each_part_has_its_verdict_in_order if {
	d := gate.decision with input as request(
		[found("NAME", {}), found("NUMBER", {}), found("FREE", {})],
		[unread("file", {}), unread("image", {})],
	)
		with data.weir.settings as settings
	[[v.index, v.action] | some v in d.findings] == [[0, "mask"], [1, "keep_local"], [2, "allow"]]
	[[v.index, v.action] | some v in d.opaque] == [[0, "allow"], [1, "keep_local"]]
}

test_strictest_finding_stands_for_the_whole if {
	expected := {
		["FREE", "NAME"]: "mask",
		["STORY", "NAME"]: "ask_user",
		["NUMBER", "STORY"]: "keep_local",
		["NUMBER", "SECRET"]: "refuse",
	}
	every labels, action in expected {
		every order in [labels, array.reverse(labels)] {
			d := gate.decision with input as request([found(l, {}) | some l in order], [])
				with data.weir.settings as settings
			d.action == action
		}
	}
}

test_each_action_is_stricter_than_the_one_before if {
	every pair in [["FREE", "NAME"], ["NAME", "STORY"], ["STORY", "NUMBER"], ["NUMBER", "SECRET"]] {
		o := gate.overall with input as request([found(l, {}) | some l in pair], [])
			with data.weir.settings as settings
		o.action == settings.actions[pair[1]]
	}
}

test_opaque_content_can_be_the_strictest if {
	o := gate.overall with input as request([found("NAME", {})], [unread("image", {})])
		with data.weir.settings as settings
	o.action == "keep_local"
	o.rule == "opaque_kind"
}

test_of_two_equal_verdicts_the_first_gives_the_reason if {
	o := gate.overall with input as request([found("NUMBER", {}), found("OTHER", {})], [])
		with data.weir.settings as settings
	o.rule == "label_action"
}

test_a_rule_for_the_step_comes_first if {
	o := gate.overall with input as request([found("NUMBER", {})], [])
		with data.weir.settings as settings
		with gate.step_rules as {{"action": "keep_local", "rule": "night", "reason": "it is night"}}
	o == {"action": "keep_local", "rule": "night", "reason": "it is night"}
}

# Weir refuses a decision without a known action. What must not happen is that
# a rule with a slip in it counts for nothing.
test_a_rule_with_an_unknown_action_comes_out_on_top if {
	o := gate.overall with input as request([found("SECRET", {})], [])
		with data.weir.settings as settings
		with gate.step_rules as {{"action": "block", "rule": "slip", "reason": "a slip"}}
	o.action == "block"
}

test_a_rule_without_an_action_leaves_no_decision if {
	not gate.decision with input as request([], [])
		with data.weir.settings as settings
		with gate.step_rules as {{"rule": "slip", "reason": "a slip"}}
}
