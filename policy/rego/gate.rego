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

# The strictest verdict stands for the whole, the step's own before those on
# parts, the first before the later.
overall := {"action": strictest.action, "rule": strictest.rule, "reason": strictest.reason} if {
	verdicts := array.concat(step_verdicts, array.concat(findings, opaque))
	highest := max([rank[v.action] | some v in verdicts])
	strictest := [v | some v in verdicts; rank[v.action] == highest][0]
} else := {"action": "allow", "rule": "clean", "reason": "nothing private was found"}
