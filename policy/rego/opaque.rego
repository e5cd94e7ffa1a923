package weir.gate

# opaque_verdict is the verdict on one piece of content that cannot be examined.
opaque_verdict(i, o) := {
	"index": i,
	"action": final.action,
	"rule": final.rule,
	"reason": reason(o.kind, o.source, final),
} if {
	final := at_destination(examined(circumstance(o, configured(o.kind, o.source))))
}

# What cannot be examined cannot be masked.
examined(v) := {"action": "keep_local", "rule": "unmaskable"} if v.action == "mask"

else := v
