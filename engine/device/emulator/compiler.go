package emulator

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"weir/metalsrc"
	"weir/metalsrc/msl"
)

// ErrNoCompiler says that no C++ compiler was found.
var ErrNoCompiler = errors.New("no C++ compiler")

// variant is the macro that chooses Metal's tensor operations.
const variant = "TENSOR_OPS"

// compiler is a C++ compiler and where its products are kept. They are found
// again by the content that made them, also by other processes.
type compiler struct {
	path string
	id   string // changes when the compiler does
	dir  string
}

// findCompiler looks for a compiler by name or path; empty takes the first of
// those that are known to work.
func findCompiler(name string) (compiler, error) {
	names := []string{name}
	if name == "" {
		// Plain clang++ may be any version: 14 reads threadgroup memory that the
		// text does not, and the checker reports it.
		names = []string{"clang++-19", "clang++-16", "g++", "clang++"}
	}
	for _, n := range names {
		path, err := exec.LookPath(n)
		if err != nil {
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return compiler{}, err
		}
		st, err := os.Stat(path)
		if err != nil {
			return compiler{}, err
		}
		cache, err := os.UserCacheDir()
		if err != nil {
			return compiler{}, err
		}
		dir := filepath.Join(cache, "weir-kernels")
		id := fmt.Sprintf("%s %d %d", path, st.Size(), st.ModTime().UnixNano())
		return compiler{path, id, dir}, os.MkdirAll(dir, 0o755)
	}
	return compiler{}, fmt.Errorf("%w: tried %s", ErrNoCompiler, strings.Join(names, ", "))
}

// flags of every compilation. No contraction: a product and a sum round twice,
// on every processor.
func flags() []string {
	return []string{
		"-std=c++20", "-O2", "-fPIC", "-fno-exceptions", "-fno-rtti", "-ffp-contract=off",
		"-fvisibility=hidden", "-w", "-pthread",
	}
}

// instrument are the flags of checked kernels. Nothing is vectorized: what the
// compiler would load together need not be aligned together.
func instrument() []string {
	return []string{
		"-fsanitize=thread", "-fsanitize=alignment,shift,bounds,integer-divide-by-zero,float-cast-overflow",
		"-fno-sanitize-recover=all", "-fno-tree-vectorize", "-fno-tree-slp-vectorize",
	}
}

// build compiles a unit, unless that was done before, and loads it.
func (c compiler) build(u metalsrc.Unit, o Options) (*library, error) {
	text := msl.Strip(u.Text) + msl.GenCPU(u.Kernels)
	kernelFlags, runtimeFlags := flags(), flags()
	if o.Check {
		kernelFlags = append(append(kernelFlags, instrument()...), "-DMSL_CHECK")
		runtimeFlags = append(runtimeFlags, "-DMSL_CHECK")
	}
	if o.Tensor && strings.Contains(u.Text, variant) {
		kernelFlags = append(kernelFlags, "-D"+variant)
	}
	if o.Matrix {
		room := fmt.Sprintf("-DMSL_TG_LIMIT=%d", matrixShared)
		kernelFlags, runtimeFlags = append(kernelFlags, room), append(runtimeFlags, room)
	}
	shim, err := shimDigest()
	if err != nil {
		return nil, err
	}
	rt, err := c.product(digest(c.id, runtimeFlags, shim)+".o", func(dir, out string) error {
		return c.compile(dir, append(runtimeFlags, "-c", filepath.Join(dir, "rt", "rt.cpp"), "-o", out)...)
	})
	if err != nil {
		return nil, err
	}
	so, err := c.product(digest(c.id, kernelFlags, shim, text)+".so", func(dir, out string) error {
		src := filepath.Join(dir, u.Name+".cpp")
		if err := os.WriteFile(src, []byte(text), 0o644); err != nil {
			return err
		}
		obj := filepath.Join(dir, "unit.o")
		if err := c.compile(dir, append(kernelFlags, "-I", filepath.Join(dir, "inc"), "-I", dir, "-c", src, "-o", obj)...); err != nil {
			return err
		}
		if o.Check {
			// Older clangs copy by the C library's functions where newer ones call
			// a hook: without this the checker would not see those copies.
			hooked := filepath.Join(dir, "hooked.o")
			if err := c.compile(dir, "-r", "-nostdlib", "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset", "-o", hooked, obj); err != nil {
				return err
			}
			obj = hooked
		}
		return c.compile(dir, "-shared", "-o", out, obj, rt, "-lm")
	})
	if err != nil {
		return nil, err
	}
	return open(so, u.Kernels)
}

// product returns the path of a file that was made before, or makes it: in a
// folder of its own that holds the shim, under a lock, so that two processes
// neither disturb one another nor do the same work twice.
func (c compiler) product(name string, make func(dir, out string) error) (string, error) {
	path := filepath.Join(c.dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", name, err)
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	dir, err := os.MkdirTemp(c.dir, "build-")
	if err != nil {
		return "", err
	}
	err = os.CopyFS(dir, metalsrc.Shim())
	if err == nil {
		err = make(dir, filepath.Join(dir, "out"))
	}
	if err == nil {
		err = os.Rename(filepath.Join(dir, "out"), path)
	}
	return path, errors.Join(err, os.RemoveAll(dir), c.prune())
}

// prune removes what was made long ago. Something of it that is still wanted is
// made again.
func (c compiler) prune() error {
	old := time.Now().Add(-14 * 24 * time.Hour)
	entries, err := os.ReadDir(c.dir)
	for _, e := range entries {
		if st, gone := e.Info(); gone == nil && st.ModTime().Before(old) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(c.dir, e.Name())))
		}
	}
	return err
}

func (c compiler) compile(dir string, args ...string) error {
	cmd := exec.Command(c.path, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(c.path), err, out)
	}
	return nil
}

// shimDigest is a digest of the runtime, and of the headers that it and kernels
// include.
func shimDigest() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(metalsrc.Shim(), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == "check":
			return fs.SkipDir
		case e.IsDir() || path == "msl_cuda.h" || path == "faults.metal":
			return nil
		}
		b, err := fs.ReadFile(metalsrc.Shim(), path)
		fmt.Fprintln(h, path, len(b))
		h.Write(b)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

func digest(parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%q\n", p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
