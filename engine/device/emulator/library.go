package emulator

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"weir/metalsrc/msl"
)

// launch mirrors MslLaunch in metalsrc/shim/msl_rt.h.
type launch struct {
	body        uintptr
	grid, tg    [3]uint32
	seed, check uint32
	buf         [31]unsafe.Pointer
	buflen      [31]uint64
	tgmem       [8]uint64
}

// play mirrors MslPlay.
type play struct {
	launches           *launch
	order              *uint32
	n, failed          uint32
	next               *uint32
	switches, accesses uint64
	err                [512]byte
}

// library is a loaded unit.
type library struct {
	code                         map[string]uintptr // of each kernel
	workerNew, workerFree, entry uintptr
}

// open loads a library and holds the sizes of argument structs that the parser
// computed against the compiler's.
func open(path string, kernels []msl.Kernel) (*library, error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	l := &library{code: map[string]uintptr{}}
	for name, p := range map[string]*uintptr{"msl_worker_new": &l.workerNew, "msl_worker_free": &l.workerFree, "msl_play": &l.entry} {
		if *p, err = purego.Dlsym(h, name); err != nil {
			return nil, err
		}
	}
	for _, k := range kernels {
		if l.code[k.Name], err = purego.Dlsym(h, "msl_k_"+k.Name); err != nil {
			return nil, err
		}
		for _, a := range k.Args {
			if a.Kind != msl.Constant || !a.Ref {
				continue
			}
			p, err := purego.Dlsym(h, fmt.Sprintf("msl_sz_%s_%d", k.Name, a.Index))
			if err != nil {
				return nil, err
			}
			if n := **(**uint32)(unsafe.Pointer(&p)); int(n) != a.Size {
				return nil, fmt.Errorf("%s: buffer(%d) %s: struct %s has %d bytes, and %d by its text: its fields may be uint, int and float, and arrays of them",
					k.Name, a.Index, a.Name, a.Type, n, a.Size)
			}
		}
	}
	return l, nil
}

func (l *library) newWorker() uintptr {
	w, _, _ := purego.SyscallN(l.workerNew)
	return w
}

func (l *library) freeWorker(w uintptr) { purego.SyscallN(l.workerFree, w) }

// run plays launches on a worker.
func (l *library) run(worker uintptr, p *play) error {
	purego.SyscallN(l.entry, worker, uintptr(unsafe.Pointer(p)))
	runtime.KeepAlive(p)
	if p.err[0] == 0 {
		return nil
	}
	n := 0
	for n < len(p.err) && p.err[n] != 0 {
		n++
	}
	return fmt.Errorf("%s", p.err[:n])
}
