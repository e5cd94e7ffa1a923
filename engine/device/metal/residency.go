//go:build darwin || linux

package metal

import (
	"sync"
	"time"
	"unsafe"
)

// The system drops the residency of memory that is idle for a moment, and
// bringing gigabytes back costs a second. So it is asked for again and again
// for a while after each run. Both figures are llama.cpp's.
const (
	askEvery = 5 * time.Millisecond
	keepWarm = 3 * time.Minute
)

// residency keeps all buffers of a device where the GPU reaches them. Systems
// before macOS 15 do not have it, and set is zero.
type residency struct {
	o    *objects
	stop chan struct{}
	used chan struct{} // a run was started
	done sync.WaitGroup

	mu  sync.Mutex // guards set
	set id
}

// newResidency makes a set for the queue.
func newResidency(o *objects, dev, queue id) *residency {
	r := &residency{o: o, stop: make(chan struct{}), used: make(chan struct{}, 1)} // one pending word is enough
	if o.class("MTLResidencySetDescriptor") == 0 || !o.understands(queue, "addResidencySet:") {
		return r
	}
	desc := o.make("MTLResidencySetDescriptor")
	defer o.release(desc)
	why := new(uintptr)
	if r.set = id(o.send(dev, "newResidencySetWithDescriptor:error:", uintptr(desc), uintptr(unsafe.Pointer(why)))); r.set == 0 {
		return r // it only makes things faster
	}
	o.send(queue, "addResidencySet:", uintptr(r.set))
	r.done.Go(r.ask)
	return r
}

func (r *residency) add(b id)    { r.change("addAllocation:", b) }
func (r *residency) remove(b id) { r.change("removeAllocation:", b) }

func (r *residency) change(how string, b id) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set != 0 {
		r.o.send(r.set, how, uintptr(b))
		r.o.send(r.set, "commit")
	}
}

// touch notes a run.
func (r *residency) touch() {
	select {
	case r.used <- struct{}{}:
	default:
	}
}

// ask asks for residency while the device is in use, and for a while after.
func (r *residency) ask() {
	for {
		select {
		case <-r.stop:
			return
		case <-r.used:
		}
		tick := time.NewTicker(askEvery)
		for end := time.Now().Add(keepWarm); time.Now().Before(end); {
			r.request()
			select {
			case <-r.stop:
				tick.Stop()
				return
			case <-r.used:
				end = time.Now().Add(keepWarm)
			case <-tick.C:
			}
		}
		tick.Stop()
	}
}

func (r *residency) request() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.o.scoped(func() { r.o.send(r.set, "requestResidency") })
}

// close stops asking. The set is the caller's to release.
func (r *residency) close() {
	close(r.stop)
	r.done.Wait()
}
