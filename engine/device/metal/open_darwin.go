//go:build darwin && arm64

package metal

import (
	"fmt"
	"syscall"

	"github.com/ebitengine/purego"

	"weir/engine/device"
)

// Open takes the system's GPU.
func Open(opt Options) (device.Device, error) {
	system, e, err := load()
	if err != nil {
		return nil, fmt.Errorf("open Metal: %w", err)
	}
	d, err := open(newObjects(e), system, opt)
	if err != nil {
		return nil, fmt.Errorf("open Metal: %w", err)
	}
	return d, nil
}

// Probe looks at the system's GPU, see [Report].
func Probe(opt Options) Report {
	system, e, err := load()
	if err != nil {
		return Report{Err: err}
	}
	return probe(newObjects(e), system, opt)
}

// load finds the functions of the system, and its version.
func load() (system string, e entries, err error) {
	if system, err = syscall.Sysctl("kern.osproductversion"); err != nil {
		return "", e, fmt.Errorf("read the version of the system: %w", err)
	}
	const flags = purego.RTLD_NOW | purego.RTLD_GLOBAL
	objc, err := purego.Dlopen("/usr/lib/libobjc.A.dylib", flags)
	if err != nil {
		return "", e, err
	}
	// Without Core Graphics in the process a program without windows gets no device.
	for _, framework := range []string{"Foundation", "CoreGraphics"} {
		if _, err := purego.Dlopen("/System/Library/Frameworks/"+framework+".framework/"+framework, flags); err != nil {
			return "", e, err
		}
	}
	metal, err := purego.Dlopen("/System/Library/Frameworks/Metal.framework/Metal", flags)
	if err != nil {
		return "", e, err
	}
	for _, f := range []struct {
		to   *uintptr
		lib  uintptr
		name string
	}{
		{&e.msgSend, objc, "objc_msgSend"},
		{&e.registerName, objc, "sel_registerName"},
		{&e.getClass, objc, "objc_getClass"},
		{&e.poolPush, objc, "objc_autoreleasePoolPush"},
		{&e.poolPop, objc, "objc_autoreleasePoolPop"},
		{&e.createDevice, metal, "MTLCreateSystemDefaultDevice"},
	} {
		if *f.to, err = purego.Dlsym(f.lib, f.name); err != nil {
			return "", e, err
		}
	}
	return system, e, nil
}
