package weir.gate

# A request in which something was found in what these tools return stays on this
# device, whatever it was.
step_rules contains {
	"action": "keep_local",
	"rule": "payroll",
	"reason": "the request holds results of a payroll tool",
} if {
	some f in input.findings
	f.source == "tool"
	f.tool in data.weir.settings.custom.payroll_tools
}
