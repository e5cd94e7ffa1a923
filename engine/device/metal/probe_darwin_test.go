//go:build darwin && arm64

package metal_test

import (
	"testing"

	"weir/engine/device/metal"
)

// The GPU of this Mac. Virtual machines have one that is too old.
func TestThisMac(t *testing.T) {
	r := metal.Probe(metal.Options{})
	if r.Err != nil {
		t.Skip(r.Err)
	}
	t.Log(r)
	if !r.OK() {
		t.Fail()
	}
}
