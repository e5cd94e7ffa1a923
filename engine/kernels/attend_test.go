package kernels_test

import (
	"testing"

	"weir/engine/kernels"
)

// TestAttendScratch holds that memory for many rows does for fewer: those cut
// the keys into parts, whose sums need room.
func TestAttendScratch(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]kernels.AttendShape{
		"matrix units":    {Heads: 16, KVHeads: 2, Dim: 256, Rotary: 64, Matrix: true, Units: 132},
		"portable":        {Heads: 16, KVHeads: 2, Dim: 256, Rotary: 64, Units: 40},
		"a group of nine": {Heads: 9, KVHeads: 1, Dim: 64, Rotary: 16, Units: 7},
		"never in parts":  {Heads: 4, KVHeads: 2, Dim: 64, Rotary: 16},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := int64(0)
			for s.Rows = 1; s.Rows <= 1100; s.Rows++ {
				n := s.ScratchSize()
				if n < before {
					t.Fatalf("%d rows need %d bytes, one fewer %d", s.Rows, n, before)
				}
				before = n
			}
		})
	}
}
