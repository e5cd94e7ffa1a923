package mask

import (
	"strings"
	"time"
)

// layouts are the ways to write a date that a shift can keep, the likelier
// reading of an ambiguous one first.
var layouts = [...]string{
	"2006-01-02", "2006/01/02", "2006.01.02", "20060102", "2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02 15:04",
	"02.01.2006", "2.1.2006", "02.01.06", "01/02/2006", "1/2/2006", "02/01/2006", "2/1/2006", "01/02/06", "02/01/06",
	"02-01-2006", "01-02-2006", "2-1-2006",
	"2 January 2006", "02 January 2006", "2. January 2006", "2 Jan 2006", "02 Jan 2006", "2-Jan-2006", "02-Jan-2006",
	"January 2, 2006", "January 02, 2006", "January 2 2006", "Jan 2, 2006", "Jan 02, 2006", "Jan 2 2006",
	"Monday, January 2, 2006", "Monday, 2 January 2006", "2 January", "January 2", "2 Jan", "Jan 2", "January 2006", "Jan 2006",
	"2006年1月2日", "2006年01月02日",
}

// shiftDate moves a date by days in its own way of writing, and returns "" for
// what it cannot read. All dates of a task move alike, so that the time between
// two of them stays right.
func shiftDate(s string, days int) string {
	for _, layout := range layouts {
		t, err := time.Parse(layout, s)
		if err != nil || !strings.EqualFold(t.Format(layout), s) {
			continue
		}
		moved := t.AddDate(0, 0, days).Format(layout)
		if s == strings.ToUpper(s) {
			moved = strings.ToUpper(moved)
		}
		return moved
	}
	return ""
}
