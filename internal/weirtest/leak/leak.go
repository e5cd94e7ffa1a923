// Package leak fails a test binary that leaves goroutines behind.
//
// Begin at [Main], from a package's TestMain. It looks once, after all tests,
// so that parallel tests do not see one another's goroutines, and it waits for
// those that are about to end. It promises to name what is left by its stack.
package leak

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// grace is how long goroutines get to end after the last test. It is a limit
// for failing, not a wait: a clean package does not use it.
const grace = 10 * time.Second

// Main runs the tests and exits with their status, or with 1 if they passed
// and goroutines were left.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if left := remaining(grace); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "%d goroutines left after the tests:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
			code = 1
		}
	}
	os.Exit(code)
}

func remaining(limit time.Duration) []string {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(limit)
	for {
		left := foreign()
		if len(left) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-end:
			return left
		}
	}
}

// foreign returns the stacks of goroutines other than this one and those of
// the test framework.
func foreign() []string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	var out []string
	for i, g := range strings.Split(strings.TrimSpace(string(buf)), "\n\n") {
		// The first is the caller's own.
		if i > 0 && !framework(g) {
			out = append(out, g)
		}
	}
	return out
}

func framework(stack string) bool {
	for _, f := range []string{
		"testing.(*M).", "testing.runFuzz", "internal/fuzz.", "os/signal.signal_recv", "os/signal.loop",
		"runtime.ReadTrace", "testing/internal/testdeps.",
	} {
		if strings.Contains(stack, f) {
			return true
		}
	}
	return false
}
