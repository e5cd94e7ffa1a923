package engine

import (
	"context"
	"errors"
	"fmt"
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
func openGPU(file *checkpoint.Checkpoint, o Options) (*gpuBackend, error) {
	dev := o.Device
	if dev == nil {
		switch o.Backend {
		case "", BackendCPU:
			return nil, nil
		case BackendAuto, BackendCUDA, BackendMetal:
		default:
			return nil, fmt.Errorf("backend %q is not one of auto, cpu, cuda, metal", o.Backend)
		}
		var err error
		if dev, err = OpenDevice(o.Backend); err != nil {
			if o.Backend == BackendAuto {
				return nil, nil
			}
			return nil, err
		}
	}
	m, err := gpu.Load(dev, file, gpu.Options{Chunk: o.Chunk, Progress: o.Progress})
	if err != nil {
		err = errors.Join(err, dev.Close())
		if o.Backend == BackendAuto && errors.Is(err, device.ErrMemory) {
			return nil, nil
		}
		return nil, err
	}
	return &gpuBackend{m}, nil
}

// gpuBackend is a model on a GPU.
type gpuBackend struct{ m *gpu.Model }

type gpuMemory struct{ *gpu.State }

func (b *gpuBackend) newMemory() (memory, error) {
	s, err := b.m.NewState()
	if err != nil {
		return nil, err
	}
	return gpuMemory{s}, nil
}

// pass computes logits of the last token in one go; logits of more than that
// are for scoring, a token at a time.
func (b *gpuBackend) pass(ctx context.Context, m memory, tokens []int32, out output) error {
	s := m.(gpuMemory).State
	if out.want <= 1 {
		o := gpu.Output{Watch: out.watch}
		if out.want == 1 {
			o.Logits = out.logits
		}
		return b.m.Extend(ctx, s, tokens, o)
	}
	vocab := len(out.logits) / out.want
	if n := len(tokens) - out.want; n > 0 {
		if err := b.m.Extend(ctx, s, tokens[:n], gpu.Output{}); err != nil {
			return err
		}
		tokens = tokens[n:]
	}
	for i := range tokens {
		if err := b.m.Extend(ctx, s, tokens[i:i+1], gpu.Output{Logits: out.logits[i*vocab : (i+1)*vocab]}); err != nil {
			return err
		}
	}
	return nil
}

// feed lets the device go on from each token by itself.
func (b *gpuBackend) feed(ctx context.Context, m memory, first int32, limit int, logits []float32, emit func(int32) bool) (int, error) {
	return b.m.Feed(ctx, m.(gpuMemory).State, first, limit, logits, emit)
}

func (b *gpuBackend) about() about {
	c := b.m.Device().Caps()
	return about{Threads: 1, Kernels: strings.TrimSpace(c.Name + " " + c.Family)}
}

func (b *gpuBackend) readRate(int) (float64, error) { return b.m.CopyRate() }

func (b *gpuBackend) matrixRate() (float64, error) { return b.m.MatrixRate() }

func (b *gpuBackend) close() error { return b.m.Close() }

func (m gpuMemory) clone() (memory, error) {
	c, err := m.Clone()
	if err != nil {
		return nil, err
	}
	return gpuMemory{c}, nil
}

func (m gpuMemory) parts(visit func(any, int64)) { visit(m.State, m.Bytes()) }

func (m gpuMemory) free() { m.Free() }
