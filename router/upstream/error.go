package upstream

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"

	"weir/local"
)

// Class is what kind of thing went wrong, from a small fixed set.
type Class string

// The classes.
const (
	ClassConnect     Class = "connect"      // no connection, or it ended before a reply began
	ClassTimeout     Class = "timeout"      // no headers, or silence in the body, for too long
	ClassBreakerOpen Class = "breaker_open" // failed too often of late; nothing was sent
	ClassCanceled    Class = "canceled"     // the caller went away
	ClassProtocol    Class = "protocol"     // the reply is not what HTTP or the API says
	ClassBroken      Class = "broken"       // the reply's body broke off
	ClassStatus      Class = "status"       // a call of Weir's own was answered with an error
)

// Error is any failure of an upstream. It holds no content: causes whose text
// may quote a peer are reduced to what kind they are.
type Error struct {
	Class    Class
	Upstream string
	// Status is the HTTP status of a [ClassStatus] error, or 0.
	Status int
	// Err is the cause as far as it is safe to show, or nil.
	Err error
}

// Error says which upstream failed and how.
func (e *Error) Error() string {
	msg := "upstream " + e.Upstream + ": " + string(e.Class)
	if e.Status != 0 {
		msg += fmt.Sprintf(" %d", e.Status)
	}
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// LogValue logs the whole error, since all of it is safe.
func (e *Error) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// Causes of our own.
var (
	errHeaderTimeout = errors.New("no reply within the time limit")
	errIdleTimeout   = errors.New("silence within the reply for longer than the time limit")
	errRedirect      = errors.New("redirect, which is not followed")
	errUpgrade       = errors.New("switches protocols unasked")
	errEncoding      = errors.New("content encoding that was not asked for")
	errClosed        = errors.New("connection ended before a reply")
	errMalformed     = errors.New("malformed reply")
)

// failure classifies what a round trip returned. ctx is the attempt's, began
// says that the first byte of a reply had come.
func (s *Server) failure(ctx context.Context, err error, began bool) *Error {
	e := &Error{Upstream: s.opts.Name}
	e.Class, e.Err = classify(ctx, err, began)
	return e
}

func classify(ctx context.Context, err error, began bool) (Class, error) {
	if cause := context.Cause(ctx); cause != nil {
		return classifyEnd(cause)
	}
	var (
		dns   *net.DNSError
		op    *net.OpError
		cert  *tls.CertificateVerificationError
		rec   tls.RecordHeaderError
		errno syscall.Errno
	)
	switch {
	case errors.Is(err, local.ErrNotLocal):
		return ClassConnect, local.ErrNotLocal
	case errors.As(err, &dns):
		return ClassConnect, errors.New("host name not resolved")
	case errors.As(err, &cert):
		return ClassConnect, certificateCause(cert)
	case errors.As(err, &rec), errors.As(err, &op) && op.Op == "remote error":
		return ClassConnect, errors.New("TLS handshake refused")
	case isTimeout(err):
		return ClassConnect, errors.New("connecting took too long")
	case errors.As(err, &errno):
		return ClassConnect, errno
	case errors.As(err, &op):
		return ClassConnect, errors.New("network error")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return ClassConnect, errClosed
	case !began:
		return ClassConnect, errClosed
	}
	// The rest are net/http's complaints about the reply, which quote it.
	return ClassProtocol, errMalformed
}

func classifyEnd(cause error) (Class, error) {
	switch {
	case errors.Is(cause, errHeaderTimeout), errors.Is(cause, errIdleTimeout):
		return ClassTimeout, cause
	case errors.Is(cause, context.DeadlineExceeded):
		return ClassTimeout, context.DeadlineExceeded
	}
	return ClassCanceled, context.Canceled
}

func certificateCause(err *tls.CertificateVerificationError) error {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &unknown):
		return errors.New("certificate signed by an unknown authority")
	case errors.As(err, &name):
		return errors.New("certificate is for another host")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return errors.New("certificate has expired")
	}
	return errors.New("certificate not valid")
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}

// broken classifies what reading a body returned.
func (s *Server) broken(ctx context.Context, err error) *Error {
	e := &Error{Upstream: s.opts.Name, Class: ClassBroken}
	var (
		errno   syscall.Errno
		corrupt flate.CorruptInputError
	)
	switch cause := context.Cause(ctx); {
	case cause != nil:
		e.Class, e.Err = classifyEnd(cause)
	case errors.As(err, &errno):
		// Both: the callers ask for the first, a log wants the second.
		e.Err = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, errno)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		e.Class, e.Err = ClassProtocol, errMalformed
	default:
		e.Err = io.ErrUnexpectedEOF
	}
	return e
}
