package router

import (
	"strings"
	"testing"

	"weir/internal/wire"
	"weir/pii"
	"weir/pii/mask"
)

// BenchmarkRestoreChunk is the work for one chunk of a masked stream.
func BenchmarkRestoreChunk(b *testing.B) {
	book := mask.NewBook([32]byte{}, nil)
	for _, v := range []string{"Ann Lee", "ann.lee@fjord.example", "+1 415 555 0137"} {
		if _, err := book.Issue(v, pii.PersonName, mask.StylePlaceholder, nil); err != nil {
			b.Fatal(err)
		}
	}
	ev, err := wire.NewEventReader(strings.NewReader(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":" the order of it"},"logprobs":null,"finish_reason":null}]}` + "\n\n")).Next()
	if err != nil {
		b.Fatal(err)
	}
	s := newStreamRestorer(book.Restorer())
	b.SetBytes(int64(len(ev.Raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.event(&ev); err != nil {
			b.Fatal(err)
		}
	}
}
