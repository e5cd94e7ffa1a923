package weirtest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
)

// midway says whether a fault happens within a body.
func (f Fault) midway() bool {
	switch f {
	case HangMidway, Reset, Truncate, CutEvent, ErrorMidway, Garbage:
		return true
	default:
		return false
	}
}

// fail answers with the status that the behaviour names.
func (o *output) fail() {
	body := []byte(o.b.Body)
	if len(body) == 0 {
		body = errorBody(errorCode(o.b.Status), http.StatusText(o.b.Status))
	}
	o.body("application/json", o.b.Status, body)
}

func errorCode(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	case status == http.StatusUnauthorized:
		return "invalid_api_key"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// failsAtOnce does what goes wrong before a reply begins, and says whether
// anything did.
func (o *output) failsAtOnce() bool {
	switch o.b.Fault {
	case Hang:
		o.s.wait(o.r)
	case ResetAtOnce:
		o.hangUp(true)
	case CloseAtOnce:
		o.hangUp(false)
	case Malformed:
		o.raw("SMTP stand-in says hello\r\n\r\n")
	case SwitchProtocol:
		o.raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: stand-in\r\n\r\n")
	case Redirect:
		to := o.b.Text
		if to == "" {
			to = "/v1/elsewhere"
		}
		http.Redirect(o.w, o.r, to, http.StatusTemporaryRedirect)
	default:
		return false
	}
	return true
}

// midway does what goes wrong within a body; next is what would come now. It
// says whether the reply goes on.
func (o *output) midway(next []byte) bool {
	switch o.b.Fault {
	case HangMidway:
		http.NewResponseController(o.w).Flush() //nolint:errcheck // the client may be gone
		o.s.wait(o.r)
	case Reset:
		o.hangUp(true)
	case Truncate:
		// The server then ends the connection without the last chunk.
		panic(http.ErrAbortHandler)
	case CutEvent:
		o.write(next[:len(next)/2])
	case ErrorMidway:
		o.write(append(append([]byte("data: "), errorBody("server_error", "The model stopped.")...), "\n\n"...))
	case Garbage:
		return o.write([]byte("\x00\x01 no event \xff\r\ndata\ndata: {not json\n\nevent\n:\n\n"))
	default:
		return true
	}
	return false
}

// hangUp ends the connection, with a reset or in good order.
func (o *output) hangUp(reset bool) {
	conn, _, err := http.NewResponseController(o.w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		tcp.SetLinger(0) //nolint:errcheck // then it ends in good order
	}
	conn.Close()
}

// raw sends bytes in place of a reply and ends the connection.
func (o *output) raw(text string) {
	conn, _, err := http.NewResponseController(o.w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	conn.Write([]byte(text)) //nolint:errcheck // the client may be gone
}

// shortLength sends more than its Content-Length says, and leaves the
// connection open as a server would that does not know it lies.
func (o *output) shortLength(contentType string, body []byte) {
	conn, _, err := http.NewResponseController(o.w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%s: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		Header, o.s.opts.Kind, contentType, len(body)-2, body)
	// Once hijacked the connection is ours to watch.
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		conn.Read(make([]byte, 1)) //nolint:errcheck // any end will do
	}()
	select {
	case <-gone:
	case <-o.s.closed:
		conn.Close()
		<-gone
	}
}

// compress encodes a body, or says that it did.
func (o *output) compress(body []byte) []byte {
	if o.b.Fault == BadEncoding {
		o.w.Header().Set("Content-Encoding", "stand-in")
		return body
	}
	o.w.Header().Set("Content-Encoding", "gzip")
	if o.b.Fault == BadGzip {
		return body
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(body) //nolint:errcheck // a buffer does not fail
	z.Close()
	return b.Bytes()
}
