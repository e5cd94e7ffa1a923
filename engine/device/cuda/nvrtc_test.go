//go:build nvrtc && linux && (amd64 || arm64)

package cuda_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"weir/engine/device/cuda"
	"weir/metalsrc"
)

// Every unit compiles for the oldest GPUs served and for Hopper's, no kernel spills, and the
// log says what each takes. WEIR_NVRTC names the library if it lies in no usual
// place; WEIR_CUBINS is a folder to leave the machine code in.
func TestUnitsCompile(t *testing.T) {
	t.Parallel()
	units, err := metalsrc.Units()
	if err != nil {
		t.Fatal(err)
	}
	entry := regexp.MustCompile(`(?s)entry function 'msl_k_(\w+)' for 'sm_\w+'.*?(\d+) bytes spill stores.*?Used (\d+) registers[^\n]*`)
	for _, u := range units {
		for _, v := range []struct {
			name    string
			arch    int
			overlap bool
		}{{"sm_80", 80, false}, {"sm_90", 90, false}, {"sm_90 overlapping", 90, true}} {
			if v.overlap && u.Name != "selftest" {
				continue // it adds two instructions: one unit will do
			}
			t.Run(u.Name+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				image, log, err := cuda.CompileUnit(os.Getenv("WEIR_NVRTC"), u, v.arch, v.overlap)
				if err != nil {
					t.Fatal(err)
				}
				if dir := os.Getenv("WEIR_CUBINS"); dir != "" && !v.overlap {
					if err := os.WriteFile(dir+"/"+u.Name+"."+v.name+".cubin", image, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				found := entry.FindAllStringSubmatch(log, -1)
				if len(found) != len(u.Kernels) {
					t.Fatalf("the assembler reports %d kernels of %d:\n%s", len(found), len(u.Kernels), log)
				}
				for _, m := range found {
					t.Logf("%s: %s registers", m[1], m[3])
					if m[2] != "0" {
						t.Errorf("%s spills %s bytes", m[1], m[2])
					}
				}
			})
		}
	}
}

func TestOwnKernelsCompile(t *testing.T) {
	t.Parallel()
	for _, arch := range []int{80, 90} {
		log, err := cuda.CompileOwn(os.Getenv("WEIR_NVRTC"), arch)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(log, "Used ") != 2 || strings.Count(log, " 0 bytes spill stores") != 2 {
			t.Error(log)
		}
	}
}

// A folder of compiled kernels, as Options.Cache names it, can be filled without a
// GPU and carried to one. WEIR_CUDA_CACHE keeps it; it serves Hopper, with and
// without overlapping launches, where NVRTC has the same version.
func TestFillCache(t *testing.T) {
	t.Parallel()
	units, err := metalsrc.Units()
	if err != nil {
		t.Fatal(err)
	}
	dir := os.Getenv("WEIR_CUDA_CACHE")
	if dir == "" {
		dir, units = t.TempDir(), units[:1] // one, to see that it works
	}
	for _, overlap := range []bool{false, true} {
		if err := cuda.FillCache(os.Getenv("WEIR_NVRTC"), dir, units, 90, overlap); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	kernels := 0
	for _, u := range units {
		kernels += len(u.Kernels)
	}
	if len(files) < 2*kernels {
		t.Errorf("%d files for %d kernels, each compiled in two ways", len(files), kernels)
	}
}
