package router

import (
	"bytes"
	"errors"
	"io"

	"weir/internal/wire"
)

// ending finds out whether a stream came to its end: by the end marker, by an
// error object, or by a finish reason for every choice.
type ending struct {
	many   bool // more than one choice was asked for
	done   bool // the end marker has come
	failed bool // the upstream said that something went wrong
	open   map[int]bool
	closed bool // some choice has a finish reason
}

// see looks at an event. Most chunks are only searched for the two names, since
// nearly all of them say nothing of an end.
func (e *ending) see(ev *wire.Event) {
	switch {
	case e.done:
		return
	case ev.Done():
		e.done = true
		return
	case !e.many && !hasValue(ev.Data, "finish_reason") && !hasValue(ev.Data, "error"):
		return
	}
	c, err := wire.ReadCompletion(ev.Data)
	if err != nil {
		return
	}
	for _, ch := range c.Choices {
		if e.open == nil {
			e.open = map[int]bool{}
		}
		e.open[ch.Index] = !ch.Finished && (e.open[ch.Index] || !e.seen(ch.Index))
		e.closed = e.closed || ch.Finished
	}
	for i := range c.Leaves() {
		path := c.Path(i)
		e.failed = e.failed || len(path) > 0 && path[0].Name == "error"
	}
}

func (e *ending) seen(choice int) bool {
	_, ok := e.open[choice]
	return ok
}

// sound says that the stream may stop here.
func (e *ending) sound() bool {
	if e.done || e.failed {
		return true
	}
	for _, open := range e.open {
		if open {
			return false
		}
	}
	return e.closed
}

// completes says that what was left at the end of the bytes is an event that
// lacks nothing but the blank line behind it, and that ends the stream.
func (e *ending) completes(ev *wire.Event, err error) bool {
	if !errors.Is(err, io.ErrUnexpectedEOF) || !ev.HasData {
		return false
	}
	then := *e
	then.see(ev)
	return !e.sound() && then.sound()
}

// hasValue says that data holds a member of the name with a value other than
// null. Names within strings are escaped, so they are not taken for one.
func hasValue(data []byte, name string) bool {
	for {
		i := bytes.Index(data, []byte(name))
		if i < 0 {
			return false
		}
		quoted := i > 0 && data[i-1] == '"'
		data = data[i+len(name):]
		if !quoted || len(data) == 0 || data[0] != '"' {
			continue
		}
		value, ok := bytes.CutPrefix(bytes.TrimLeft(data[1:], " \t\r\n"), []byte(":"))
		if ok && !bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte("null")) {
			return true
		}
	}
}
