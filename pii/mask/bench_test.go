package mask_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/pii"
	"weir/pii/mask"
)

const prose = "The committee met on Tuesday and agreed that the person in charge should prepare a plan for the coming year. "

// hundred is a book of a hundred entries of the usual kinds.
func hundred(tb testing.TB, style mask.Style) *mask.Book {
	b := mask.NewBook(testKey, nil)
	for i := range 25 {
		issue(tb, b, fmt.Sprintf("Given%c Family%c", 'a'+i, 'a'+i), pii.PersonName, style)
		issue(tb, b, fmt.Sprintf("user%d@host%d.example", i, i), pii.EmailAddress, style)
		issue(tb, b, fmt.Sprintf("+1 415 555 01%02d", i), pii.PhoneNumber, style)
		issue(tb, b, fmt.Sprintf("CUST-%06d", 4821*i), pii.AccountID, style)
	}
	return b
}

func BenchmarkStreamWrite(b *testing.B) {
	chunks := map[string]string{
		"20B":        " agreed on a summary",
		"4KB":        strings.Repeat(prose, 40)[:4096],
		"4KB-tokens": strings.Repeat("Ask PERSON_Q7K2M about it, and mail them by noon today. ", 80)[:4096],
	}
	for _, style := range []mask.Style{mask.StylePlaceholder, mask.StyleSurrogate} {
		r := hundred(b, style).Restorer()
		for name, chunk := range chunks {
			for kind, k := range map[string]mask.Kind{"plain": mask.Plain, "json": mask.JSON} {
				b.Run(fmt.Sprintf("%s/%s/%s", style, kind, name), func(b *testing.B) {
					s := r.Stream(k)
					s.Write(`"`)
					b.SetBytes(int64(len(chunk)))
					b.ReportAllocs()
					for b.Loop() {
						s.Write(chunk)
					}
				})
			}
		}
	}
}

func BenchmarkFind50KB(b *testing.B) {
	book := hundred(b, mask.StylePlaceholder)
	text := strings.Repeat(prose+"Mail user7@host7.example or call Givenb Familyb. ", 320)[:50_000]
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		book.Find(text)
	}
}

func BenchmarkLeaks50KB(b *testing.B) {
	entries := hundred(b, mask.StylePlaceholder).Entries()
	body := []byte(quote(strings.Repeat(prose+"\n", 500)[:50_000]))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		mask.Leaks(body, entries)
	}
}

func BenchmarkLeaks2KBFive(b *testing.B) {
	entries := hundred(b, mask.StylePlaceholder).Entries()[:5]
	body := []byte(quote(strings.Repeat(prose+"\n", 20)[:2_000]))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		mask.Leaks(body, entries)
	}
}

func BenchmarkIssueAndFind(b *testing.B) {
	for _, n := range []int{100, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			entries := make([]mask.Entry, n)
			for i := range entries {
				entries[i] = mask.Entry{
					Token: fmt.Sprintf("EMAIL_A2%s", strings.Map(func(r rune) rune { return r - '0' + 'A' }, fmt.Sprintf("%05d", i))),
					Value: fmt.Sprintf("user%d@host.example", i), Label: pii.EmailAddress, Style: mask.StylePlaceholder,
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				book := mask.NewBook(testKey, entries)
				book.Find("nothing")
				book.Restorer()
			}
		})
	}
}

func BenchmarkMask(b *testing.B) {
	book := hundred(b, mask.StylePlaceholder)
	text := strings.Repeat(prose, 18) + "Givenb Familyb"
	spans := []pii.Span{{Start: len(text) - 14, End: len(text), Label: pii.PersonName}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := book.Mask(text, spans, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
