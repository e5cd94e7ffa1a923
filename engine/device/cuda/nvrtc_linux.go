//go:build amd64 || arm64

package cuda

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"weir/metalsrc"
)

// compiler is NVRTC, NVIDIA's run-time compiler.
// https://docs.nvidia.com/cuda/nvrtc/
type compiler struct {
	create, compile, destroy, version            proc
	logSize, log, ptxSize, ptx, cubinSize, cubin proc
	archCount, archs                             proc
	major, minor                                 int
	known                                        []int32 // architectures, as 90
}

// nvrtcPlaces are where libnvrtc is looked for. A name without a folder is the
// dynamic linker's to find.
func nvrtcPlaces() []string {
	places := []string{"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"}
	for _, pattern := range []string{
		"/usr/local/cuda*/lib64/libnvrtc.so*", "/usr/local/cuda*/targets/*/lib/libnvrtc.so*",
		"/opt/cuda*/lib64/libnvrtc.so*", "/usr/lib/*-linux-gnu/libnvrtc.so*",
		"/usr/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so*",
		"/usr/local/lib/python3*/*-packages/nvidia/*/lib/libnvrtc.so*",
		"/opt/*/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so*",
		"/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so*",
	} {
		found, _ := filepath.Glob(pattern) // the pattern is well-formed
		slices.Reverse(found)              // newest first
		places = append(places, found...)
	}
	return places
}

// loadCompiler opens the first NVRTC that the driver's version can follow.
func loadCompiler(path string, driverMajor int) (*compiler, error) {
	places := []string{path}
	if path == "" {
		places = nvrtcPlaces()
	}
	newest := 0
	for _, place := range places {
		c, err := openCompiler(place)
		switch {
		case err != nil && path != "":
			return nil, fmt.Errorf("open NVRTC: %w", err)
		case err != nil:
		case c.major > driverMajor:
			newest = max(newest, c.major)
		default:
			return c, nil
		}
	}
	if newest > 0 {
		return nil, fmt.Errorf("NVRTC %d is newer than the driver, which runs CUDA %d: update the driver", newest, driverMajor)
	}
	return nil, errors.New("NVRTC, NVIDIA's run-time compiler, is not installed: libnvrtc.so of CUDA 12 or 13 was not found")
}

func openCompiler(path string) (*compiler, error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	c := &compiler{}
	if err := resolve(h, map[string]*proc{
		"nvrtcCreateProgram": &c.create, "nvrtcCompileProgram": &c.compile, "nvrtcDestroyProgram": &c.destroy,
		"nvrtcVersion": &c.version, "nvrtcGetProgramLogSize": &c.logSize, "nvrtcGetProgramLog": &c.log,
		"nvrtcGetPTXSize": &c.ptxSize, "nvrtcGetPTX": &c.ptx, "nvrtcGetCUBINSize": &c.cubinSize, "nvrtcGetCUBIN": &c.cubin,
		"nvrtcGetNumSupportedArchs": &c.archCount, "nvrtcGetSupportedArchs": &c.archs,
	}); err != nil {
		return nil, err
	}
	var major, minor, n int32
	if c.version.call(uintptr(unsafe.Pointer(&major)), uintptr(unsafe.Pointer(&minor))) != success ||
		c.archCount.call(uintptr(unsafe.Pointer(&n))) != success || n < 1 {
		return nil, errors.New("NVRTC does not answer")
	}
	c.major, c.minor, c.known = int(major), int(minor), make([]int32, n)
	if c.archs.call(uintptr(unsafe.Pointer(&c.known[0]))) != success {
		return nil, errors.New("NVRTC does not say for which GPUs it compiles")
	}
	return c, nil
}

// target is the architecture to compile for, given that of the GPU: its own,
// with what only it has, or else the newest one that it can translate.
func (c *compiler) target(arch int) (string, error) {
	if slices.Contains(c.known, int32(arch)) {
		if arch >= 90 {
			return fmt.Sprintf("sm_%da", arch), nil
		}
		return fmt.Sprintf("sm_%d", arch), nil
	}
	best := 0
	for _, k := range c.known {
		if int(k) < arch {
			best = max(best, int(k))
		}
	}
	if best < minArch {
		return "", fmt.Errorf("NVRTC %d.%d does not compile for compute capability %d.%d", c.major, c.minor, arch/10, arch%10)
	}
	return fmt.Sprintf("compute_%d", best), nil
}

// build compiles a unit's text: to machine code for an sm_ target, to PTX for a
// compute_ one. It may be called by several goroutines at a time.
func (c *compiler) build(name, text string, options []string) (image []byte, log string, err error) {
	runtime.LockOSThread() // the compiler keeps state by thread
	defer runtime.UnlockOSThread()
	heads, err := headers()
	if err != nil {
		return nil, "", err
	}
	src, file := cBytes(text), cBytes(name+".metal")
	var bodies, names, opts []unsafe.Pointer
	for _, h := range heads {
		bodies = append(bodies, unsafe.Pointer(&cBytes(h.text)[0]))
		names = append(names, unsafe.Pointer(&cBytes(h.name)[0]))
	}
	for _, o := range options {
		opts = append(opts, unsafe.Pointer(&cBytes(o)[0]))
	}
	var prog uintptr
	if s := c.create.call(uintptr(unsafe.Pointer(&prog)), uintptr(unsafe.Pointer(&src[0])), uintptr(unsafe.Pointer(&file[0])),
		uintptr(len(heads)), uintptr(unsafe.Pointer(&bodies[0])), uintptr(unsafe.Pointer(&names[0]))); s != success {
		return nil, "", fmt.Errorf("NVRTC error %d", s)
	}
	defer c.destroy.call(uintptr(unsafe.Pointer(&prog)))
	s := c.compile.call(prog, uintptr(len(opts)), uintptr(unsafe.Pointer(&opts[0])))
	runtime.KeepAlive(opts)
	if said, err := fetch(prog, c.logSize, c.log); err == nil {
		log = strings.TrimRight(string(said), "\x00")
	}
	if s != success {
		return nil, "", fmt.Errorf("NVRTC error %d\n%s", s, log)
	}
	size, get := c.cubinSize, c.cubin
	if slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "--gpu-architecture=compute_") }) {
		size, get = c.ptxSize, c.ptx
	}
	image, err = fetch(prog, size, get)
	return image, log, err
}

// fetch gets one product of a program.
func fetch(prog uintptr, size, get proc) ([]byte, error) {
	var n uint64
	if s := size.call(prog, uintptr(unsafe.Pointer(&n))); s != success || n == 0 {
		return nil, fmt.Errorf("NVRTC gives no output, error %d", s)
	}
	out := make([]byte, n)
	if s := get.call(prog, uintptr(unsafe.Pointer(&out[0]))); s != success {
		return nil, fmt.Errorf("NVRTC gives no output, error %d", s)
	}
	return out, nil
}

func cBytes(s string) []byte { return append([]byte(s), 0) }

// header is a file that travels in memory.
type header struct{ name, text string }

// headers are the shim, and Metal's own names for it.
func headers() ([]header, error) {
	var out []header
	for _, name := range []string{"msl_common.h", "msl_cuda.h"} {
		b, err := fs.ReadFile(metalsrc.Shim(), name)
		if err != nil {
			return nil, fmt.Errorf("read the shim: %w", err)
		}
		out = append(out, header{name, string(b)})
	}
	for _, name := range []string{"metal_stdlib", "metal_simdgroup", "metal_simdgroup_matrix", "metal_atomic", "metal_math", "metal_compute"} {
		out = append(out, header{name, "#include \"msl_cuda.h\"\n"})
	}
	return out, nil
}
