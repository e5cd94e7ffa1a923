package weir.gate

# Many identifying values in one step are a file on somebody, or a list of
# customers, whatever each of them is: such a step stays on this machine.
step_rules contains {
	"action": "keep_local",
	"rule": "crowd",
	"reason": "the step holds many identifying values",
} if {
	identifying := [f.count |
		some f in input.findings
		f.direct
		not f.settled
	]
	sum(identifying) > data.weir.settings.custom.most_identifying
}
