//go:build amd64 || arm64

package cuda_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/engine/device"
	"weir/engine/device/cuda"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		set  func(f *fake, o *cuda.Options)
		want string // in the error; empty if it opens
	}{
		{"all there", func(*fake, *cuda.Options) {}, ""},
		{"no driver", func(_ *fake, o *cuda.Options) { o.Driver = "/nowhere/libcuda.so.1" }, "driver is not installed"},
		{"no compiler", func(_ *fake, o *cuda.Options) { o.NVRTC = "/nowhere/libnvrtc.so" }, "open NVRTC"},
		{"no GPU", func(f *fake, _ *cuda.Options) { f.set("devices", 0) }, "there are 0"},
		{"no such GPU", func(_ *fake, o *cuda.Options) { o.Index = 1 }, "GPU 1 does not exist"},
		{"an old GPU", func(f *fake, _ *cuda.Options) { f.set("major", 7) }, "compute capability 7.0"},
		{"a compiler newer than the driver", func(f *fake, _ *cuda.Options) { f.set("version", 12080) }, "update the driver"},
		{"a GPU newer than the compiler", func(f *fake, _ *cuda.Options) { f.set("major", 12) }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			o := f.options(t)
			row.set(f, &o)
			d, err := cuda.Open(o)
			if row.want != "" {
				if err == nil || !strings.Contains(err.Error(), row.want) {
					t.Fatalf("%v, want an error with %q", err, row.want)
				}
				if n := f.get("contexts"); n != 0 {
					t.Errorf("%d contexts are left", n)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c := d.Caps(); c.Name != "Fake GPU" || c.Units != 4 || c.Shared != 100<<10 || c.Memory != 1<<30 || !c.Matrix || c.HostShared {
				t.Errorf("%+v", c)
			}
			// The kernels of a newer GPU are compiled for an older one and translated.
			if _, err := d.Compile(&device.Stream{Commands: []device.Command{step(alloc(t, d, 8), alloc(t, d, 8), 1)}}); err != nil {
				t.Error(err)
			}
			if err := errors.Join(d.Close(), d.Close()); err != nil {
				t.Error(err)
			}
			if n := f.get("contexts"); n != 0 {
				t.Errorf("%d contexts are left", n)
			}
		})
	}
}

func TestMemoryKeepsWhatIsWritten(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f.options(t))
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 1000, 16 << 20, 40<<20 + 7, 40<<20 + 7} {
		a := alloc(t, d, int64(n)+10)
		p := make([]byte, n)
		for i := 0; i < n; i += 1 + i/100 {
			p[i] = byte(r.Uint32())
		}
		want := append(append(make([]byte, 7), p...), 0, 0, 0)
		if err := d.Write(a.Buf, 7, p); err != nil {
			t.Fatal(err)
		}
		clear(p) // Write has taken them
		got := bytes.Repeat([]byte{1}, n+10)
		if err := d.Read(got, a.Buf, 0); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes come back changed", n)
		}
		a.Buf.Free()
		a.Buf.Free()
		if err := d.Write(a.Buf, 0, []byte{1}); err == nil {
			t.Error("a freed buffer is written")
		}
	}
	if used, blocks := f.get("used"), f.get("blocks"); used != 0 || blocks != 0 {
		t.Errorf("%d bytes in %d blocks are not given back", used, blocks)
	}
}

func TestRangesAreChecked(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f.options(t))
	other := open(t, f.options(t))
	a := alloc(t, d, 10)
	for _, row := range []struct {
		to device.Buffer
		at int64
		n  int
	}{{a.Buf, -1, 1}, {a.Buf, 10, 1}, {a.Buf, 4, 7}, {a.Buf, 1 << 62, 1}, {alloc(t, other, 10).Buf, 0, 1}} {
		if err := d.Write(row.to, row.at, make([]byte, row.n)); err == nil {
			t.Errorf("%d bytes are written at %d", row.n, row.at)
		}
		if err := d.Read(make([]byte, row.n), row.to, row.at); err == nil {
			t.Errorf("%d bytes are read at %d", row.n, row.at)
		}
	}
	if _, err := d.Alloc(-1); err == nil {
		t.Error("-1 bytes are allocated")
	}
	if _, err := d.Wrap(make([]byte, 4096)); !errors.Is(err, device.ErrNoWrap) {
		t.Error(err)
	}
}

func TestOutOfMemorySaysHowMuch(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.set("room", 1000)
	d := open(t, f.options(t))
	a := alloc(t, d, 600)
	_, err := d.Alloc(500)
	if !errors.Is(err, device.ErrMemory) || errors.Is(err, device.ErrLost) {
		t.Fatal(err)
	}
	for _, n := range []string{"500 bytes", "600 in use", "400 free of 1000"} {
		if !strings.Contains(err.Error(), n) {
			t.Errorf("%q is missing in %q", n, err)
		}
	}
	a.Buf.Free()
	alloc(t, d, 1000) // the device goes on
}
