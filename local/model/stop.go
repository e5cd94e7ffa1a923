package model

import "strings"

// stopper looks for stop strings in text that comes in pieces. What may be the
// beginning of one is held back.
type stopper struct {
	stops []string
	held  string
}

// push takes a piece and returns the text that is certain not to be part of a
// stop string, and whether one has come.
func (s *stopper) push(piece string) (text string, hit bool) {
	if len(s.stops) == 0 {
		return piece, false
	}
	text = s.held + piece
	s.held = ""
	at := -1
	for _, stop := range s.stops {
		if i := strings.Index(text, stop); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	if at >= 0 {
		return text[:at], true
	}
	keep := 0
	for _, stop := range s.stops {
		keep = max(keep, overlap(text, stop))
	}
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep], false
}

// flush returns what was held back, when nothing follows.
func (s *stopper) flush() string {
	text := s.held
	s.held = ""
	return text
}

// overlap is the length of the longest end of text that begins stop.
func overlap(text, stop string) int {
	for n := min(len(text), len(stop)-1); n > 0; n-- {
		if strings.HasSuffix(text, stop[:n]) {
			return n
		}
	}
	return 0
}
