package custom

// Windows returns what a pattern is run over: the piece whose matches count, and
// the text around it, as begin, from, to, end.
func Windows(s string) (out [][4]int) {
	for w := range windows(s) {
		out = append(out, [4]int{w.begin, w.from, w.to, w.end})
	}
	return out
}

// MaxWindow bounds the text that a pattern sees at once.
const MaxWindow = lead + piece + MaxMatch
