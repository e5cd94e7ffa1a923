package mask

import "weir/pii"

func (b *Book) Find(text string) []pii.Span { return nil }
func Leaks(body []byte, values []Entry) (pii.Label, bool) { return "", false }
