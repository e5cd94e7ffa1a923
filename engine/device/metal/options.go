package metal

import (
	"log/slog"

	"weir/metalsrc"
)

// Options choose what a device does. The zero value is right.
type Options struct {
	// Log gets a line when a faster variant of kernels is not used. Nil logs
	// nothing.
	Log *slog.Logger
	// Units replaces the engine's kernels, for tests.
	Units []metalsrc.Unit
}
