//go:build amd64 || arm64

package cuda_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/engine/device/cuda"
	"weir/metalsrc"
)

// Every unit is CUDA, by the reading of a second compiler: clang needs neither
// NVIDIA's headers nor a GPU. It is installed in CI; elsewhere the test may be
// skipped.
func TestUnitsAreCUDA(t *testing.T) {
	t.Parallel()
	clang := ""
	for _, name := range []string{"clang", "clang-19", "clang-16"} {
		if path, err := exec.LookPath(name); err == nil {
			clang = path
			break
		}
	}
	if clang == "" && os.Getenv("CI") != "" {
		t.Fatal("no clang is installed")
	}
	if clang == "" {
		t.Skip("no clang is installed")
	}
	units, err := metalsrc.Units()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, metalsrc.Shim()); err != nil {
		t.Fatal(err)
	}
	// The same include files as NVRTC gets: Metal's names for the shim.
	for _, name := range []string{"metal_stdlib", "metal_simdgroup", "metal_simdgroup_matrix", "metal_atomic", "metal_math", "metal_compute"} {
		if err := os.MkdirAll(filepath.Join(dir, "cuda"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cuda", name), []byte("#include \"msl_cuda.h\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(t *testing.T, u metalsrc.Unit) (string, error) {
		t.Helper()
		text, err := cuda.Source(u)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), clang, "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_80",
			"-nocudainc", "-nocudalib", "-std=c++17", "-fsyntax-only", "-DMSL_CUDA", "-Wno-unknown-cuda-version",
			"-Xclang", "-target-feature", "-Xclang", "+ptx78", "-I", filepath.Join(dir, "cuda"), "-I", dir, "-")
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, u := range units {
		t.Run(u.Name, func(t *testing.T) {
			t.Parallel()
			if out, err := check(t, u); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
	t.Run("what is no CUDA", func(t *testing.T) {
		t.Parallel()
		u, err := metalsrc.Compose("wrong", "kernel void wrong(device const bfloat *a [[buffer(0)]], device float *b [[buffer(1)]]) {\n  b[0] = a[0];\n}\n")
		if err != nil {
			t.Fatal(err)
		}
		if out, err := check(t, u); err == nil || !strings.Contains(out, "bfloat") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
