package leak

import (
	"strings"
	"testing"
	"time"
)

func TestRemaining(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { <-stop; close(stopped) }()
	left := strings.Join(remaining(20*time.Millisecond), "\n\n")
	if !strings.Contains(left, "leak.TestRemaining.func1") {
		t.Errorf("the goroutine that is left is not named:\n%s", left)
	}
	close(stop)
	<-stopped
}

// A goroutine that ends in time is not reported.
func TestRemainingWaits(t *testing.T) {
	stop := make(chan struct{})
	go func() { <-stop }()
	go func() {
		time.AfterFunc(10*time.Millisecond, func() { close(stop) })
	}()
	for _, g := range remaining(grace) {
		if strings.Contains(g, "TestRemainingWaits.") {
			t.Errorf("left:\n%s", g)
		}
	}
}
