//go:build darwin || linux

package metal

import (
	"errors"
	"strings"
	"time"

	"weir/engine/device"
	"weir/metalsrc"
)

// probe goes through what has to be seen once on a new machine.
func probe(o *objects, system string, opt Options) (r Report) {
	d, err := open(o, system, opt)
	if err != nil {
		return Report{System: system, Err: err}
	}
	defer func() { r.Err = errors.Join(r.Err, d.Close()) }()
	r.System, r.Caps = system, d.caps
	r.Metal4 = o.is(d.dev, "supportsFamily:", familyMetal4)
	r.Residency = d.resident.set != 0
	variants := []bool{false}
	if d.hasTensorUnits() {
		variants = append(variants, true)
	}
	for _, tensor := range variants {
		if u, ok := d.selftestUnit(); ok {
			r.Tests = append(r.Tests, d.selftest(u, tensor)...)
		}
		for _, u := range d.units {
			if !tensor || strings.Contains(u.Text, variant) {
				r.Units = append(r.Units, d.tryUnit(u, tensor))
			}
		}
	}
	r.Replay = d.timeReplay()
	return r
}

// tryUnit compiles a unit and makes all its kernels ready.
func (d *Device) tryUnit(u metalsrc.Unit, tensor bool) UnitReport {
	r := UnitReport{Name: u.Name, Variant: "portable", Kernels: len(u.Kernels)}
	if tensor {
		r.Variant = "tensor"
	}
	began := time.Now()
	lib, err := d.compileUnit(u, tensor)
	if err != nil {
		r.Err = err
		return r
	}
	defer d.o.release(lib)
	for _, k := range u.Kernels {
		p, err := d.newPipeline(lib, k.Name, lanes)
		r.Err = errors.Join(r.Err, err)
		d.o.release(p.state)
	}
	r.Took = time.Since(began)
	return r
}

// timeReplay is what the host spends on a launch that is started again and
// again; zero if that does not work, which the self-test has then said.
func (d *Device) timeReplay() time.Duration {
	const launches, starts = 200, 20
	k, ok := d.kernels[tileKernel]
	if !ok {
		return 0
	}
	b, err := d.Alloc(1 << 14)
	if err != nil {
		return 0
	}
	defer b.Free()
	s := &device.Stream{}
	for range launches {
		s.Add(device.Command{
			Kernel: k.Name, Groups: [3]int{1, 1, 1}, Threads: [3]int{128, 1, 1},
			Args: []device.Arg{device.Part(b, 0, 4096), device.Part(b, 4096, 4096), device.Part(b, 8192, 4096), device.Value([3]uint32{8, 8, 8})},
		})
	}
	p, err := d.Compile(s)
	if err != nil {
		return 0
	}
	var spent time.Duration
	for range starts {
		began := time.Now()
		run, err := p.Start()
		spent += time.Since(began)
		if err != nil {
			return 0
		}
		if _, err := run.Wait(); err != nil {
			return 0
		}
	}
	if p.Close() != nil {
		return 0
	}
	return spent / (launches * starts)
}
