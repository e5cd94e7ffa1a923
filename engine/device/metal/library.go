//go:build darwin || linux

package metal

import (
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"weir/engine/device"
	"weir/metalsrc"
)

// Values of Metal's headers.
const (
	language31 = 3<<16 + 1 // MTLLanguageVersion3_1: bfloat, macOS 14
	language40 = 4 << 16   // MTLLanguageVersion4_0: tensors, macOS 26
	mathSafe   = 0         // MTLMathModeSafe
	lanes      = 32
)

// variant is the macro that chooses tensor operations.
const variant = "TENSOR_OPS"

// pipeline is a kernel made ready.
type pipeline struct {
	state        id
	threads      int // of a threadgroup, at most
	staticShared int // bytes of threadgroup memory that the kernel declares
}

// compileText makes a library. The language is set explicitly: its default
// depends on the SDK that the program was linked with, and Go's is old. Fast
// math, the default, is off.
func (d *Device) compileText(text string, language uintptr) (lib id, err error) {
	o := d.o
	err = o.pool(func() error {
		src := o.text(text)
		defer o.release(src)
		opt := o.make("MTLCompileOptions")
		defer o.release(opt)
		o.send(opt, "setLanguageVersion:", language)
		if o.understands(opt, "setMathMode:") { // macOS 15
			o.send(opt, "setMathMode:", mathSafe)
		} else {
			o.send(opt, "setFastMathEnabled:", 0)
		}
		why := new(uintptr)
		lib = id(o.send(d.dev, "newLibraryWithSource:options:error:", uintptr(src), uintptr(opt), uintptr(unsafe.Pointer(why))))
		if lib == 0 {
			return o.failure(id(*why))
		}
		return nil
	})
	return lib, err
}

// compileUnit compiles a unit, the tensor variant if it has one and asked for.
func (d *Device) compileUnit(u metalsrc.Unit, tensor bool) (id, error) {
	text, language := u.Text, uintptr(language31)
	if tensor && strings.Contains(text, variant) {
		text, language = "#define "+variant+" 1\n"+text, language40
	}
	lib, err := d.compileText(text, language)
	if err != nil {
		return 0, fmt.Errorf("compile unit %s: %w", u.Name, err)
	}
	return lib, nil
}

// newPipeline makes a kernel of a library ready. If that many threads are more
// than the compiler would give it by itself, it is told to, and spends fewer
// registers on each.
func (d *Device) newPipeline(lib id, kernel string, threads int) (p pipeline, err error) {
	o := d.o
	err = o.pool(func() error {
		name := o.text(kernel)
		defer o.release(name)
		fn := id(o.send(lib, "newFunctionWithName:", uintptr(name)))
		if fn == 0 {
			return fmt.Errorf("make kernel %s: the library has none of that name", kernel)
		}
		defer o.release(fn)
		why := new(uintptr)
		p.state = id(o.send(d.dev, "newComputePipelineStateWithFunction:error:", uintptr(fn), uintptr(unsafe.Pointer(why))))
		if p.state != 0 && int(o.send(p.state, "maxTotalThreadsPerThreadgroup")) < threads {
			o.release(p.state)
			desc := o.make("MTLComputePipelineDescriptor")
			defer o.release(desc)
			o.send(desc, "setComputeFunction:", uintptr(fn))
			o.send(desc, "setMaxTotalThreadsPerThreadgroup:", uintptr(threads))
			p.state = id(o.send(d.dev, "newComputePipelineStateWithDescriptor:options:reflection:error:", uintptr(desc), 0, 0, uintptr(unsafe.Pointer(why))))
		}
		if p.state == 0 {
			return fmt.Errorf("make kernel %s for %d threads: %w", kernel, threads, o.failure(id(*why)))
		}
		p.threads = int(o.send(p.state, "maxTotalThreadsPerThreadgroup"))
		p.staticShared = int(o.send(p.state, "staticThreadgroupMemoryLength"))
		if w := int(o.send(p.state, "threadExecutionWidth")); w != lanes {
			o.release(p.state)
			return fmt.Errorf("make kernel %s: simdgroups of %d threads, not %d", kernel, w, lanes)
		}
		return nil
	})
	return p, err
}

// prepare compiles what a stream needs and is not there yet, side by side. A
// pipeline that has too few threads is replaced; programs keep the one they
// were recorded with.
func (d *Device) prepare(s *device.Stream) error {
	units, threads := map[int]bool{}, map[string]int{}
	for _, c := range s.Commands {
		k := d.kernels[c.Kernel]
		n := c.Threads[0] * c.Threads[1] * c.Threads[2]
		if p, ok := d.pipelines[c.Kernel]; !ok || p.threads < n {
			threads[c.Kernel] = max(threads[c.Kernel], n)
		}
		if d.libs[k.unit] == 0 {
			units[k.unit] = true
		}
	}
	var g errgroup.Group
	for i := range units {
		g.Go(func() (err error) {
			d.libs[i], err = d.compileUnit(d.units[i], d.caps.Tensor)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for name, n := range threads {
		p, err := d.newPipeline(d.libs[d.kernels[name].unit], name, n)
		if err != nil {
			return err
		}
		d.pipelines[name] = p
		d.states = append(d.states, p.state)
	}
	return nil
}
