package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
)

// errorText shows an error without what its texts may quote. Errors of libraries
// do quote: a JSON decoder its input, a client the reply. So each element of the
// chain is shown by its type, unless it says itself what may be shown (it has
// LogValue) or is one of those known to be a constant.
func errorText(err error) string {
	var parts []string
	walk(err, func(part string) { parts = append(parts, part) })
	return clip(strings.Join(parts, ": "), maxText)
}

func walk(err error, emit func(string)) {
	for err != nil {
		text, last := describe(err)
		emit(text)
		if last {
			return
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the chain is walked by hand
			for _, e := range joined.Unwrap() {
				walk(e, emit)
			}
			return
		}
		err = errors.Unwrap(err)
	}
}

// describe returns what to show of one element, and whether that says it all.
func describe(err error) (text string, last bool) {
	if v, ok := err.(slog.LogValuer); ok { //nolint:errorlint // this element, not what it wraps
		return slog.AnyValue(v).Resolve().String(), true
	}
	if no, ok := err.(syscall.Errno); ok { //nolint:errorlint // as above
		return no.Error(), true
	}
	for _, known := range constants() {
		if err == known { //nolint:errorlint // as above
			return known.Error(), true
		}
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", err), "*"), false
}

func constants() []error {
	return []error{
		context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, io.ErrShortWrite,
		fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrClosed, net.ErrClosed, os.ErrDeadlineExceeded,
		http.ErrServerClosed, http.ErrHandlerTimeout, http.ErrBodyReadAfterClose, http.ErrAbortHandler,
	}
}
