package main

import (
	"context"
	"fmt"
	"time"

	"weir/engine/checkpoint"
)

type engineSynthCommand struct {
	Dir  string `arg:"" type:"path" help:"New or empty folder."`
	Size string `default:"small" enum:"small,mid,full" help:"small (44 MB), mid (1 GB) or full (20 GB)."`
	Seed uint64 `help:"Selects the weights."`
}

// Run writes a checkpoint with random weights. It has no tokenizer: bench reads
// it, serve does not.
func (c engineSynthCommand) Run(ctx context.Context, io streams) error {
	cfg := map[string]func() checkpoint.Config{"small": checkpoint.Small, "mid": checkpoint.Mid, "full": checkpoint.Full}[c.Size]()
	bar := progress{w: io.err, start: time.Now()}
	err := checkpoint.Synth(ctx, c.Dir, cfg, checkpoint.SynthOptions{Seed: c.Seed, Progress: bar.show})
	bar.end()
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	_, err = fmt.Fprintf(io.out, "wrote a checkpoint of size %s with random weights to %s\n", c.Size, c.Dir)
	return err
}
