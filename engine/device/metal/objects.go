//go:build darwin || linux

package metal

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// id is a reference to an object. A message to zero answers zero.
type id uintptr

// entries are the functions of the Objective-C runtime and of Metal.
type entries struct {
	msgSend, registerName, getClass, poolPush, poolPop, createDevice uintptr
}

// objects speaks to objects.
type objects struct {
	entries
	sel    map[string]uintptr
	double func(object, sel uintptr) float64 // msgSend, for methods that return one
}

// newObjects registers all selectors that this package sends.
func newObjects(e entries) *objects {
	o := &objects{entries: e, sel: map[string]uintptr{}}
	for _, s := range selectors() {
		name := append([]byte(s), 0)
		o.sel[s], _, _ = purego.SyscallN(e.registerName, uintptr(unsafe.Pointer(&name[0])))
	}
	purego.RegisterFunc(&o.double, e.msgSend)
	return o
}

// selectors lists what is sent to whom.
func selectors() []string {
	return []string{
		// NSObject
		"alloc", "init", "retain", "release", "respondsToSelector:",
		// NSString, NSError
		"initWithBytes:length:encoding:", "UTF8String", "localizedDescription", "domain", "code",
		// MTLDevice
		"name", "supportsFamily:", "maxBufferLength", "maxThreadgroupMemoryLength", "recommendedMaxWorkingSetSize",
		"newCommandQueue", "newLibraryWithSource:options:error:",
		"newComputePipelineStateWithFunction:error:", "newBufferWithLength:options:",
		"newBufferWithBytesNoCopy:length:options:deallocator:", "newResidencySetWithDescriptor:error:",
		"newComputePipelineStateWithDescriptor:options:reflection:error:",
		// MTLComputePipelineDescriptor
		"setComputeFunction:", "setMaxTotalThreadsPerThreadgroup:",
		// MTLCompileOptions
		"setLanguageVersion:", "setMathMode:", "setFastMathEnabled:",
		// MTLLibrary
		"newFunctionWithName:",
		// MTLComputePipelineState
		"maxTotalThreadsPerThreadgroup", "threadExecutionWidth", "staticThreadgroupMemoryLength",
		// MTLBuffer
		"contents",
		// MTLResidencySet
		"addAllocation:", "removeAllocation:", "requestResidency",
		// MTLCommandQueue
		"commandBufferWithUnretainedReferences", "addResidencySet:",
		// MTLCommandBuffer; commit is also MTLResidencySet's
		"computeCommandEncoderWithDispatchType:", "commit", "waitUntilCompleted", "status", "error", "GPUStartTime", "GPUEndTime",
		// MTLComputeCommandEncoder
		"setComputePipelineState:", "setBuffers:offsets:withRange:", "setBytes:length:atIndex:",
		"setThreadgroupMemoryLength:atIndex:", "dispatchThreadgroups:threadsPerThreadgroup:",
		"memoryBarrierWithScope:", "endEncoding",
	}
}

// selector is a registered selector. One that is not in the list is a mistake
// of the program's author.
func (o *objects) selector(name string) uintptr {
	s, ok := o.sel[name]
	if !ok {
		panic("metal: selector is not registered: " + name)
	}
	return s
}

// send sends a message whose arguments and result are words.
//
//go:uintptrescapes
func (o *objects) send(to id, name string, args ...uintptr) uintptr {
	sel := o.selector(name)
	if strings.Count(name, ":") != len(args) {
		panic("metal: wrong number of arguments: " + name)
	}
	if to == 0 {
		return 0
	}
	all := [6]uintptr{uintptr(to), sel}
	n := 2 + copy(all[2:], args)
	r, _, _ := purego.SyscallN(o.msgSend, all[:n]...)
	return r
}

// is sends a message that answers a BOOL, of which only a byte counts.
func (o *objects) is(to id, name string, args ...uintptr) bool {
	return byte(o.send(to, name, args...)) != 0
}

func (o *objects) release(to id) { o.send(to, "release") }

// understands says whether an object has a method, as newer systems do.
func (o *objects) understands(to id, name string) bool {
	return o.is(to, "respondsToSelector:", o.selector(name))
}

// class looks a class up; zero where the system has none of that name.
func (o *objects) class(name string) id {
	b := append([]byte(name), 0)
	r, _, _ := purego.SyscallN(o.getClass, uintptr(unsafe.Pointer(&b[0])))
	return id(r)
}

// make allocates an object, which the caller releases.
func (o *objects) make(class string) id {
	return id(o.send(id(o.send(o.class(class), "alloc")), "init"))
}

// scoped is pool for what cannot fail.
func (o *objects) scoped(f func()) {
	_ = o.pool(func() error {
		f()
		return nil
	})
}

// pool runs f in an autorelease pool. Pools belong to threads, so f stays on
// one.
func (o *objects) pool(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, _, _ := purego.SyscallN(o.poolPush)
	defer purego.SyscallN(o.poolPop, p)
	return f()
}

const utf8 = 4 // NSUTF8StringEncoding

// text makes an NSString, which the caller releases.
func (o *objects) text(s string) id {
	b := append([]byte(s), 0)
	return id(o.send(id(o.send(o.class("NSString"), "alloc")), "initWithBytes:length:encoding:", uintptr(unsafe.Pointer(&b[0])), uintptr(len(s)), utf8))
}

// string reads an NSString.
func (o *objects) string(s id) string {
	p := o.send(s, "UTF8String")
	if p == 0 {
		return ""
	}
	base := pointer(p)
	n := 0
	for *(*byte)(unsafe.Add(base, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(base), n))
}

// failure is the error of an NSError, which may be missing.
func (o *objects) failure(e id) error {
	if e == 0 {
		return errors.New("no reason was given")
	}
	return fmt.Errorf("%s (%s %d)", o.string(id(o.send(e, "localizedDescription"))), o.string(id(o.send(e, "domain"))), int(o.send(e, "code")))
}

// pointer is an address that C gave us.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
