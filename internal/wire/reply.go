package wire

import (
	"io"
	"net/http"
)

// Reply is a model server's answer whose headers have come. The body streams;
// reading it returns io.EOF only at the end that the server declared. Whoever
// gets a Reply closes its Body, which ends the call upstream.
type Reply struct {
	Status int
	Header http.Header
	Body   io.ReadCloser
}
