package metalsrc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/metalsrc"
	"weir/metalsrc/msl"
)

// Every kernel file keeps to the subset that all readers understand alike.
func TestLint(t *testing.T) {
	t.Parallel()
	found, err := metalsrc.Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// typeChecker is a clang that reads C++ for OpenCL, whose four address spaces
// are Metal's, over a folder with headers that declare what MSL has.
type typeChecker struct{ clang, dir string }

// newTypeChecker skips the test where there is no clang, but not in CI.
func newTypeChecker(t *testing.T) typeChecker {
	t.Helper()
	for _, name := range []string{"clang", "clang-19", "clang-16"} {
		if path, err := exec.LookPath(name); err == nil {
			dir := t.TempDir()
			if err := os.CopyFS(dir, metalsrc.Shim()); err != nil {
				t.Fatal(err)
			}
			return typeChecker{path, dir}
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("no clang is installed")
	}
	t.Skip("no clang is installed")
	return typeChecker{}
}

// check returns what the compiler says.
func (c typeChecker) check(t *testing.T, text string) (string, error) {
	t.Helper()
	// The generic address space is on, since clang copies no structs without it.
	// It would hide a pointer that names no address space: Lint finds those.
	var off []string
	for _, e := range []string{"pipes", "device_enqueue", "program_scope_global_variables", "atomic_order_seq_cst", "atomic_scope_device"} {
		off = append(off, "-__opencl_c_"+e)
	}
	cmd := exec.CommandContext(t.Context(), c.clang, "-x", "clcpp", "-cl-std=clc++2021", "-Xclang", "-cl-ext="+strings.Join(off, ","),
		"-target", "spir64", "-fsyntax-only", "-nogpulib", "-I", filepath.Join(c.dir, "check"), "-")
	cmd.Stdin = strings.NewReader(msl.Strip(text))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Every unit has its address spaces, const-ness and element types right.
func TestTypes(t *testing.T) {
	t.Parallel()
	c := newTypeChecker(t)
	units, err := metalsrc.Units()
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range units {
		t.Run(u.Name, func(t *testing.T) {
			t.Parallel()
			if out, err := c.check(t, u.Text); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

// Each body has a fault that Metal's compiler would find and C++ would not.
func TestTypesFindFaults(t *testing.T) {
	t.Parallel()
	c := newTypeChecker(t)
	const head = `struct A { uint n; };
struct P { device const float *p; };
inline float sum(threadgroup const float *p) { return p[0] + p[1]; }
inline float first(P p) { return p.p[0]; }
kernel void k(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    constant A &a [[buffer(2)]],
    device const bfloat *b [[buffer(3)]],
    uint i [[thread_position_in_grid]]) {
`
	for _, r := range []struct{ body, fault string }{
		{"y[i] = x[i];", ""},
		{"threadgroup_barrier(mem_flags::mem_device); y[i] = float(b[i]);", ""},
		{"P p; p.p = x; const P q = p; y[i] = first(p) + first(q);", ""},
		{"simdgroup_matrix<float, 8, 8> m, s; simdgroup_matrix<bfloat, 8, 8> v; simdgroup_multiply_accumulate(s, m, v, s);", ""},
		{"y[i] = sum(x);", "a device pointer for a threadgroup one"},
		{"thread const float *p = x; y[i] = *p;", "the wrong address space"},
		{"P p; p.p = (threadgroup const float *)x;", "the wrong address space in a struct"},
		{"a.n = 3;", "a write to constant memory"},
		{"x[i] = 1.0f;", "a write through const"},
		{"simdgroup_matrix<half, 8, 8> m; simdgroup_load(m, x, 8);", "a matrix of another type"},
		{"float4 v = y;", "a pointer for a vector"},
		{"y[i] = simd_sum(x);", "a pointer for a number"},
	} {
		u, err := metalsrc.Compose("fault", head+"  "+r.body+"\n}\n")
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.check(t, u.Text)
		switch {
		case r.fault == "" && err != nil:
			t.Errorf("%s: %s", r.body, out)
		case r.fault != "" && err == nil:
			t.Errorf("accepted: %s, %s", r.body, r.fault)
		case r.fault != "" && !strings.Contains(out, "fault.metal:11:"):
			t.Errorf("%s: said elsewhere: %s", r.body, out)
		}
	}
}
