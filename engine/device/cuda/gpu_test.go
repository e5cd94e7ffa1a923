//go:build gpu && linux && (amd64 || arm64)

package cuda_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"weir/engine/device"
	"weir/engine/device/cuda"
	"weir/metalsrc"
)

// What follows needs an NVIDIA GPU, and is built by the tag gpu.

const gpuKernels = fakeKernels + `
kernel void far(device uint *a [[buffer(0)]], uint i [[thread_position_in_grid]]) { a[i + (1ul << 40)] = i; }
`

func openGPU(t testing.TB, o cuda.Options) *cuda.Device {
	t.Helper()
	u, err := metalsrc.Compose("gpu", gpuKernels)
	if err != nil {
		t.Fatal(err)
	}
	o.NVRTC, o.Units = os.Getenv("WEIR_NVRTC"), []metalsrc.Unit{u}
	d, err := cuda.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d.(*cuda.Device)
}

func TestGPUPlaysRandomStreams(t *testing.T) {
	for _, o := range ways() {
		t.Run(wayName(o), func(t *testing.T) {
			d := openGPU(t, o)
			for seed := range uint64(20) {
				plan := newPlan(seed, 60)
				got := play(t, d, 4000, plan.commands, 3)
				for i, want := range plan.result(4000, 3) {
					if got[i] != want {
						t.Fatalf("stream %d: word %d is %d, want %d", seed, i, got[i], want)
					}
				}
			}
		})
	}
}

func TestGPUMemory(t *testing.T) {
	d := openGPU(t, cuda.Options{})
	c := d.Caps()
	t.Logf("%+v", c)
	const n = 4 << 30
	a, err := d.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	host := make([]byte, n)
	for i := range host {
		host[i] = byte(i * 31 >> 7)
	}
	for range 2 { // the second finds the staging memory ready
		at := time.Now()
		if err := d.Write(a, 0, host); err != nil {
			t.Fatal(err)
		}
		if err := d.Read(make([]byte, 1), a, 0); err != nil {
			t.Fatal(err)
		}
		t.Logf("write: %.1f GB/s", n/time.Since(at).Seconds()/1e9)
	}
	got := make([]byte, n)
	at := time.Now()
	if err := d.Read(got, a, 0); err != nil {
		t.Fatal(err)
	}
	t.Logf("read: %.1f GB/s", n/time.Since(at).Seconds()/1e9)
	if !bytes.Equal(got, host) {
		t.Error("4 GiB come back changed")
	}
	if _, err := d.Alloc(1 << 42); !errors.Is(err, device.ErrMemory) {
		t.Error(err)
	} else {
		t.Log(err)
	}
	a.Free()
	speed, err := d.Bandwidth(2<<30, 10)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("copy within the GPU: %.0f GB/s read and written", speed/1e9)
	if speed, err = d.MatrixPeak(5); err != nil {
		t.Fatal(err)
	}
	t.Logf("bf16 products: %.0f TFLOP/s", speed/1e12)
}

// A process that met an illegal address gets no new context from NVIDIA's
// driver: it must be started anew. So the fault is in a process of its own.
func TestGPUIsLostAfterAFault(t *testing.T) {
	if os.Getenv("WEIR_TEST_FAULT") == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestGPUIsLostAfterAFault$", "-test.v")
		child.Env = append(os.Environ(), "WEIR_TEST_FAULT=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	d := openGPU(t, cuda.Options{})
	p, err := d.Compile(&device.Stream{Commands: []device.Command{{
		Kernel: "far", Groups: [3]int{1}, Threads: [3]int{32}, Args: []device.Arg{alloc(t, d, 128)},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Start()
	if err == nil {
		_, err = r.Wait()
	}
	if !errors.Is(err, device.ErrLost) {
		t.Fatal(err)
	}
	t.Log(err)
	if _, err := d.Alloc(1); !errors.Is(err, device.ErrLost) {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if again, err := cuda.Open(cuda.Options{NVRTC: os.Getenv("WEIR_NVRTC")}); err == nil {
		t.Log("this driver goes on")
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	} else if !errors.Is(err, device.ErrLost) {
		t.Errorf("opening it again in the same process: %v", err)
	}
}

// chain is a row of small launches, each waiting for the one before.
func chain(t testing.TB, d device.Device, n, groups int) *device.Stream {
	t.Helper()
	s := &device.Stream{}
	mem := [2]device.Arg{}
	for i := range mem {
		b, err := d.Alloc(int64(groups) * 64 * 4)
		if err != nil {
			t.Fatal(err)
		}
		mem[i] = device.Whole(b)
	}
	for i := range n {
		s.Add(step(mem[i%2], mem[1-i%2], 1))
	}
	return s
}

// forked is levels of two launches side by side and one that joins them.
func forked(t testing.TB, d device.Device, n, groups int) *device.Stream {
	t.Helper()
	s := &device.Stream{}
	b, err := d.Alloc(int64(groups) * 64 * 4 * 4)
	if err != nil {
		t.Fatal(err)
	}
	q := int64(groups) * 64 * 4
	part := func(i int64) device.Arg { return device.Part(b, i*q, q) }
	for range n {
		s.Add(step(part(0), part(1), 1))
		s.Add(step(part(0), part(2), 1))
		s.Add(step(device.Part(b, q, 2*q), part(0), 1))
	}
	return s
}

// BenchmarkGPULevels is what a level costs by each way of playing: 260 levels,
// as a token takes, of one launch each or of two and one.
func BenchmarkGPULevels(b *testing.B) {
	for _, o := range ways() {
		b.Run(wayName(o), func(b *testing.B) {
			d := openGPU(b, o)
			for _, groups := range []int{1, 132, 1056} {
				b.Run(fmt.Sprintf("chain of %d groups", groups), func(b *testing.B) { benchLevels(b, d, chain(b, d, 260, groups), 260) })
				b.Run(fmt.Sprintf("forked, %d groups", groups), func(b *testing.B) { benchLevels(b, d, forked(b, d, 130, groups), 260) })
			}
		})
	}
}

func benchLevels(b *testing.B, d device.Device, s *device.Stream, levels int) {
	p, err := d.Compile(s)
	if err != nil {
		b.Fatal(err)
	}
	var onGPU time.Duration
	for b.Loop() {
		r, err := p.Start()
		if err != nil {
			b.Fatal(err)
		}
		took, err := r.Wait()
		if err != nil {
			b.Fatal(err)
		}
		onGPU += took
	}
	n := float64(b.N * levels)
	b.ReportMetric(float64(onGPU.Nanoseconds())/n, "GPU-ns/level")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "host-ns/level")
	if err := p.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGPUInFlight is a short program started again before it has ended.
func BenchmarkGPUInFlight(b *testing.B) {
	d := openGPU(b, cuda.Options{})
	p, err := d.Compile(chain(b, d, 10, 132))
	if err != nil {
		b.Fatal(err)
	}
	var before device.Run
	for b.Loop() {
		r, err := p.Start()
		if err != nil {
			b.Fatal(err)
		}
		if before != nil {
			if _, err := before.Wait(); err != nil {
				b.Fatal(err)
			}
		}
		before = r
	}
	if _, err := before.Wait(); err != nil {
		b.Fatal(err)
	}
}
