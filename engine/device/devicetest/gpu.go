package devicetest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"weir/engine/device"
	"weir/engine/device/cuda"
	"weir/engine/device/metal"
	"weir/metalsrc/msl"
)

// gpu is the one device of a test process that runs on a GPU. Opening costs a
// second, and tests that shared it at a time would spoil each other's figures.
var gpu struct {
	sync.Mutex
	d device.Device
}

// gpuKind is the kind of GPU that tests run on, as WEIR_DEVICE says: cuda or
// metal, which is the default where the emulator does not run; else empty.
func gpuKind() string {
	if k := os.Getenv("WEIR_DEVICE"); k != "" || runtime.GOOS != "darwin" {
		return k
	}
	return "metal"
}

func onGPU() bool { return gpuKind() != "" }

func openGPU() (device.Device, error) {
	switch k := gpuKind(); k {
	case "cuda":
		o, err := gpuOptions(os.Getenv("WEIR_CUDA_WAY"))
		if err != nil {
			return nil, err
		}
		return cuda.Open(o)
	case "metal":
		return metal.Open(metal.Options{})
	default:
		return nil, fmt.Errorf("WEIR_DEVICE is %q, and may be cuda or metal", k)
	}
}

// withGPU runs a test with the GPU to itself. A test that breaks the device
// leaves a fresh one to the next.
func withGPU(t testing.TB, test func(device.Device)) {
	t.Helper()
	gpu.Lock()
	defer gpu.Unlock()
	if gpu.d == nil {
		d, err := openGPU()
		if err != nil {
			t.Fatal(err)
		}
		gpu.d = d
	}
	defer func() {
		if !t.Failed() {
			return
		}
		if err := gpu.d.Close(); err != nil {
			t.Log(err)
		}
		gpu.d = nil
	}()
	test(gpu.d)
}

// GPU opens the GPU that WEIR_DEVICE names, for benchmarks.
func GPU(tb testing.TB) *Bench {
	tb.Helper()
	d, err := openGPU()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &Bench{TB: tb, Device: d}
}

// gpuOptions reads how to play: "stream", "overlap", "width=2", with commas between.
func gpuOptions(way string) (cuda.Options, error) {
	o := cuda.Options{NVRTC: os.Getenv("WEIR_NVRTC"), Cache: os.Getenv("WEIR_CUDA_CACHE")}
	for word := range strings.SplitSeq(way, ",") {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "":
		case "stream":
			o.Launch = cuda.Stream
		case "overlap":
			o.Overlap = cuda.OverlapAlways
		case "width":
			o.Width, err = strconv.Atoi(value)
		default:
			err = errors.New("unknown word")
		}
		if err != nil {
			return o, fmt.Errorf("WEIR_CUDA_WAY: %s: %w", word, err)
		}
	}
	return o, nil
}

// canary is what lies behind each buffer on a GPU, and must survive.
const canary = 256

// guarded allocates n bytes with a canary behind.
func (b *Bench) guarded(n int64) device.Arg {
	b.Helper()
	room := (n + 15) &^ 15
	buf, err := b.Device.Alloc(room + canary)
	if err != nil {
		b.Fatal(err)
	}
	song := bytes.Repeat([]byte{0xa5}, int(room-n)+canary)
	if err := b.Device.Write(buf, n, song); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		defer buf.Free()
		tail := make([]byte, len(song))
		if err := b.Device.Read(tail, buf, n); err != nil {
			b.Error(err)
		} else if !bytes.Equal(tail, song) {
			b.Errorf("a kernel wrote past the end of a buffer of %d bytes", n)
		}
	})
	return device.Part(buf, 0, n)
}

// repeat plays commands once more as often as [Repeats] says, each time from the
// same memory, and wants the same bytes each time.
func (b *Bench) repeat(c []device.Command, play func() error) error {
	written := b.written(c)
	var size int64
	for _, a := range written {
		size += a.End() - a.At
	}
	if size > 256<<20 || b.Varies {
		return play()
	}
	before, err := b.contents(written)
	if err != nil {
		return err
	}
	var first [][]byte
	for n := range max(Repeats(), 1) {
		if n > 0 {
			for i, a := range written {
				if err := b.Device.Write(a.Buf, a.At, before[i]); err != nil {
					return err
				}
			}
		}
		if err := play(); err != nil {
			return err
		}
		after, err := b.contents(written)
		if err != nil {
			return err
		}
		if n == 0 {
			first = after
		}
		for i := range after {
			if !bytes.Equal(after[i], first[i]) {
				return fmt.Errorf("repetition %d of %s writes other bytes than the first into range %d", n, c[0].Kernel, i)
			}
		}
	}
	return nil
}

// written lists the ranges that the commands may write, each once.
func (b *Bench) written(commands []device.Command) []device.Arg {
	var out []device.Arg
	type key struct {
		buf      device.Buffer
		from, to int64
	}
	seen := map[key]bool{}
	for _, c := range commands {
		k, _ := b.Device.Kernel(c.Kernel) // Compile has found it
		for _, a := range k.Args {
			if a.Kind != msl.Buffer || a.Const || c.Args[a.Index].Buf == nil {
				continue
			}
			arg := c.Args[a.Index]
			if id := (key{arg.Buf, arg.At, arg.End()}); !seen[id] {
				seen[id] = true
				out = append(out, arg)
			}
		}
	}
	return out
}

func (b *Bench) contents(args []device.Arg) ([][]byte, error) {
	var out [][]byte
	for _, a := range args {
		p := make([]byte, a.End()-a.At)
		if err := b.Device.Read(p, a.Buf, a.At); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}
