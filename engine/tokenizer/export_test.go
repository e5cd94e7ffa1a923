package tokenizer

// Split exposes the words of a text to tests.
func Split(s string) []string {
	var words []string
	for len(s) > 0 {
		n := nextWord(s)
		words = append(words, s[:n])
		s = s[n:]
	}
	return words
}
