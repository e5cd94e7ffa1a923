package weir.gate_test

import data.weir.gate

test_opaque_content_has_the_action_of_its_kind if {
	every kind in ["image", "audio", "file", "encrypted"] {
		opaque(unread(kind, {}), settings) == [settings.opaque[kind], "opaque_kind"]
	}
}

test_a_kind_without_a_setting_is_treated_as_an_unknown_label if {
	opaque(unread("unexamined", {}), settings) == ["keep_local", "unknown_label"]
}

test_opaque_content_cannot_be_masked if {
	opaque(unread("unknown", {}), settings) == ["keep_local", "unmaskable"]
	opaque(unread("audio", {"answer": "mask"}), settings) == ["keep_local", "unmaskable"]
}

test_opaque_content_stays_here_in_later_turns if {
	opaque(unread("image", {"settled": true}), settings) == ["keep_local", "unmaskable"]
}

test_an_answer_decides_what_was_asked_of_opaque_content if {
	opaque(unread("audio", {}), settings) == ["ask_user", "opaque_kind"]
	opaque(unread("audio", {"answer": "allow"}), settings) == ["allow", "answered"]
	opaque(unread("image", {"answer": "allow"}), settings) == ["keep_local", "opaque_kind"]
}

test_a_model_on_this_device_may_see_opaque_content if {
	o := gate.opaque with input as object.union(
		request([], [unread("image", {}), unread("encrypted", {})]),
		{"destination": {"upstream": "local", "kind": "local"}},
	)
		with data.weir.settings as settings
	[v.action | some v in o] == ["allow", "refuse"]
	o[0].rule == "local_destination"
}
