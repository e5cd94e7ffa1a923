package telemetry

import (
	"context"
	"crypto/rand"
	"net/http"
)

// RequestIDHeader carries a request's id both ways.
const RequestIDHeader = "X-Request-Id"

const maxRequestID = 64

// NewRequestID returns the id that a request brings, if it has the form of one,
// else a new one.
func NewRequestID(r *http.Request) string {
	if id := r.Header.Get(RequestIDHeader); saneID(id) {
		return id
	}
	return "req_" + rand.Text()
}

// saneID keeps out what could forge a log line or fill one.
func saneID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

type requestIDKey struct{}

// WithRequestID returns a context whose log lines carry the id.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the id of a context, or empty.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
