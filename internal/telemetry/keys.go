package telemetry

// allowed says whether values under a key are logged. The list holds what Weir
// or its operator names, counts and times. What a client or a model sends is not
// in it, nor what may repeat it: no model name as asked for, no path, no header.
func allowed(key string) bool {
	switch key {
	case
		// Which part of Weir, doing what.
		"component", "op", "version", "listen", "addr", "file", "dir", "signal", "pid",
		// Which request, by names that Weir gave.
		"request_id", "task", "decision", "approval", "client", "route", "method", "status", "placement",
		// What was decided.
		"action", "label", "labels", "rule", "policy", "findings", "source",
		// Which server, and how it is.
		"upstream", "kind", "class", "state", "attempt", "attempts", "cached",
		// How much and how long.
		"bytes", "count", "duration", "wait", "size", "limit", "restored", "unknown", "rows", "offset",
		// What went wrong.
		"error", "code", "type", "stack", "line", "column":
		return true
	}
	return false
}
