package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"weir/internal/wire"
)

func TestEventReader(t *testing.T) {
	t.Parallel()
	const stream = ": hello\n\ndata: {\"a\":1}\n\nevent: x\r\ndata: 1\r\ndata:2\r\nid: 7\r\n\r\nretry: 5\n\ndata: [DONE]\n\n"
	for name, r := range map[string]io.Reader{
		"at once":     strings.NewReader(stream),
		"byte a time": iotest.OneByteReader(strings.NewReader(stream)),
	} {
		er := wire.NewEventReader(r)
		var raw, data bytes.Buffer
		done := 0
		for {
			ev, err := er.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			raw.Write(ev.Raw)
			if ev.HasData {
				data.WriteString(ev.Name + "|" + string(ev.Data) + ";")
			}
			if ev.Done() {
				done++
			}
		}
		if raw.String() != stream {
			t.Errorf("%s: bytes changed: %q", name, raw.String())
		}
		if got, want := data.String(), "|{\"a\":1};x|1\n2;|[DONE];"; got != want || done != 1 {
			t.Errorf("%s: data %q, want %q; done %d", name, got, want, done)
		}
	}
}

// A stream that stops inside an event must not look like one that ended.
func TestEventReaderCutShort(t *testing.T) {
	t.Parallel()
	er := wire.NewEventReader(strings.NewReader("data: 1\n\ndata: 2\n"))
	if _, err := er.Next(); err != nil {
		t.Fatal(err)
	}
	if ev, err := er.Next(); !errors.Is(err, io.ErrUnexpectedEOF) || string(ev.Raw) != "data: 2\n" {
		t.Errorf("got %q, %v", ev.Raw, err)
	}
}

func TestEventTooLarge(t *testing.T) {
	t.Parallel()
	er := wire.NewEventReader(io.MultiReader(strings.NewReader("data: "), infinite('x')))
	if _, err := er.Next(); !errors.Is(err, wire.ErrEventTooLarge) {
		t.Errorf("got %v", err)
	}
}

type infinite byte

func (b infinite) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

func TestWithData(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"data: 1\n\n", "data: X\n\n"},
		{"event: e\r\ndata:1\r\nid: 3\r\ndata: 2\r\n\r\n", "event: e\r\ndata: X\r\nid: 3\r\n\r\n"},
		{"datum: 1\ndata: 2\n\n", "datum: 1\ndata: X\n\n"},
	} {
		ev, err := wire.NewEventReader(strings.NewReader(tc.in)).Next()
		if err != nil {
			t.Fatal(err)
		}
		if got := string(ev.WithData([]byte("X"))); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.in, got, tc.want)
		}
	}
}

// FuzzEventReader holds the reader to losslessness, and to the rule that how
// bytes arrive does not matter.
func FuzzEventReader(f *testing.F) {
	f.Add([]byte("data: 1\n\n: c\n\nevent: e\r\ndata: 2\r\n\r\n"))
	f.Add([]byte("data\n\ndata:\n\n\n\nx"))
	f.Fuzz(func(t *testing.T, in []byte) {
		type event struct {
			data string
			has  bool
		}
		read := func(r io.Reader) (raw []byte, evs []event) {
			er := wire.NewEventReader(r)
			for {
				ev, err := er.Next()
				raw = append(raw, ev.Raw...)
				if err != nil {
					return raw, evs
				}
				evs = append(evs, event{string(ev.Data), ev.HasData})
			}
		}
		raw, evs := read(bytes.NewReader(in))
		if !bytes.Equal(raw, in) {
			t.Fatalf("bytes changed: %q to %q", in, raw)
		}
		_, evs2 := read(iotest.OneByteReader(bytes.NewReader(in)))
		if len(evs) != len(evs2) {
			t.Fatalf("%d events at once, %d byte by byte", len(evs), len(evs2))
		}
		for i := range evs {
			if evs[i] != evs2[i] {
				t.Fatalf("event %d differs", i)
			}
		}
	})
}

// FuzzReadChat holds the reader to: never panic, no edit means no change, and
// every edit yields a document that reads back.
func FuzzReadChat(f *testing.F) {
	f.Add([]byte(conversation))
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":"{\"a\":\"\\ud83d\"}"}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := wire.ReadChat(in, wire.Limits{})
		if err != nil {
			return
		}
		out, err := c.Splice(nil, nil)
		if err != nil || !bytes.Equal(out, in) {
			t.Fatalf("no edits changed the body (%v)", err)
		}
		if len(c.Places) != len(c.Leaves()) {
			t.Fatalf("%d places for %d leaves", len(c.Places), len(c.Leaves()))
		}
		for i, l := range c.Leaves() {
			c.Pointer(i)
			if l.Kind == wire.Name {
				continue
			}
			out, err := c.Splice([]wire.Edit{{Leaf: i, Start: 0, End: len(l.Value), New: "x"}}, nil)
			if err != nil {
				t.Fatalf("edit of leaf %d: %v", i, err)
			}
			if _, err := wire.Parse(out, wire.Limits{Depth: 1 << 10}, nil); err != nil {
				t.Fatalf("edit of leaf %d broke the body: %v", i, err)
			}
		}
	})
}
