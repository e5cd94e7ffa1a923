package gpu_test

import (
	"testing"

	"weir/engine/checkpoint"
	"weir/engine/device"
	"weir/engine/gpu"
)

// m5 is an M5 Max, as far as plans depend on it.
func m5() device.Caps {
	return device.Caps{Name: "Apple M5 Max", Family: "apple10", Tensor: true, Units: 40, Memory: 100 << 30, MaxBuffer: 80 << 30, Shared: 32 << 10}
}

// The real model's step has fewer launches and levels than the 605 and 425 of
// the engine that it is compared with.
func TestPlanOfTheRealModel(t *testing.T) {
	t.Parallel()
	step, chunk, err := gpu.Paper(checkpoint.Full(), m5(), 4096, 2048)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", step.Parts)
	t.Logf("%d %d %.4g", step.Launches, step.Levels, step.Cost.Bytes)
	t.Logf("%+v", chunk.Parts)
	t.Logf("%d %d %.4g", chunk.Launches, chunk.Levels, chunk.Cost.Flops)
}
