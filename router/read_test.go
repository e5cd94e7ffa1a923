package router_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"weir/internal/wire"
)

// contentOf returns the text of an answer, streamed or whole.
func contentOf(t *testing.T, a answer, streamed bool) string {
	t.Helper()
	if !streamed {
		return texts(t, []byte(a.body), "content")
	}
	var b strings.Builder
	done := false
	er := wire.NewEventReader(strings.NewReader(a.body))
	for {
		ev, err := er.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if ev.Done() {
			done = true
		} else if ev.HasData {
			b.WriteString(texts(t, ev.Data, "content"))
		}
	}
	if !done {
		t.Errorf("stream without [DONE]: %s", a.body)
	}
	return b.String()
}

func texts(t *testing.T, data []byte, field string) string {
	t.Helper()
	c, err := wire.ReadCompletion(data)
	if err != nil {
		t.Fatalf("not an answer: %s", data)
	}
	var b strings.Builder
	for _, x := range c.Texts {
		if x.Field == field && x.Choice >= 0 {
			b.WriteString(c.Leaves()[x.Leaf].Value)
		}
	}
	return b.String()
}
