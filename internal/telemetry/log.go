// Package telemetry is how Weir says what it does: logs and metrics, and the
// small middleware that both need.
//
// Begin at [NewLogger] and [NewMetrics].
//
// It promises that content does not get out this way, whatever a caller passes:
// an attribute whose key is not in the list of keys.go is withheld, an error is
// shown by the kinds of its chain and only by texts known to hold nothing, a
// value of an unknown type by its type, a panic by its type and place, and what
// the standard library would log on its own by its length. Metric labels come
// from fixed sets; anything else is counted as other.
//
// What happened to a request and why is not logged here but recorded, see
// package weir/internal/audit.
package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"unicode/utf8"
)

// Longest texts that are logged, in bytes. They bound what a slip could show.
const (
	maxText  = 256
	maxStack = 8 << 10
)

// NewLogger returns a logger that writes to w. Level is debug, info, warn or
// error; format is text or json.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q: must be debug, info, warn or error", level)
	}
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(NewHandler(slog.NewTextHandler(w, opts))), nil
	case "json":
		return slog.New(NewHandler(slog.NewJSONHandler(w, opts))), nil
	}
	return nil, fmt.Errorf("log format %q: must be text or json", format)
}

// NewHandler returns a handler that hands on to next only what may be shown, and
// adds the request id of the context.
func NewHandler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ next slog.Handler }

func (h handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, clip(r.Message, maxText), r.PC)
	if id := RequestID(ctx); id != "" {
		out.AddAttrs(slog.String("request_id", id))
	}
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(clean(a))
		return true
	})
	return h.next.Handle(ctx, out)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = clean(a)
	}
	return handler{h.next.WithAttrs(out)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.next.WithGroup(name)} }

// withheld stands for a value that is not shown.
const withheld = "withheld"

func clean(a slog.Attr) slog.Attr {
	if a.Equal(slog.Attr{}) {
		return a
	}
	// The error that wraps a safe one is not itself safe: see errorText.
	if err, ok := a.Value.Any().(error); ok && allowed(a.Key) {
		return slog.String(a.Key, errorText(err))
	}
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		// A group without a key is inlined, so only its members need one.
		if a.Key != "" && !allowed(a.Key) {
			return slog.String(a.Key, withheld)
		}
		members := v.Group()
		out := make([]slog.Attr, len(members))
		for i, m := range members {
			out[i] = clean(m)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(out...)}
	}
	if !allowed(a.Key) {
		return slog.String(a.Key, withheld)
	}
	return slog.Attr{Key: a.Key, Value: show(a.Key, v)}
}

func show(key string, v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		limit := maxText
		if key == "stack" {
			limit = maxStack
		}
		return slog.StringValue(clip(v.String(), limit))
	case slog.KindAny:
		switch x := v.Any().(type) {
		case nil:
			return v
		case error:
			return slog.StringValue(errorText(x))
		default:
			return slog.StringValue(fmt.Sprintf("(%T)", x))
		}
	default:
		return v
	}
}

// clip shortens a text to at most n bytes, at a character's edge.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
