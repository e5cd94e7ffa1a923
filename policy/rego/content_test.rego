package weir.gate_test

import data.weir.gate

# verdict is action and rule of one finding, found with settings s.
verdict(finding, s) := [v.action, v.rule] if {
	v := gate.findings[0] with input as request([finding], []) with data.weir.settings as s
}

# opaque is the same of one piece of opaque content.
opaque(part, s) := [v.action, v.rule] if {
	v := gate.opaque[0] with input as request([], [part]) with data.weir.settings as s
}

test_a_label_has_its_action if {
	every label, action in settings.actions {
		verdict(found(label, {}), settings) == [action, "label_action"]
	}
}

test_an_unknown_label_has_the_action_set_for_those if {
	verdict(found("OTHER", {}), settings) == ["keep_local", "unknown_label"]
	verdict(found("OTHER", {}), with_settings({"unknown_label": "refuse"})) == ["refuse", "unknown_label"]
}

test_a_source_can_have_another_action if {
	s := with_settings({"sources": {"tool": {"SECRET": "mask", "image": "allow"}}})
	verdict(found("SECRET", {"source": "tool"}), s) == ["mask", "source_override"]
	verdict(found("SECRET", {"source": "user"}), s) == ["refuse", "label_action"]
	verdict(found("NAME", {"source": "tool"}), s) == ["mask", "label_action"]
	opaque(unread("image", {"source": "tool"}), s) == ["allow", "source_override"]
}

test_a_client_key_can_have_another_action if {
	s := with_settings({
		"keys": {"anonymous": {"SECRET": "keep_local", "image": "refuse"}, "ci": {"NAME": "allow"}},
		"sources": {"user": {"SECRET": "mask", "image": "allow"}},
	})
	verdict(found("SECRET", {}), s) == ["keep_local", "key_override"]
	verdict(found("NAME", {}), s) == ["mask", "label_action"]
	opaque(unread("image", {}), s) == ["refuse", "key_override"]
}

test_an_answer_decides_what_was_asked if {
	every answer in ["allow", "mask", "keep_local", "refuse"] {
		verdict(found("STORY", {"answer": answer}), settings) == [answer, "answered"]
		verdict(found("STORY", {"answer": answer, "settled": true}), settings) == [answer, "answered"]
	}
}

test_an_answer_decides_nothing_else if {
	every label in ["FREE", "NAME", "NUMBER", "SECRET"] {
		verdict(found(label, {"answer": "allow"}), settings) == [settings.actions[label], "label_action"]
	}
}

test_an_answer_lowers_a_settled_refusal_but_not_to_clear_text if {
	every answer, action in {"allow": "mask", "mask": "mask", "keep_local": "keep_local"} {
		verdict(found("SECRET", {"answer": answer, "settled": true}), settings) == [action, "answered_refusal"]
	}
	verdict(found("SECRET", {"answer": "refuse", "settled": true}), settings) == ["refuse", "label_action"]
	verdict(found("SECRET", {"answer": "mask", "settled": false}), settings) == ["refuse", "label_action"]
	verdict(found("NUMBER", {"answer": "allow", "settled": true}), settings) == ["mask", "settled"]
}

test_what_was_decided_is_lowered_as_set if {
	verdict(found("STORY", {"settled": true}), settings) == ["mask", "settled"]
	verdict(found("NUMBER", {"settled": true}), settings) == ["mask", "settled"]
	verdict(found("SECRET", {"settled": true}), settings) == ["refuse", "label_action"]
	verdict(found("NAME", {"settled": true}), settings) == ["mask", "label_action"]
	verdict(found("STORY", {"settled": false}), settings) == ["ask_user", "label_action"]
	verdict(found("STORY", {"settled": true}), with_settings({"settled": {"ask_user": "refuse"}})) == ["refuse", "settled"]
}

# local is the verdict on one finding whose model runs on this device.
local(finding) := [v.action, v.rule] if {
	v := gate.findings[0] with input as object.union(
		request([finding], []),
		{"destination": {"upstream": "local", "kind": "local"}},
	)
		with data.weir.settings as settings
}

test_a_model_on_this_device_sees_all_but_what_is_refused if {
	every label in ["FREE", "NAME", "STORY", "NUMBER", "OTHER"] {
		local(found(label, {})) == ["allow", "local_destination"]
	}
	local(found("NAME", {"maskable": false})) == ["allow", "local_destination"]
	local(found("SECRET", {})) == ["refuse", "label_action"]
}
