package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"weir/engine"
	"weir/engine/checkpoint"
	"weir/internal/config"
	"weir/internal/telemetry"
)

type engineCommand struct {
	Serve  engineServeCommand  `cmd:"" help:"Serve the model over HTTP, without the front door."`
	Pull   enginePullCommand   `cmd:"" help:"Fetch the model's files, or go on fetching them."`
	Verify engineVerifyCommand `cmd:"" help:"Compare the engine with recorded references, or the files with their digests."`
	Bench  engineBenchCommand  `cmd:"" help:"Measure prefill and decode at several prompt lengths."`
	Synth  engineSynthCommand  `cmd:"" help:"Write a checkpoint with random weights, to measure speed with."`
	Plan   enginePlanCommand   `cmd:"" help:"Show what a GPU is given to do for a token and for a part of a prompt, and a forecast."`
	Doctor engineDoctorCommand `cmd:"" help:"Show what the engine would run on, and whether the checkpoint is whole."`
}

// engineFlags are those of all commands that load the model.
type engineFlags struct {
	Checkpoint string `help:"Folder of the checkpoint; that of pull unless given." type:"path" placeholder:"DIR"`
	Backend    string `enum:"auto,cpu,cuda,metal" default:"auto" help:"What computes: auto takes the GPU where one will do."`
	Threads    int    `help:"Threads to compute with; 0 for all cores."`
	Kernels    string `help:"Instructions to use: plain, avx2, avx512 or neon; the best there are unless given."`
	Exact      bool   `help:"Compute in float32 throughout: slower, and what references are compared with."`
	MLX        bool   `name:"mlx" help:"Round activations where MLX does, to compare with what mlx-lm generates; processor only, and slow."`
	Chunk      int    `help:"Tokens of a prompt to compute together; what suits the machine unless given."`
	AnySize    bool   `help:"Take other sizes of the same architecture."`
}

func (f engineFlags) options() engine.Options {
	return engine.Options{Chunk: f.Chunk, Backend: f.backend(), Threads: f.Threads, Kernels: f.Kernels, Exact: f.Exact, MLX: f.MLX, AnySize: f.AnySize}
}

// backend is the processor when something is asked for that only it has.
func (f engineFlags) backend() string {
	if f.Backend == engine.BackendAuto && (f.Exact || f.Kernels != "" || f.Threads != 0) {
		return engine.BackendCPU
	}
	return f.Backend
}

// dir is the folder of the checkpoint.
func (f engineFlags) dir(root *cli) (string, error) {
	if f.Checkpoint != "" {
		return f.Checkpoint, nil
	}
	return modelDir(root)
}

// open loads the model without its text.
func (f engineFlags) open(root *cli, io streams) (*engine.Engine, error) {
	dir, err := f.dir(root)
	if err != nil {
		return nil, err
	}
	o := f.options()
	if o.Log, err = telemetry.NewLogger(io.err, "info", "text"); err != nil {
		return nil, err
	}
	var e *engine.Engine
	loading(io, &o, func() { e, err = engine.Open(dir, o) })
	return e, checkpointHint(dir, err)
}

// loading shows meanwhile how far the weights have come to a GPU.
func loading(io streams, o *engine.Options, load func()) {
	bar := progress{w: io.err, start: time.Now()}
	o.Progress = bar.show
	load()
	bar.end()
}

// modelDir is where pull puts the model.
func modelDir(root *cli) (string, error) {
	src, err := config.FromProcess(root.Config)
	if err != nil {
		return "", err
	}
	if src.DataDir == "" {
		return "", hinted{errors.New("this system names no place for data"), "give the folder of the checkpoint"}
	}
	return filepath.Join(src.DataDir, "models", filepath.Base(checkpoint.Repo)), nil
}

// checkpointHint says what to do about a checkpoint that does not open.
func checkpointHint(dir string, err error) error {
	_, mismatch := errors.AsType[*checkpoint.Problems](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return hinted{fmt.Errorf("no whole checkpoint in %s: %w", dir, err), "fetch it with: weir engine pull; or name its folder"}
	case mismatch:
		return hinted{err, "weir engine verify --files compares every file with the pinned digests; --any-size takes other dimensions"}
	}
	return err
}
