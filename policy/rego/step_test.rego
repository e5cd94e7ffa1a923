package weir.gate_test

import data.weir.gate

tainted := object.union(request([], []), {"task": {"tainted": true, "answer": ""}})

test_taint_alone_changes_nothing if {
	o := gate.overall with input as tainted with data.weir.settings as settings
	o.rule == "clean"
}

test_taint_can_be_made_to_count if {
	s := with_settings({"tainted": "keep_local"})
	o := gate.overall with input as tainted with data.weir.settings as s
	[o.action, o.rule] == ["keep_local", "tainted"]
	clean := gate.overall with input as request([], []) with data.weir.settings as s
	clean.rule == "clean"
}

test_an_answer_for_the_step_decides_what_was_asked if {
	asked := gate.overall with input as tainted with data.weir.settings as with_settings({"tainted": "ask_user"})
	asked.action == "ask_user"
	every answer in ["allow", "keep_local", "refuse"] {
		o := gate.overall with input as object.union(tainted, {"task": {"tainted": true, "answer": answer}})
			with data.weir.settings as with_settings({"tainted": "ask_user"})
		[o.action, o.rule] == [answer, "tainted"]
	}
}

test_an_answer_for_the_step_decides_nothing_else if {
	o := gate.overall with input as object.union(tainted, {"task": {"tainted": true, "answer": "allow"}})
		with data.weir.settings as with_settings({"tainted": "keep_local"})
	o.action == "keep_local"
}

test_a_model_on_this_device_is_only_refused if {
	here := object.union(request([], []), {"destination": {"upstream": "local", "kind": "local"}})
	rule := {"action": "keep_local", "rule": "night", "reason": "it is night"}
	kept := gate.overall with input as here with data.weir.settings as settings with gate.step_rules as {rule}
	kept.rule == "clean"
	refused := gate.overall with input as here
		with data.weir.settings as settings
		with gate.step_rules as {object.union(rule, {"action": "refuse"})}
	refused.action == "refuse"
}

sensed(class) := object.union(request([], []), {"sensitivity": {"score": 0.7, "class": class}})

test_sensitivity_alone_changes_nothing if {
	every class in ["none", "personal", "sensitive"] {
		o := gate.overall with input as sensed(class) with data.weir.settings as settings
		o.rule == "clean"
	}
}

test_sensitivity_can_be_made_to_count if {
	s := with_settings({"sensitivity": {"personal": "allow", "sensitive": "keep_local"}})
	every class, action in {"none": "allow", "personal": "allow", "sensitive": "keep_local"} {
		o := gate.overall with input as sensed(class) with data.weir.settings as s
		o.action == action
	}
	o := gate.overall with input as sensed("sensitive") with data.weir.settings as s
	[o.rule, o.reason] == ["sensitivity", "all that was found makes the conversation sensitive"]
}

test_an_answer_for_the_step_decides_about_sensitivity if {
	s := with_settings({"sensitivity": {"personal": "ask_user"}})
	o := gate.overall with input as object.union(sensed("personal"), {"task": {"tainted": false, "answer": "allow"}})
		with data.weir.settings as s
	[o.action, o.rule] == ["allow", "sensitivity"]
}
