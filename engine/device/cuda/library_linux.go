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

// library holds the units, compiled when first used.
type library struct {
	d       *Device
	cache   cache
	units   []metalsrc.Unit
	modules []uintptr      // of units, zero if not loaded
	at      map[string]int // kernel to unit
	decl    map[string]msl.Kernel
	funcs   map[string]*function
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
	l := &library{
		d: d, units: units, modules: make([]uintptr, len(units)), cache: cache{dir: d.o.Cache},
		at: map[string]int{}, decl: map[string]msl.Kernel{}, funcs: map[string]*function{},
	}
	for i, u := range units {
		for _, k := range u.Kernels {
			if _, twice := l.at[k.Name]; twice {
				return nil, fmt.Errorf("kernel %s is in two units", k.Name)
			}
			l.at[k.Name], l.decl[k.Name] = i, k
		}
	}
	return l, nil
}

func (l *library) kernel(name string) (msl.Kernel, bool) {
	k, ok := l.decl[name]
	return k, ok
}

// load compiles what a stream uses and is not there yet, several units at a
// time. The caller has entered the context.
func (l *library) load(s *device.Stream) error {
	var missing []int
	for i, c := range s.Commands {
		u, ok := l.at[c.Kernel]
		if !ok {
			return fmt.Errorf("command %d: no kernel %q", i, c.Kernel)
		}
		if l.modules[u] == 0 && !slices.Contains(missing, u) {
			missing = append(missing, u)
		}
	}
	images := make([][]byte, len(missing))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, u := range missing {
		g.Go(func() (err error) {
			images[i], err = l.image(l.units[u])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, u := range missing {
		if err := l.d.check("load "+l.units[u].Name, l.d.cu.moduleLoad.call(
			uintptr(unsafe.Pointer(&l.modules[u])), uintptr(unsafe.Pointer(&images[i][0])))); err != nil {
			return err
		}
	}
	return nil
}

// image is a unit compiled, from the cache or anew.
func (l *library) image(u metalsrc.Unit) ([]byte, error) {
	c := l.d.rtc
	target, err := c.target(l.d.arch)
	if err != nil {
		return nil, err
	}
	text, err := Source(u)
	if err != nil {
		return nil, err
	}
	options := compileOptions(target, l.d.overlap)
	key, err := l.cache.key(text, options, c.major, c.minor)
	if err != nil {
		return nil, err
	}
	if image := l.cache.get(key); image != nil {
		return image, nil
	}
	image, _, err := c.build(u.Name, text, options)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", u.Name, err)
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

// function looks a kernel of a loaded unit up.
func (l *library) function(name string) (*function, error) {
	if f := l.funcs[name]; f != nil {
		return f, nil
	}
	f, cu, symbol := &function{}, l.d.cu, cBytes("msl_k_"+name)
	if err := l.d.check("find kernel "+name, cu.moduleFunction.call(
		uintptr(unsafe.Pointer(&f.h)), l.modules[l.at[name]], uintptr(unsafe.Pointer(&symbol[0])))); err != nil {
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
	l.funcs[name] = f
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
	if err := d.lib.load(&device.Stream{Commands: []device.Command{{Kernel: kernel}}}); err != nil {
		return Use{}, err
	}
	f, err := d.lib.function(kernel)
	if err != nil {
		return Use{}, err
	}
	return f.Use, nil
}
