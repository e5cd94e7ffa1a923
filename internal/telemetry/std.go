package telemetry

import (
	"io"
	"log/slog"
)

// Quiet returns a writer for the standard library's own logger, which quotes
// what peers send: net/http prints the first bytes of a reply that came unasked,
// and of a request it could not parse. A line becomes a constant message with
// its length. The process sets it once with log.SetOutput, and each http.Server
// gets it in its ErrorLog.
func Quiet(log *slog.Logger) io.Writer { return quiet{log} }

type quiet struct{ log *slog.Logger }

func (q quiet) Write(p []byte) (int, error) {
	q.log.Warn("library message withheld", "bytes", len(p))
	return len(p), nil
}
