package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"weir/engine"
	"weir/engine/checkpoint"
	"weir/engine/device"
	"weir/engine/gpu"
)

type enginePlanCommand struct {
	Context int `default:"4096" help:"Tokens before the step, and before the chunk."`
	Chunk   int `default:"2048" help:"Tokens of the chunk of a prompt."`
	Cores   int `default:"40" help:"Cores of the GPU."`
}

// Run prints what the model launches on a GPU of Apple's, and what an M5 Max
// may be expected to need for it.
func (c enginePlanCommand) Run(_ context.Context, out streams) error {
	caps := device.Caps{
		Name: "Apple GPU", Family: "apple10", Tensor: true, Units: c.Cores,
		Memory: 100 << 30, MaxBuffer: 80 << 30, Shared: 32 << 10,
	}
	step, chunk, err := engine.Plan(checkpoint.Full(), caps, c.Context, c.Chunk)
	if err != nil {
		return err
	}
	fmt.Fprintf(out.out, "decode step after %d tokens: %d launches, %d levels, %.2f GB\n", c.Context, step.Launches, step.Levels, step.Cost.Bytes/1e9)
	if err := printParts(out.out, step); err != nil {
		return err
	}
	fmt.Fprintf(out.out, "\nchunk of %d tokens after %d: %d launches, %d levels, %.2f TFLOP\n", c.Chunk, c.Context, chunk.Launches, chunk.Levels, chunk.Cost.Flops/1e12)
	if err := printParts(out.out, chunk); err != nil {
		return err
	}
	f := m5Max.forecast(step, chunk)
	fmt.Fprintf(out.out, "\nforecast for an M5 Max, not measured (%s):\n", m5Max.source)
	fmt.Fprintf(out.out, "  decode  %.2f ms a step, %.0f tokens a second\n", f.step.Seconds()*1e3, 1/f.step.Seconds())
	fmt.Fprintf(out.out, "  prefill %.0f ms a chunk, %.0f tokens a second\n", f.chunk.Seconds()*1e3, float64(c.Chunk)/f.chunk.Seconds())
	return nil
}

func printParts(w io.Writer, t gpu.Table) error {
	tw := tabwriter.NewWriter(w, 9, 0, 1, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "part\tlayers\tlaunches\tlevels\tMB\tMFLOP\t")
	for _, p := range t.Parts {
		fmt.Fprintf(tw, "%s\t%d\t%.0f\t%.0f\t%.2f\t%.1f\t\n", p.Part, p.Layers, p.Launches, p.Levels, p.Cost.Bytes/1e6, p.Cost.Flops/1e6)
	}
	return tw.Flush()
}

// chip is what a forecast takes of a GPU.
type chip struct {
	stream float64       // bytes a second without barriers
	level  time.Duration // what a level loses to ramp and drain
	dense  float64       // FLOP/s of products with tensor operations
	expert float64       // of grouped ones
	other  float64       // of attention and the delta rule
	source string
}

// m5Max are rates that others published for this chip and kernels of this kind;
// level is what makes the published step times of two engines come out right.
var m5Max = chip{
	stream: 600e9, level: 4800 * time.Nanosecond, dense: 54e12, expert: 38e12, other: 30e12,
	source: "600 GB/s, 4.8 us a level, 54, 38 and 30 TFLOP/s for dense, expert and other products",
}

type forecast struct{ step, chunk time.Duration }

func (c chip) forecast(step, chunk gpu.Table) forecast {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	f := forecast{step: seconds(step.Cost.Bytes / c.stream)}
	f.step += time.Duration(step.Levels) * c.level
	for _, k := range chunk.Kernels {
		rate := c.dense
		switch {
		case k.Kernel == "attend_rows_bf16_d256" || k.Part == "delta" && k.Cost.Flops < 1e12 && !isProduct(k.Kernel):
			rate = c.other
		case k.Part == "experts":
			rate = c.expert
		}
		f.chunk += seconds(max(k.Cost.Flops/rate, k.Cost.Bytes/c.stream))
	}
	f.chunk += time.Duration(chunk.Levels) * c.level
	return f
}

func isProduct(kernel string) bool { return len(kernel) > 5 && kernel[:5] == "qgemm" }
