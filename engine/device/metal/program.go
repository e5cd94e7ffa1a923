//go:build darwin || linux

package metal

import (
	"fmt"

	"weir/engine/device"
	"weir/engine/device/check"
	"weir/engine/device/metal/batch"
)

// Values of Metal's headers.
const (
	dispatchConcurrent = 1 // MTLDispatchTypeConcurrent
	scopeBuffers       = 1 // MTLBarrierScopeBuffers
)

// program is a stream as a list of sends to a command encoder.
type program struct {
	d    *Device
	list batch.List
}

// Compile orders and checks a stream, makes its kernels ready, and records
// what an encoder is told.
func (d *Device) Compile(s *device.Stream) (device.Program, error) {
	barrier, err := device.Order(s, d.Kernel)
	if err != nil {
		return nil, err
	}
	if err := check.Stream(s, barrier, d.Kernel, d.caps); err != nil {
		return nil, err
	}
	if err := d.prepare(s); err != nil {
		return nil, err
	}
	p, err := d.record(s, barrier, d.pipelines)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// record makes a program of pipelines.
func (d *Device) record(s *device.Stream, barrier []bool, pipelines map[string]pipeline) (*program, error) {
	r := recorder{o: d.o, p: &program{d: d}}
	for i := range s.Commands {
		if barrier[i] {
			r.add("memoryBarrierWithScope:", scopeBuffers)
		}
		if err := r.command(d, &s.Commands[i], pipelines[s.Commands[i].Kernel]); err != nil {
			return nil, fmt.Errorf("command %d (%s): %w", i, s.Commands[i].Kernel, err)
		}
	}
	r.add("endEncoding")
	return r.p, nil
}

// recorder knows what the encoder was told so far.
type recorder struct {
	o        *objects
	p        *program
	pipeline id
	shared   [8]int
}

func (r *recorder) add(name string, args ...uintptr) {
	r.p.list.Add(r.o.selector(name), args...)
}

// command records a launch.
func (r *recorder) command(d *Device, c *device.Command, p pipeline) error {
	sum := p.staticShared
	for _, n := range c.Shared {
		sum += n
	}
	threads := c.Threads[0] * c.Threads[1] * c.Threads[2]
	if threads > p.threads || sum > d.caps.Shared {
		return fmt.Errorf("%d threads with %d bytes of threadgroup memory: this GPU can do %d and %d", threads, sum, p.threads, d.caps.Shared)
	}
	if p.state != r.pipeline {
		r.add("setComputePipelineState:", uintptr(p.state))
		r.pipeline = p.state
	}
	if err := r.bind(d, c); err != nil {
		return err
	}
	r.threadgroupMemory(c.Shared)
	r.add("dispatchThreadgroups:threadsPerThreadgroup:", r.size(c.Groups), r.size(c.Threads))
	return nil
}

// size is the address of an MTLSize.
func (r *recorder) size(n [3]int) uintptr {
	return r.p.list.Words(uint64(n[0]), uint64(n[1]), uint64(n[2]))
}

// bind records the arguments: each row of buffers with one send.
func (r *recorder) bind(d *Device, c *device.Command) error {
	var buffers, offsets []uint64
	flush := func(end int) {
		if n := len(buffers); n > 0 {
			r.add("setBuffers:offsets:withRange:", r.p.list.Words(buffers...), r.p.list.Words(offsets...), uintptr(end-n), uintptr(n))
			buffers, offsets = nil, nil
		}
	}
	for i, a := range c.Args {
		if a.Buf == nil {
			flush(i)
			if a.Raw != nil {
				r.add("setBytes:length:atIndex:", r.p.list.Bytes(a.Raw), uintptr(len(a.Raw)), uintptr(i))
			}
			continue
		}
		if _, err := d.span(a.Buf, a.At, a.End()-a.At); err != nil {
			return fmt.Errorf("buffer(%d): %w", i, err)
		}
		buffers = append(buffers, uint64(a.Buf.(*buffer).b))
		offsets = append(offsets, uint64(a.At))
	}
	flush(len(c.Args))
	return nil
}

// threadgroupMemory records lengths that change. One that an earlier launch
// left behind would count against the limit, so it is made small.
func (r *recorder) threadgroupMemory(lengths []int) {
	const small = 16
	for i := range r.shared {
		n := 0
		if i < len(lengths) {
			n = lengths[i]
		}
		if n == 0 && r.shared[i] > small {
			n = small
		}
		if n != 0 && n != r.shared[i] {
			r.add("setThreadgroupMemoryLength:atIndex:", uintptr(n), uintptr(i))
			r.shared[i] = n
		}
	}
}

// Close waits for runs of the program, whose arguments it holds.
func (p *program) Close() error {
	p.d.idle()
	p.list = batch.List{}
	return nil
}
