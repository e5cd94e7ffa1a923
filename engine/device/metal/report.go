package metal

import (
	"fmt"
	"strings"
	"time"

	"weir/engine/device"
)

// Report is what a first look at a machine finds: whether its GPU will do,
// whether Apple's compiler takes every kernel, and whether the matrix units
// give the right numbers. It says nothing of speed.
type Report struct {
	System    string // version of macOS
	Caps      device.Caps
	Metal4    bool
	Residency bool // the system keeps memory resident on request
	Tests     []Result
	Units     []UnitReport
	Replay    time.Duration // what the host spent on starting a recorded launch again
	Err       error         // why the GPU cannot be used at all
}

// UnitReport is one unit of kernels and how its compilation went.
type UnitReport struct {
	Name    string
	Variant string
	Kernels int
	Took    time.Duration
	Err     error
}

// OK says that nothing is wrong.
func (r Report) OK() bool {
	ok := r.Err == nil
	for _, t := range r.Tests {
		ok = ok && t.Err == nil
	}
	for _, u := range r.Units {
		ok = ok && u.Err == nil
	}
	return ok
}

// String is the report as lines of text.
func (r Report) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if r.Err != nil {
		line("not usable: %v", r.Err)
		return b.String()
	}
	line("%s, %s, macOS %s", r.Caps.Name, r.Caps.Family, r.System)
	line("Metal 4: %v, tensor operations: %v, residency sets: %v", r.Metal4, r.Caps.Tensor, r.Residency)
	line("memory %d MiB, longest buffer %d MiB, threadgroup memory %d KiB", r.Caps.Memory>>20, r.Caps.MaxBuffer>>20, r.Caps.Shared>>10)
	for _, t := range r.Tests {
		line("self-test %-8s %3d rows: %s", t.Variant, t.Rows, outcome(t.Took, t.Err))
	}
	for _, u := range r.Units {
		line("unit %-20s %-8s %2d kernels: %s", u.Name, u.Variant, u.Kernels, outcome(u.Took, u.Err))
	}
	if r.Replay > 0 {
		line("starting a recorded launch again takes the host %v", r.Replay.Round(100*time.Nanosecond))
	}
	return b.String()
}

func outcome(took time.Duration, err error) string {
	if err != nil {
		return "FAILED: " + err.Error()
	}
	return "ok, " + took.Round(time.Microsecond).String()
}
