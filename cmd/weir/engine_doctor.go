package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/engine"
	"weir/engine/checkpoint"
	"weir/engine/cpu"
	"weir/engine/tokenizer"
)

type engineDoctorCommand struct {
	Checkpoint string `help:"Folder of the checkpoint; that of pull unless given." type:"path" placeholder:"DIR"`
	Backend    string `enum:"auto,cpu,cuda,metal" default:"auto" help:"Which GPU to look at; cpu for none."`
	AnySize    bool   `help:"Take other sizes of the same architecture."`
	JSON       bool   `help:"Print JSON."`
}

// Run shows what the engine would run on, and looks at the checkpoint without
// reading its weights.
func (c engineDoctorCommand) Run(_ context.Context, io streams, root *cli) error {
	dir, err := engineFlags{Checkpoint: c.Checkpoint}.dir(root)
	if err != nil {
		return err
	}
	report := []finding{
		{Check: "processor", OK: true, Detail: fmt.Sprintf("%s, %d cores, kernels %v", runtime.GOARCH, runtime.GOMAXPROCS(0), cpu.Best().Level())},
		checkMemory(),
		checkGPU(c.Backend),
		checkCheckpoint(dir, c.AnySize),
		checkTokenizer(dir),
	}
	if c.JSON {
		if err := json.MarshalWrite(io.out, report, jsontext.WithIndent("  ")); err != nil {
			return err
		}
		fmt.Fprintln(io.out)
	} else {
		printReport(io.out, report)
	}
	if slices.ContainsFunc(report, func(f finding) bool { return !f.OK }) {
		return exitCode(exitError)
	}
	return nil
}

// checkMemory compares the machine's memory with the model's. Less is no fault:
// weights are mapped, and read again when they did not stay.
func checkMemory() finding {
	f := finding{Check: "memory", OK: true, Detail: "unknown on this system"}
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return f
	}
	for line := range strings.Lines(string(raw)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kb); err != nil {
			continue
		}
		total, need := kb<<10, checkpoint.Pinned().Bytes()
		f.Detail = fmt.Sprintf("%.1f GB; the model's files are %.1f GB", float64(total)/1e9, float64(need)/1e9)
		if total < need {
			f.Mend = "the model runs, but reads weights from disk again and again: it will be slow"
		}
		return f
	}
	return f
}

// checkGPU tells of the GPU that the engine would use. None is no fault: the
// processor computes then.
func checkGPU(backend string) finding {
	f := finding{Check: "gpu", OK: true}
	if backend == engine.BackendCPU {
		f.Detail = "not looked at"
		return f
	}
	text, err := engine.ProbeDevice(backend)
	switch {
	case err == nil:
		f.Detail = strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ")
	case backend == engine.BackendAuto:
		f.Detail = fmt.Sprintf("none that can be used: %v", err)
	default:
		return failed("gpu", err)
	}
	return f
}

func checkCheckpoint(dir string, anySize bool) finding {
	file, err := checkpoint.Open(dir, checkpoint.Options{AnyDimensions: anySize})
	if err != nil {
		return failed("checkpoint", checkpointHint(dir, err))
	}
	defer file.Close()
	cfg := file.Config()
	return finding{Check: "checkpoint", OK: true, Detail: fmt.Sprintf("%s: %d layers, %d experts, context %d", dir, cfg.NumLayers(), cfg.NumExperts, cfg.MaxPositions)}
}

func checkTokenizer(dir string) finding {
	raw, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return failed("tokenizer", hinted{fmt.Errorf("no tokenizer.json: %w", err), "weir engine pull fetches it; a checkpoint of weir engine synth has none and cannot be served"})
	}
	t, err := tokenizer.Load(raw)
	if err != nil {
		return failed("tokenizer", err)
	}
	return finding{Check: "tokenizer", OK: true, Detail: fmt.Sprintf("%d tokens", t.Size())}
}
