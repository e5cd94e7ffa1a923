package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"

	"weir/engine/checkpoint"
	"weir/engine/device"
	"weir/engine/device/cuda"
	"weir/engine/device/metal"
	"weir/engine/gpu"
)

// The names of backends, for [Options.Backend].
const (
	BackendAuto  = "auto" // the GPU where one will do, else the processor
	BackendCPU   = "cpu"
	BackendCUDA  = "cuda"
	BackendMetal = "metal"
)

// OpenDevice opens the GPU of a backend; with [BackendAuto] the system's own
// kind.
func OpenDevice(backend string) (device.Device, error) {
	if backend == BackendAuto {
		backend = BackendCUDA
		if runtime.GOOS == "darwin" {
			backend = BackendMetal
		}
	}
	switch backend {
	case BackendCUDA:
		return cuda.Open(cuda.Options{})
	case BackendMetal:
		return metal.Open(metal.Options{})
	}
	return nil, fmt.Errorf("%q is no backend with a device: cuda and metal are", backend)
}

// ProbeDevice looks at the GPU of a backend, tries it, and returns what it
// found as lines of text. On a Mac it compiles all kernels.
func ProbeDevice(backend string) (string, error) {
	if backend == BackendMetal || backend == BackendAuto && runtime.GOOS == "darwin" {
		r := metal.Probe(metal.Options{})
		if !r.OK() {
			return "", errors.New(strings.TrimSpace(r.String()))
		}
		return r.String(), nil
	}
	dev, err := OpenDevice(backend)
	if err != nil {
		return "", err
	}
	c := dev.Caps()
	text := fmt.Sprintf("%s, %s, %d multiprocessors, %d MiB free, %d KiB of shared memory", c.Name, c.Family, c.Units, c.Memory>>20, c.Shared>>10)
	if m, ok := dev.(device.Meter); ok {
		copied, err := m.Bandwidth(1<<30, 5)
		if err != nil {
			return "", errors.Join(err, dev.Close())
		}
		peak, err := m.MatrixPeak(5)
		if err != nil {
			return "", errors.Join(err, dev.Close())
		}
		text += fmt.Sprintf("\ncopies %.0f GB/s, read and written; multiplies %.0f TFLOP/s in bfloat16", copied/1e9, peak/1e12)
	}
	return text, dev.Close()
}

// openGPU loads the model on a GPU, or returns nil when the options leave it to
// the processor.
func openGPU(file *checkpoint.Checkpoint, o Options, log *slog.Logger, reclaim func() bool) (*gpuBackend, error) {
	only := o.onlyProcessor()
	switch o.Backend {
	case "", BackendCPU:
		if o.Device == nil {
			return nil, nil
		}
	case BackendAuto:
		if only != "" {
			return nil, nil
		}
	case BackendCUDA, BackendMetal:
	default:
		return nil, fmt.Errorf("backend %q is not one of auto, cpu, cuda, metal", o.Backend)
	}
	if only != "" {
		return nil, fmt.Errorf("%s is on the processor only", only)
	}
	open := o.Device
	if open == nil {
		open = func() (device.Device, error) { return OpenDevice(o.Backend) }
	}
	b, err := newGPUBackend(func(again bool) (*gpu.Model, error) {
		dev, err := open()
		if err != nil {
			return nil, err
		}
		g := gpu.Options{Chunk: o.Chunk, Progress: o.Progress, Reclaim: reclaim}
		if again {
			g.Progress = nil // whoever watched the loading has gone on
		}
		m, err := gpu.Load(dev, file, g)
		if err != nil {
			return nil, errors.Join(err, dev.Close())
		}
		return m, nil
	}, log)
	if err != nil && o.Backend == BackendAuto {
		log.Warn("the processor computes: no GPU will do", "component", "engine", "error", gpuError{err})
		return nil, nil
	}
	return b, err
}

// onlyProcessor names something that is asked for and that no GPU has.
func (o *Options) onlyProcessor() string {
	switch {
	case o.MLX:
		return "rounding as MLX does"
	case o.Exact:
		return "computing in float32 throughout"
	case o.Kernels != "":
		return "choosing kernels"
	}
	return ""
}
