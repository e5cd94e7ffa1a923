package cuda_test

import (
	"strings"
	"testing"

	"weir/engine/device/cuda"
	"weir/metalsrc"
)

func TestSource(t *testing.T) {
	t.Parallel()
	const text = `//@use early
struct A { uint n; };
// What it does.
//@threads 256 2
// More of it.
kernel void one(
    device const uint *a [[buffer(0)]],
    device uint *b [[buffer(2)]],
    constant A &args [[buffer(1)]],
    threadgroup uint *s [[threadgroup(0)]],
    uint3 g [[threadgroup_position_in_grid]],
    uint i [[thread_index_in_threadgroup]]) {
  b[i] = a[g.x] + args.n + s[i];
}

//@early
//@threads 64
kernel void two(constant float *t [[buffer(0)]], device float *b [[buffer(1)]], uint2 p [[thread_position_in_grid]]) {
  inputs_ready();
  b[p.x] = t[p.y];
}
kernel void three(device float *b [[buffer(0)]]) { b[0] = 1.0f; }
`
	u, err := metalsrc.Compose("unit", text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := cuda.Source(u)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got, "[[") {
		t.Error("attributes are left")
	}
	for _, want := range []string{
		"void __launch_bounds__(256, 2) msl_k_one(const uint* MSL_CUDA_READONLY p0, uint* p2, const A p1, unsigned t0) {\n  MSL_CUDA_BUILTINS\n  MSL_CUDA_BEGIN\n" +
			"  one(p0, p2, p1, (uint*)(msl_dyn + t0), metal::uint3(tgpig[0], tgpig[1], tgpig[2]), (metal::uint)tiitg[0]);",
		"void __launch_bounds__(64) msl_k_two(const float* MSL_CUDA_READONLY p0, float* p1) {\n  MSL_CUDA_BUILTINS\n  \n" +
			"  two(p0, p1, metal::uint2(tpig[0], tpig[1]));",
		"void msl_k_three(float* p0) {\n  MSL_CUDA_BUILTINS\n  MSL_CUDA_BEGIN\n  three(p0);",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing:\n%s\nin:\n%s", want, got[strings.Index(got, "msl_dyn"):])
		}
	}
	for _, wrong := range []string{"//@threads", "//@threads many", "//@threads 16", "//@threads 64 1 1", "//@threads 64 x", "//@threads 2048"} {
		u, err := metalsrc.Compose("unit", wrong+"\n"+text[strings.Index(text, "kernel void three"):])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cuda.Source(u); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
