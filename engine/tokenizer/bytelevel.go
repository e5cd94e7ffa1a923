package tokenizer

// The vocabulary file spells bytes as characters, so that it is valid JSON:
// GPT-2's table, in which printable Latin-1 stands for itself and the other 68
// bytes, in ascending order, for U+0100 and on. We undo it while loading, and
// work with bytes.

// byteOf is the inverse of that table.
func byteOf(r rune) (byte, bool) {
	if r < 256 && printable(byte(r)) {
		return byte(r), true
	}
	if r < 256 || r >= 256+68 {
		return 0, false
	}
	n := int(r) - 256
	for b := range 256 {
		if printable(byte(b)) {
			continue
		}
		if n == 0 {
			return byte(b), true
		}
		n--
	}
	return 0, false
}

func printable(b byte) bool {
	return b >= 33 && b <= 126 || b >= 161 && b <= 172 || b >= 174
}

// byteTable is byteOf for every character of the alphabet.
func byteTable() map[rune]byte {
	table := make(map[rune]byte, 256)
	for r := range rune(256 + 68) {
		if b, ok := byteOf(r); ok {
			table[r] = b
		}
	}
	return table
}
