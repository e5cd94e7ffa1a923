package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/engine"
	"weir/engine/gpu"
)

type engineBenchCommand struct {
	engineFlags `embed:""`

	Contexts []int `help:"Prompt lengths; ten from 256 to 131072, as far as up-to lets them, unless given."`
	UpTo     int   `default:"4096" help:"Longest of the prompt lengths that are not given."`
	Steps    int   `default:"64" help:"Tokens to decode after the first."`
	Rounds   int   `default:"2" help:"Measured repetitions, of which the median counts."`
	Profile  bool  `help:"Then time each kernel by itself, at the longest of the lengths. Needs a GPU."`
	JSON     bool  `help:"Print JSON, one row a line."`
}

// benchContexts are the lengths that published figures for this model have.
func benchContexts() []int {
	return []int{256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}
}

// benchRow is a row as --json prints it.
type benchRow struct {
	Context       int     `json:"context"`
	Prefill       float64 `json:"prefill_tok_s"`
	Decode        float64 `json:"decode_tok_s"`
	FirstToken    float64 `json:"first_token_s"`
	PrefillGFLOPS float64 `json:"prefill_gflop_s"`
	DecodeGBs     float64 `json:"decode_gb_s"`
	ReadGBs       float64 `json:"read_gb_s"`
	MatrixGFLOPS  float64 `json:"matrix_gflop_s"`
	Digest        string  `json:"digest"`
	Threads       int     `json:"threads"`
	Kernels       string  `json:"kernels"`
}

// Run measures computing alone, with the synthetic prompt that published figures
// for this model were taken with. A row is printed as soon as it is known.
func (c engineBenchCommand) Run(ctx context.Context, io streams, root *cli) error {
	if c.Steps < 1 || c.Rounds < 1 {
		return errors.New("--steps and --rounds must be at least 1")
	}
	e, err := c.open(root, io)
	if err != nil {
		return err
	}
	o := engine.BenchOptions{Contexts: c.lengths(e.MaxContext()), Steps: c.Steps, Rounds: c.Rounds}
	if len(o.Contexts) == 0 {
		return errors.Join(errors.New("no prompt length fits the model's context"), e.Close())
	}
	show, flush := c.printer(io.out)
	err = errors.Join(e.Bench(ctx, o, show), flush())
	if c.Profile && err == nil {
		err = c.profile(ctx, io.out, e, slices.Max(o.Contexts))
	}
	return errors.Join(err, e.Close())
}

func (c engineBenchCommand) lengths(room int) []int {
	if len(c.Contexts) > 0 {
		return c.Contexts
	}
	return slices.DeleteFunc(benchContexts(), func(n int) bool { return n > c.UpTo || n+c.Steps > room })
}

func (c engineBenchCommand) printer(w io.Writer) (show func(engine.BenchRow), flush func() error) {
	var failed error
	if c.JSON {
		return func(r engine.BenchRow) {
			err := json.MarshalWrite(w, rowOf(r), jsontext.SpaceAfterComma(true))
			fmt.Fprintln(w)
			failed = errors.Join(failed, err)
		}, func() error { return failed }
	}
	t := tabwriter.NewWriter(w, 9, 0, 1, ' ', tabwriter.AlignRight)
	headed := false
	return func(r engine.BenchRow) {
		if !headed {
			headed = true
			fmt.Fprintf(w, "%s/%s, %d threads, %s kernels; tokens a second, median of %d\n", runtime.GOOS, runtime.GOARCH, r.Threads, r.Kernels, c.Rounds)
			fmt.Fprintln(t, "context\tprefill\tdecode\tfirst s\tGFLOP/s\tof matrix\tGB/s\tof read\tread GB/s\tdigest\t")
		}
		fmt.Fprintf(t, "%d\t%.1f\t%.2f\t%.2f\t%.1f\t%s\t%.2f\t%s\t%.2f\t%016x\t\n", r.Context, r.Prefill, r.Decode,
			r.FirstToken.Seconds(), r.PrefillGFLOPS, share(r.PrefillGFLOPS, r.MatrixGFLOPS),
			r.DecodeGBs, share(r.DecodeGBs, r.ReadGBs), r.ReadGBs, r.Digest)
		failed = errors.Join(failed, t.Flush())
	}, func() error { return failed }
}

// share is a part of a whole in percent, where the whole is known.
func share(part, whole float64) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*part/whole)
}

func rowOf(r engine.BenchRow) benchRow {
	return benchRow{
		r.Context, r.Prefill, r.Decode, r.FirstToken.Seconds(), r.PrefillGFLOPS, r.DecodeGBs, r.ReadGBs, r.MatrixGFLOPS,
		fmt.Sprintf("%016x", r.Digest), r.Threads, r.Kernels,
	}
}

// profile prints what each kernel takes by itself.
func (c engineBenchCommand) profile(ctx context.Context, w io.Writer, e *engine.Engine, n int) error {
	step, chunk, err := e.Profile(ctx, n, 5)
	if err != nil {
		return err
	}
	for _, t := range []struct {
		title string
		gpu.Table
	}{{fmt.Sprintf("decode step after %d tokens", n), step}, {fmt.Sprintf("last chunk of %d tokens", n), chunk}} {
		fmt.Fprintf(w, "\n%s: %d launches in %d levels; each kernel by itself, its data in no cache\n", t.title, t.Launches, t.Levels)
		tw := tabwriter.NewWriter(w, 9, 0, 1, ' ', tabwriter.AlignRight)
		fmt.Fprintln(tw, "kernel\tpart\tlaunches\tus\tus each\tMB each\tGB/s\tTFLOP/s\t")
		for _, k := range t.Kernels {
			n, s := float64(k.Launches), k.Time.Seconds()
			fmt.Fprintf(tw, "%s\t%s\t%d\t%.0f\t%.1f\t%.2f\t%.0f\t%.1f\t\n", k.Kernel, k.Part, k.Launches, s*1e6, s*1e6/n,
				k.Cost.Bytes/n/1e6, k.Cost.Bytes/s/1e9, k.Cost.Flops/s/1e12)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	return nil
}
