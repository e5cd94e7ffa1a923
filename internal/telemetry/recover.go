package telemetry

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
)

// Recover answers a request whose handler panicked by calling fail, which writes
// an error. If the reply had begun its connection is cut instead, so that no
// client takes a part for the whole. The panic is logged by type and place; its
// value may be anything and is not looked at.
func Recover(log *slog.Logger, next http.Handler, fail http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := &beginning{ResponseWriter: w}
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
				panic(v)
			}
			log.ErrorContext(r.Context(), "panic", "type", fmt.Sprintf("%T", v), "stack", stack())
			if began.yes {
				panic(http.ErrAbortHandler)
			}
			fail(w, r)
		}()
		next.ServeHTTP(began, r)
	})
}

// beginning notes whether a reply has begun. It can be flushed and hijacked
// through [http.ResponseController].
type beginning struct {
	http.ResponseWriter
	yes bool
}

// WriteHeader notes the beginning, unless the status is an interim one.
func (b *beginning) WriteHeader(status int) {
	b.yes = b.yes || status >= 200
	b.ResponseWriter.WriteHeader(status)
}

func (b *beginning) Write(p []byte) (int, error) {
	b.yes = true
	return b.ResponseWriter.Write(p)
}

// FlushError sends the headers, which begins the reply.
func (b *beginning) FlushError() error {
	b.yes = true
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// Flush is FlushError for those who ask for an [http.Flusher].
func (b *beginning) Flush() { b.FlushError() } //nolint:errcheck // the interface has no way to say

// Unwrap lets [http.ResponseController] reach the rest.
func (b *beginning) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// stack lists the functions that led here, without arguments: those of a printed
// stack are only addresses, but there is no need to show them.
func stack() string {
	pcs := make([]uintptr, 64)
	// Past runtime.Callers, stack, the deferred function and runtime.gopanic.
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs)])
	var b strings.Builder
	for {
		f, more := frames.Next()
		if f.Function != "" {
			fmt.Fprintf(&b, "%s:%d\n", f.Function, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}
