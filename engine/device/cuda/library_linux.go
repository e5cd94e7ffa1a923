//go:build amd64 || arm64

package cuda

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"weir/engine/device"
	"weir/metalsrc"
	"weir/metalsrc/msl"
)

// library holds the kernels. Each is compiled by itself when first used: a unit
// has many variants, of which a GPU needs few, and all processors help.
type library struct {
	d     *Device
	cache cache
	units map[string]metalsrc.Unit // by kernel, with no other kernel
	funcs map[variant]*function    // those compiled
}

// variant is a way to compile a kernel.
type variant struct {
	kernel  string
	overlap bool // it may be started before the launch before it has ended
}

// function is a kernel on the device.
type function struct {
	h       uintptr
	threads int // that a threadgroup may have
	shared  int // static, bytes
	dynamic int // allowed so far, bytes
	Use
}

// Use is what a thread of a kernel takes, as the compiler decided.
type Use struct {
	Registers int
	Spilled   int // bytes of local memory
	Shared    int // bytes of static threadgroup memory, of the whole threadgroup
}

func newLibrary(d *Device) (*library, error) {
	units := d.o.Units
	if units == nil {
		var err error
		if units, err = metalsrc.Units(); err != nil {
			return nil, err
		}
	}
	l := &library{d: d, cache: cache{dir: d.o.Cache}, units: map[string]metalsrc.Unit{}, funcs: map[variant]*function{}}
	for _, u := range units {
		for _, k := range u.Kernels {
			if _, twice := l.units[k.Name]; twice {
				return nil, fmt.Errorf("kernel %s is in two units", k.Name)
			}
			l.units[k.Name] = metalsrc.Unit{Name: u.Name, Text: u.Text, Kernels: []msl.Kernel{k}}
		}
	}
	return l, nil
}

func (l *library) kernel(name string) (msl.Kernel, bool) {
	u, ok := l.units[name]
	if !ok {
		return msl.Kernel{}, false
	}
	return u.Kernels[0], true
}

// load compiles what a stream uses and is not there yet, several kernels at a
// time. The caller has entered the context.
func (l *library) load(s *device.Stream, overlap bool) error {
	var missing []string
	for i, c := range s.Commands {
		if _, ok := l.units[c.Kernel]; !ok {
			return fmt.Errorf("command %d: no kernel %q", i, c.Kernel)
		}
		if l.funcs[variant{c.Kernel, overlap}] == nil && !slices.Contains(missing, c.Kernel) {
			missing = append(missing, c.Kernel)
		}
	}
	images := make([][]byte, len(missing))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range missing {
		g.Go(func() (err error) {
			images[i], err = l.image(name, overlap)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, name := range missing {
		f, err := l.link(name, images[i])
		if err != nil {
			return err
		}
		l.funcs[variant{name, overlap}] = f
	}
	return nil
}

// image is a kernel compiled, from the cache or anew.
func (l *library) image(name string, overlap bool) ([]byte, error) {
	u, c := l.units[name], l.d.rtc
	target, err := c.target(l.d.arch)
	if err != nil {
		return nil, err
	}
	text, err := Source(u)
	if err != nil {
		return nil, err
	}
	options := compileOptions(target, overlap)
	key, err := l.cache.key(text, options, c.major, c.minor)
	if err != nil {
		return nil, err
	}
	if image := l.cache.get(key); image != nil {
		return image, nil
	}
	image, _, err := c.build(u.Name, text, options)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", name, err)
	}
	l.cache.put(key, image)
	return image, nil
}

// compileOptions are NVRTC's. Products and sums may fuse (--fmad is on by
// default); nothing else trades accuracy for speed.
func compileOptions(target string, overlap bool) []string {
	o := []string{
		"--std=c++17", "--device-as-default-execution-space", "--generate-line-info",
		"--gpu-architecture=" + target, "-DMSL_CUDA",
	}
	if overlap {
		o = append(o, "-DMSL_OVERLAP")
	}
	return o
}

// link puts a compiled kernel on the device.
func (l *library) link(name string, image []byte) (*function, error) {
	var module uintptr
	f, cu, symbol := &function{}, l.d.cu, cBytes("msl_k_"+name)
	if err := l.d.check("load kernel "+name, cu.moduleLoad.call(uintptr(unsafe.Pointer(&module)), uintptr(unsafe.Pointer(&image[0])))); err != nil {
		return nil, err
	}
	if err := l.d.check("find kernel "+name, cu.moduleFunction.call(
		uintptr(unsafe.Pointer(&f.h)), module, uintptr(unsafe.Pointer(&symbol[0])))); err != nil {
		return nil, err
	}
	var threads, shared, local, registers int32
	for _, a := range []struct {
		attr int // CUfunction_attribute
		to   *int32
	}{{0, &threads}, {1, &shared}, {3, &local}, {4, &registers}} {
		if err := l.d.check("ask about kernel "+name, cu.funcGet.call(uintptr(unsafe.Pointer(a.to)), uintptr(a.attr), f.h)); err != nil {
			return nil, err
		}
	}
	f.threads, f.shared = int(threads), int(shared)
	f.Use = Use{int(registers), int(local), int(shared)}
	return f, nil
}

// allow lets a kernel have n bytes of dynamic threadgroup memory.
func (l *library) allow(name string, f *function, n int) error {
	if f.shared+n > l.d.caps.Shared {
		return fmt.Errorf("kernel %s wants %d + %d bytes of threadgroup memory: there are %d", name, f.shared, n, l.d.caps.Shared)
	}
	const free, attrDynamic = 48 << 10, 8
	if f.shared+n <= free || n <= f.dynamic {
		return nil
	}
	f.dynamic = n
	return l.d.check("allow kernel "+name+" its threadgroup memory", l.d.cu.funcSet.call(f.h, attrDynamic, uintptr(n)))
}

// Use says what a kernel takes of a multiprocessor; it compiles it if need be.
func (d *Device) Use(kernel string) (Use, error) {
	leave, err := d.enter()
	if err != nil {
		return Use{}, err
	}
	defer leave()
	s := &device.Stream{Commands: []device.Command{{Kernel: kernel}}}
	if err := d.lib.load(s, d.overlaps(s)); err != nil {
		return Use{}, err
	}
	return d.lib.funcs[variant{kernel, d.overlaps(s)}].Use, nil
}
