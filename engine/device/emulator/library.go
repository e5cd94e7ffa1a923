package emulator

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"weir/metalsrc"
	"weir/metalsrc/msl"
)

// launch mirrors MslLaunch in shim/msl_rt.h.
type launch struct {
	grid, tg       [3]uint32
	begin, end     uint32
	nbuf           uint32
	seed, flags, _ uint32
	buf            [31]unsafe.Pointer
	buflen         [31]uint64
	tgmem          [8]uint64
	switches       uint64
	accesses       uint64
	err            [512]byte
}

// library is a loaded kernel library.
type library struct {
	Kernels map[string]msl.Kernel
	h       uintptr
	fn      map[string]uintptr
	check   bool
}

func findCXX() string {
	for _, c := range []string{os.Getenv("MSL_CXX"), "clang++", "clang++-19", "g++"} {
		if c == "" {
			continue
		}
		if _, err := exec.LookPath(c); err == nil {
			return c
		}
	}
	return ""
}

// build composes the launchers, compiles, and loads the result. Objects are
// cached by content.
func build(u metalsrc.Unit, o Options) (*library, error) {
	ks := u.Kernels
	if o.Compiler == "" {
		o.Compiler = findCXX()
	}
	if o.Compiler == "" {
		return nil, errors.New("no C++ compiler")
	}
	text := msl.Strip(u.Text) + msl.GenCPU(ks)
	flags := []string{"-std=c++20", "-O2", "-fPIC", "-fno-exceptions", "-fno-rtti", "-ffp-contract=off",
		"-fvisibility=hidden", "-ftls-model=initial-exec", "-w"}
	h := sha256.New()
	fmt.Fprintln(h, o.Compiler, flags, o.Check, text)
	for _, f := range []string{"msl_common.h", "msl_cpu.h", "msl_rt.h", "msl_rt.cpp", "msl_tensor.h"} {
		b, err := fs.ReadFile(metalsrc.Shim(), f)
		if err != nil {
			return nil, err
		}
		h.Write(b)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "weir-kernels")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	shim := filepath.Join(dir, fmt.Sprintf("shim-%x", h.Sum(nil)[:8]))
	if err := unpack(shim); err != nil {
		return nil, err
	}
	flags = append(flags, "-I", filepath.Join(shim, "inc"), "-I", shim)
	base := filepath.Join(dir, fmt.Sprintf("%x", h.Sum(nil)[:12]))
	so := base + ".so"
	if _, err := os.Stat(so); err != nil {
		if err := os.WriteFile(base+".cpp", []byte(text), 0o644); err != nil {
			return nil, err
		}
		run := func(args ...string) error {
			out, err := exec.Command(o.Compiler, args...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", o.Compiler, err, out)
			}
			return nil
		}
		kf := append([]string{}, flags...)
		rf := append([]string{}, flags...)
		if o.Check {
			kf = append(kf, "-fsanitize=thread", "-fsanitize=alignment,shift,bounds,integer-divide-by-zero,float-cast-overflow", "-fno-sanitize-recover=all", "-DMSL_CHECK")
			rf = append(rf, "-DMSL_CHECK")
		}
		if err := run(append(kf, "-c", base+".cpp", "-o", base+".k.o")...); err != nil {
			return nil, err
		}
		if err := run(append(rf, "-c", filepath.Join(shim, "msl_rt.cpp"), "-o", base+".r.o")...); err != nil {
			return nil, err
		}
		if err := run("-shared", "-o", so+".tmp", base+".k.o", base+".r.o", "-lm"); err != nil {
			return nil, err
		}
		if err := os.Rename(so+".tmp", so); err != nil {
			return nil, err
		}
	}
	hd, err := purego.Dlopen(so, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	l := &library{Kernels: map[string]msl.Kernel{}, h: hd, fn: map[string]uintptr{}, check: o.Check}
	for _, k := range ks {
		p, err := purego.Dlsym(hd, "msl_k_"+k.Name)
		if err != nil {
			return nil, err
		}
		l.Kernels[k.Name] = k
		l.fn[k.Name] = p
		for _, a := range k.Args {
			if a.Kind == msl.Constant && a.Ref {
				if _, err := purego.Dlsym(hd, fmt.Sprintf("msl_sz_%s_%d", k.Name, a.Index)); err != nil {
					return nil, err
				}
			}
		}
	}
	return l, nil
}

// launchArgs describe one launch.
type launchArgs struct {
	kernel     string
	groups, tg [3]int
	bufs       map[int][]byte
	tgmem      map[int]int
	seed       uint32
}

func addr(p []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p))) }

// unpack writes the shim's headers to dir.
func unpack(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "shim-")
	if err != nil {
		return err
	}
	if err := os.CopyFS(tmp, metalsrc.Shim()); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		if _, there := os.Stat(dir); there == nil { // another process was first
			return os.RemoveAll(tmp)
		}
		return err
	}
	return nil
}

// run executes the launch, spreading threadgroups over OS threads.
func (l *library) run(d launchArgs) error {
	k, ok := l.Kernels[d.kernel]
	if !ok {
		return fmt.Errorf("no kernel %q", d.kernel)
	}
	proto := launch{seed: d.seed, flags: 1}
	for i := range 3 {
		proto.grid[i], proto.tg[i] = uint32(max(d.groups[i], 1)), uint32(max(d.tg[i], 1))
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	if l.check { // copies with red zones between, so that no buffer borders another
		const gap = 1 << 16
		n := gap
		for _, b := range d.bufs {
			n += (len(b)+255)&^255 + gap
		}
		big := make([]byte, n)
		o, bufs := gap, map[int][]byte{}
		for i, b := range d.bufs {
			c := big[o : o+len(b) : o+len(b)]
			copy(c, b)
			bufs[i] = c
			o += (len(b)+255)&^255 + gap
		}
		orig := d.bufs
		d.bufs = bufs
		defer func() {
			for i := range orig {
				copy(orig[i], bufs[i])
			}
		}()
	}
	for _, a := range k.Args {
		switch a.Kind {
		case msl.Buffer, msl.Constant:
			b, ok := d.bufs[a.Index]
			if !ok || len(b) == 0 {
				return fmt.Errorf("%s: buffer(%d) %s not bound", k.Name, a.Index, a.Name)
			}
			if a.Kind == msl.Constant && a.Ref {
				p, _ := purego.Dlsym(l.h, fmt.Sprintf("msl_sz_%s_%d", k.Name, a.Index))
				n, _, _ := purego.SyscallN(p)
				if int(n) != len(b) {
					return fmt.Errorf("%s: buffer(%d) %s has %d bytes, kernel struct has %d", k.Name, a.Index, a.Name, len(b), n)
				}
			}
			pin.Pin(&b[0])
			proto.buf[a.Index] = unsafe.Pointer(&b[0])
			proto.buflen[a.Index] = uint64(len(b))
		case msl.Threadgroup:
			n, ok := d.tgmem[a.Index]
			if !ok || n <= 0 || n%16 != 0 {
				return fmt.Errorf("%s: threadgroup(%d) length %d: must be a positive multiple of 16", k.Name, a.Index, n)
			}
			proto.tgmem[a.Index] = uint64(n)
		}
	}
	total := proto.grid[0] * proto.grid[1] * proto.grid[2]
	procs := runtime.GOMAXPROCS(0)
	if l.check {
		procs = 1
	}
	procs = min(procs, int(total))
	var wg sync.WaitGroup
	ls := make([]*launch, procs)
	for p := range procs {
		c := proto
		c.begin = uint32(uint64(total) * uint64(p) / uint64(procs))
		c.end = uint32(uint64(total) * uint64(p+1) / uint64(procs))
		ls[p] = &c
		wg.Add(1)
		go func() {
			defer wg.Done()
			purego.SyscallN(l.fn[k.Name], uintptr(unsafe.Pointer(ls[p])))
		}()
	}
	wg.Wait()
	for _, c := range ls {
		if c.err[0] != 0 {
			n := 0
			for c.err[n] != 0 {
				n++
			}
			return fmt.Errorf("%s: %s", k.Name, c.err[:n])
		}
	}
	return nil
}
