# METADATA
# title: The gate
# description: |
#   Puts the decision together from the verdicts on each finding (finding.rego),
#   on each piece of opaque content (opaque.rego) and on the step as a whole
#   (step.rego).
# scope: package
# schemas:
#   - input: schema
#   - data.weir.settings: schema.settings
package weir.gate

# decision is what Weir reads; see decision.v1.json.
decision := object.union(
	object.union(overall, {
		"version": 1,
		"findings": findings,
		"opaque": opaque,
	}),
	question,
)

# A verdict is {"action", "rule", "reason"}. Those on parts carry the index of
# the part as well.
findings := [finding_verdict(i, f) | some i, f in input.findings]

opaque := [opaque_verdict(i, o) | some i, o in input.opaque]

rank := {"allow": 0, "mask": 1, "ask_user": 2, "keep_local": 3, "refuse": 4}

# An action that is not known ranks highest, so that it comes out on top and
# Weir refuses the decision.
severity(verdict) := object.get(rank, object.get(verdict, "action", ""), count(rank))

verdicts := array.concat(step_verdicts, array.concat(findings, opaque))

# The strictest verdict stands for the whole, the step's own before those on
# parts, an earlier one before a later.
overall := {"action": strictest.action, "rule": strictest.rule, "reason": strictest.reason} if {
	highest := max([severity(v) | some v in verdicts])
	strictest := [v | some v in verdicts; severity(v) == highest][0]
}

overall := {"action": "allow", "rule": "clean", "reason": "nothing private was found"} if {
	count(verdicts) == 0
}
