package weir.gate_test

import data.weir.gate

test_a_finding_below_its_score_is_let_through if {
	s := with_settings({"min_score": {"NAME": 0.8, "SECRET": 0.8}})
	verdict(found("NAME", {"score": 0.79}), s) == ["allow", "low_score"]
	verdict(found("SECRET", {"score": 0.79}), s) == ["allow", "low_score"]
	verdict(found("NAME", {"score": 0.8}), s) == ["mask", "label_action"]
	verdict(found("NUMBER", {"score": 0.1}), s) == ["keep_local", "label_action"]
}

test_a_quasi_identifier_alone_is_let_through if {
	verdict(found("PLACE", {"direct": false}), settings) == ["allow", "quasi_alone"]
	verdict(found("PLACE", {"direct": true}), settings) == ["mask", "label_action"]
}

test_a_quasi_identifier_alone_is_never_treated_more_strictly if {
	s := with_settings({"quasi_alone": "keep_local"})
	verdict(found("PLACE", {"direct": false}), s) == ["mask", "label_action"]
	verdict(found("SECRET", {"direct": false}), s) == ["keep_local", "quasi_alone"]
}

# place is the verdict on a quasi-identifier beside another finding.
place(other, s) := [v.action, v.rule] if {
	v := gate.findings[0] with input as request([found("PLACE", {"direct": false}), other], [])
		with data.weir.settings as s
}

test_a_quasi_identifier_counts_beside_a_direct_one if {
	place(found("NAME", {}), settings) == ["mask", "label_action"]
	place(found("FREE", {}), settings) == ["mask", "label_action"]
	place(found("PLACE", {"direct": false, "source": "tool"}), settings) == ["allow", "quasi_alone"]
}

test_a_direct_finding_that_is_too_uncertain_identifies_nobody if {
	s := with_settings({"min_score": {"NAME": 0.95}})
	place(found("NAME", {}), s) == ["allow", "quasi_alone"]
}

test_what_cannot_be_masked_stays_here if {
	verdict(found("NAME", {"maskable": false}), settings) == ["keep_local", "unmaskable"]
	verdict(found("STORY", {"maskable": false, "answer": "mask"}), settings) == ["keep_local", "unmaskable"]
	verdict(found("STORY", {"maskable": false, "answer": "allow"}), settings) == ["allow", "answered"]
	verdict(found("SECRET", {"maskable": false}), settings) == ["refuse", "label_action"]
}

test_a_mask_has_a_style if {
	f := gate.findings with input as request([found("NAME", {}), found("PLACE", {}), found("NUMBER", {})], [])
		with data.weir.settings as with_settings({"styles": {"PLACE": "surrogate", "NUMBER": "surrogate"}})
	f[0].style == "placeholder"
	f[1].style == "surrogate"
	not f[2].style
}
