package router

import (
	"errors"
	"net/http"
	"time"

	"weir/internal/audit"
	"weir/internal/gate"
	"weir/internal/telemetry"
	"weir/internal/wire"
	"weir/pii/mask"
)

// errClientGone ends a request whose client went away. It is nobody's failure.
var errClientGone = errors.New("client went away")

// exchange is one request and its reply: what was found out on the way, kept for
// headers, metrics and the outcome in the audit log.
type exchange struct {
	w       http.ResponseWriter
	r       *http.Request
	id      string
	started time.Time
	caller  string
	auth    string

	stream  bool   // the client asked for a stream
	began   bool   // headers are out
	kind    string // of the step
	text    string // of the last user message
	model   string // as the client named it
	route   route
	explain bool
	// downCloud and downLocal say that the side failed within this request.
	downCloud, downLocal bool

	decided   *gate.Decided
	approval  *audit.Approval
	timedOut  bool // nobody answered in time
	placement Placement
	receipt   audit.Receipt
	label     string // X-Weir-Placement
	upstream  string

	status int
	code   wire.Code
	stats  mask.Stats
}

func (s *Server) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{
		w: w, started: time.Now(), caller: caller(r.Context()), id: telemetry.NewRequestID(r),
		explain: r.Header.Get("X-Weir-Explain") == "1",
	}
	x.r = r.WithContext(telemetry.WithRequestID(r.Context(), x.id))
	// A client key of our own is not for the upstream.
	if len(s.opts.Keys) == 0 || r.Header.Get("X-Weir-Key") != "" {
		x.auth = r.Header.Get("Authorization")
	}
	w.Header().Set(telemetry.RequestIDHeader, x.id)
	w.Header().Set("X-Weir-Request", x.id)
	return x
}

// announce sets the headers that tell where the step ran and why.
func (x *exchange) announce() {
	h := x.w.Header()
	set := func(name, value string) {
		if value != "" {
			h.Set(name, value)
		}
	}
	set("X-Weir-Decision", x.receipt.ID())
	set("X-Weir-Placement", x.label)
	set("X-Weir-Upstream", x.upstream)
	set("X-Weir-Route", x.placement.Rule)
	if x.decided != nil {
		set("X-Weir-Task", x.decided.Task().ID())
		set("X-Weir-Rule", x.decided.Rule())
		if x.placement.Where == OnCloud {
			set("X-Weir-Masked", x.decided.Masked())
		}
	}
	if x.explain && x.decided != nil {
		set("X-Weir-Findings", x.decided.Summary())
	}
}

// fail answers with an error: as a reply of its own, or as the end of a stream
// that has begun.
func (s *Server) fail(x *exchange, err error) {
	e := wire.AsError(err)
	if errors.Is(err, errClientGone) || x.r.Context().Err() != nil && e.Code != wire.CodeBodyTimeout {
		x.status, x.code = statusClientGone, "client_gone"
		return
	}
	x.code = e.Code
	if e.Code == wire.CodeInternal {
		s.Log.ErrorContext(x.r.Context(), "request failed", "error", e.Err)
	}
	if !x.began {
		x.status = e.Status()
		x.announce()
		wire.WriteError(x.w, e)
		return
	}
	x.endStream(e)
}

// statusClientGone is what the log says of a request whose client went away, as
// nginx does.
const statusClientGone = 499

// finish has the outcome written down.
func (s *Server) finish(x *exchange) {
	took := time.Since(x.started)
	s.Metrics.Request(chatRoute, first(x.label, "none"), x.status)
	s.Log.DebugContext(x.r.Context(), "request", "status", x.status, "code", string(x.code), "placement", x.label,
		"upstream", x.upstream, "decision", x.receipt.ID(), "duration", took)
	if x.receipt.IsZero() {
		return
	}
	restored, known := map[string]int{}, 0
	for l, n := range x.stats.Restored {
		restored[string(l)] = n
		known += n
	}
	s.Metrics.Restored(known, x.stats.Unknown)
	s.outcomes.add(x.receipt, audit.Outcome{
		Status: x.status, Code: string(x.code), Restored: restored, Unknown: x.stats.Unknown, Micros: took.Microseconds(),
	})
}
