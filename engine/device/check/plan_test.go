package check_test

import (
	"path/filepath"
	"slices"
	"testing"

	"weir/engine/checkpoint"
	"weir/engine/device"
	"weir/engine/device/check"
	"weir/engine/device/devicetest"
	"weir/engine/device/emulator"
	"weir/engine/gpu"
)

// recorder keeps the streams that a device is asked to play.
type recorder struct {
	*emulator.Device
	streams []*device.Stream
}

func (r *recorder) Compile(s *device.Stream) (device.Program, error) {
	r.streams = append(r.streams, s)
	return r.Device.Compile(s)
}

// In the streams of a whole model, for a chunk and for a step, no barrier can
// be left out, and nothing that a command waits for.
func TestStreamsOfAModel(t *testing.T) {
	t.Parallel()
	d := devicetest.Emulator(t, emulator.Options{})
	r := &recorder{Device: d}
	file, err := checkpoint.Open(filepath.Join("..", "..", "checkpoint", "testdata", "tiny-a"), checkpoint.Options{AnyDimensions: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := gpu.Load(r, file, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	r.streams = nil // those of a rehearsal, whose memory is gone
	state, err := m.NewState()
	if err != nil {
		t.Fatal(err)
	}
	for _, tokens := range [][]int32{make([]int32, 40), {1}} {
		if err := m.Extend(t.Context(), state, tokens, gpu.Output{}); err != nil {
			t.Fatal(err)
		}
	}
	barriers, waiting := 0, 0
	for _, s := range r.streams {
		barrier, err := device.Order(s, d.Kernel)
		if err != nil {
			t.Fatal(err)
		}
		for i := range barrier {
			if !barrier[i] {
				continue
			}
			barriers++
			barrier[i] = false
			if check.Stream(s, barrier, d.Kernel, d.Caps()) == nil {
				t.Errorf("nobody misses the barrier before command %d (%s)", i, s.Commands[i].Kernel)
			}
			barrier[i] = true
		}
		waits, err := device.Dependencies(s, d.Kernel)
		if err != nil {
			t.Fatal(err)
		}
		if err := check.Graph(s, waits, d.Kernel, d.Caps()); err != nil {
			t.Error(err)
		}
		for i, list := range waits {
			for k := range list {
				waiting++
				waits[i] = slices.Delete(slices.Clone(list), k, k+1)
				if check.Graph(s, waits, d.Kernel, d.Caps()) == nil {
					t.Errorf("nobody misses that command %d waits for %d", i, list[k])
				}
			}
			waits[i] = list
		}
	}
	if barriers < 20 || waiting < 40 {
		t.Errorf("only %d barriers and %d waits in %d streams", barriers, waiting, len(r.streams))
	}
}
