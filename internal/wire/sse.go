package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxEvent is the largest event that [EventReader] takes, in bytes.
const MaxEvent = 16 << 20

// ErrEventTooLarge reports an event over [MaxEvent].
var ErrEventTooLarge = errors.New("server-sent event too large")

// Event is one server-sent event, or one run of lines between events, exactly
// as it came.
type Event struct {
	// Raw is every byte of the event with its line ends and the blank line
	// that ends it. It is valid until the next call of Next.
	Raw []byte
	// Data is the joined value of its data lines.
	Data []byte
	// Name is the value of its event line.
	Name string
	// HasData tells an event from a comment or a lone field.
	HasData bool
}

// Done says that the event is the end marker of the chat dialect.
func (e *Event) Done() bool { return e.HasData && bytes.Equal(bytes.TrimSpace(e.Data), doneMark) }

var doneMark = []byte("[DONE]")

// EventReader splits a stream into events without losing a byte (WHATWG HTML,
// section 9.2.6). Lines may end in LF, CRLF or CR followed by LF; a lone CR is
// taken as part of a line, which no server of this dialect sends.
type EventReader struct {
	r     *bufio.Reader
	begun bool
	raw   []byte
	data  []byte
}

// NewEventReader reads events from r.
func NewEventReader(r io.Reader) *EventReader {
	return &EventReader{r: bufio.NewReaderSize(r, 16<<10)}
}

// byteOrderMark may begin a stream. It belongs to no line, so it is handed on as
// bytes between events.
const byteOrderMark = "\ufeff"

// Next returns the next event. At the end of the stream it returns io.EOF, or
// io.ErrUnexpectedEOF when bytes of an unfinished event were left; the event is
// returned as far as it came. Other errors are the reader's.
func (er *EventReader) Next() (Event, error) {
	er.raw, er.data = er.raw[:0], er.data[:0]
	ev := Event{}
	if !er.begun {
		er.begun = true
		if head, _ := er.r.Peek(len(byteOrderMark)); string(head) == byteOrderMark { // a short stream has none
			n, _ := er.r.Discard(len(byteOrderMark))
			ev.Raw = []byte(byteOrderMark)[:n]
			return ev, nil
		}
	}
	for {
		start := len(er.raw)
		if err := er.line(); err != nil {
			if errors.Is(err, io.EOF) && len(er.raw) > 0 {
				err = io.ErrUnexpectedEOF
				er.field(&ev, er.raw[start:])
			}
			ev.Raw, ev.Data = er.raw, er.data
			return ev, err
		}
		line := bytes.TrimRight(er.raw[start:], "\r\n")
		if len(line) == 0 {
			ev.Raw, ev.Data = er.raw, er.data
			return ev, nil
		}
		er.field(&ev, line)
	}
}

// Buffered returns how many bytes can be read without waiting.
func (er *EventReader) Buffered() int { return er.r.Buffered() }

// line appends one line to raw, its end included.
func (er *EventReader) line() error {
	for {
		part, err := er.r.ReadSlice('\n')
		er.raw = append(er.raw, part...)
		if len(er.raw) > MaxEvent {
			return ErrEventTooLarge
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func (er *EventReader) field(ev *Event, line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if ev.HasData {
			er.data = append(er.data, '\n')
		}
		er.data = append(er.data, value...)
		ev.HasData = true
	case "event":
		ev.Name = string(value)
	}
}

// WriteEvent writes an event with the given data, and name unless it is empty.
// Line breaks in data become further data lines.
func WriteEvent(w io.Writer, name string, data []byte) error {
	var b bytes.Buffer
	if name != "" {
		fmt.Fprintf(&b, "event: %s\n", name)
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

// WriteComment writes a comment line, which keeps a stream alive and which
// every client skips. Text must not hold line breaks.
func WriteComment(w io.Writer, text string) error {
	_, err := fmt.Fprintf(w, ": %s\n\n", text)
	return err
}

// WithData returns the event's bytes with its data replaced. Other lines, line
// ends and order stay; the first data line takes the new value, further ones
// are dropped. data must not hold line breaks.
func (e *Event) WithData(data []byte) []byte {
	out := make([]byte, 0, len(e.Raw)+len(data))
	put := false
	for line := range bytes.Lines(e.Raw) {
		if !bytes.HasPrefix(line, dataField) || len(line) > 4 && line[4] != ':' && line[4] != '\n' && line[4] != '\r' {
			out = append(out, line...)
			continue
		}
		if put {
			continue
		}
		put = true
		out = append(out, "data: "...)
		out = append(out, data...)
		end := len(bytes.TrimRight(line, "\r\n"))
		out = append(out, line[end:]...)
	}
	return out
}

var dataField = []byte("data")
