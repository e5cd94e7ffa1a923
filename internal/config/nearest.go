package config

import "strings"

// nearest returns the word that a mistyped one was probably meant to be, or
// empty if none is near.
func nearest(typed string, words []string) string {
	best, distance := "", 1+len(typed)/3
	typed = strings.ToLower(strings.ReplaceAll(typed, "-", "_"))
	for _, w := range words {
		if d := edits(typed, strings.ToLower(w)); d <= distance && (best == "" || d < distance) {
			best, distance = w, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two words, by bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			corner, row[j+1] = row[j+1], min(corner+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
