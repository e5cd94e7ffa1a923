package msl_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/metalsrc/msl"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := msl.Parse(`
// kernel void in_a_comment(device float *x [[buffer(0)]]) {}
struct Args {
  uint m, n;
  float eps;
  int at[3];
};
template <typename T> inline void body(device const T *x) {}
kernel void first(
    device const bfloat *x [[buffer(0)]],  // the input, of m, n
    device atomic_uint *n [[buffer(3)]],
    constant Args &args [[buffer(1)]],
    constant uint *table [[ buffer(2) ]],
    threadgroup float4 *s [[threadgroup(1)]],
    uint3 g [[threadgroup_position_in_grid]],
    ushort lane [[thread_index_in_simdgroup]]) {
  body<bfloat>(x);
}
  kernel void not_in_the_first_column(uint i [[thread_position_in_grid]]) {}
kernel void second(uint i [[thread_position_in_grid]]) {}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []msl.Kernel{
		{Name: "first", Args: []msl.Arg{
			{Kind: msl.Buffer, Type: "bfloat", Const: true, Name: "x", Index: 0},
			{Kind: msl.Buffer, Type: "atomic_uint", Name: "n", Index: 3},
			{Kind: msl.Constant, Type: "Args", Ref: true, Size: 24, Name: "args", Index: 1},
			{Kind: msl.Constant, Type: "uint", Size: 4, Name: "table", Index: 2},
			{Kind: msl.Threadgroup, Type: "float4", Name: "s", Index: 1},
			{Kind: msl.Builtin, Type: "uint3", Name: "g", Attr: "threadgroup_position_in_grid"},
			{Kind: msl.Builtin, Type: "ushort", Name: "lane", Attr: "thread_index_in_simdgroup"},
		}},
		{Name: "second", Args: []msl.Arg{{Kind: msl.Builtin, Type: "uint", Name: "i", Attr: "thread_position_in_grid"}}},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(msl.Arg{}, "Source")); d != "" {
		t.Fatal(d)
	}
}

// Structs whose layout compilers could disagree about have no size.
func TestStructSize(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]int{
		"uint a;":                     4,
		"uint a, b; float c;":         12,
		"uint a ; int b [ 4 ] , c;":   24,
		"uint a; // and half b;\n":    4,
		"half a;":                     0,
		"uint a; ulong b;":            0,
		"uint a; float4 b;":           0,
		"device float *p;":            0,
		"uint a : 3;":                 0,
		"uint a; uint f() const;":     0,
		"uint a[2][2];":               0,
		"uint a; struct { uint b; };": 0,
	} {
		ks, err := msl.Parse("struct A { " + fields + " };\nkernel void k(constant A &a [[buffer(0)]]) {}\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := ks[0].Args[0].Size; got != want {
			t.Errorf("struct { %s }: got %d bytes, want %d", fields, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		"device float *x [[buffer(0)]], device float *y [[buffer(0)]]": "x and y share buffer(0)",
		"device float *x [[buffer(0)]], constant A &y [[buffer(0)]]":   "share buffer(0)",
		"device float *x [[buffer(31)]]":                               "index above 30",
		"threadgroup float *s [[threadgroup(8)]]":                      "index above 7",
		"device float *x [[buffer(99999999999999999999)]]":             "index",
		"device float *x [[buffer]]":                                   "no index",
		"float *x [[buffer(0)]]":                                       "address space",
		"thread float *x [[buffer(0)]]":                                "address space",
		"threadgroup float *x [[buffer(0)]]":                           "address space",
		"device float *x [[threadgroup(0)]]":                           "address space",
		"device float &x [[buffer(0)]]":                                "address space",
		"device float **x [[buffer(0)]]":                               "not a plain one",
		"device const float * const x [[buffer(0)]]":                   "address space",
		"uint3 i [[thread_position_in_gird]]":                          "unknown attribute",
		"uint3 i [[thread_index_in_threadgroup]]":                      "is a scalar",
		"float i [[thread_index_in_threadgroup]]":                      "type of",
		"device float *x":                                              "no attribute",
		"":                                                             "no attribute",
	} {
		_, err := msl.Parse("kernel void k(" + params + ") {\n}\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", params, err, want)
		}
	}
	twice := "kernel void k(uint i [[thread_position_in_grid]]) {}\n"
	if _, err := msl.Parse(twice + twice); err == nil {
		t.Error("a kernel that is declared twice was accepted")
	}
	if _, err := msl.Parse("kernel void k(uint i [[thread_position_in_grid]] {}\n"); err == nil {
		t.Error("a parameter list without an end was accepted")
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	got, err := msl.Expand("f.metal", "a\n//@for S,T in f16,half bf16,bfloat\nk_@S@(@T@, @U@)\n//@end\nb\n")
	if err != nil {
		t.Fatal(err)
	}
	want := `#line 1 "f.metal"
a
#line 3 "f.metal"
k_f16(half, @U@)
#line 3 "f.metal"
k_bf16(bfloat, @U@)
#line 5 "f.metal"
b
`
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	for _, bad := range []string{
		"//@for A in x\n", "//@end\n", "//@for A of x\n//@end\n", "//@for A in\n//@end\n",
		"//@for A,B in x\n//@end\n", "//@for A in x,y\n//@end\n", "//@for A in x\n//@for B in y\n//@end\n//@end\n",
	} {
		if _, err := msl.Expand("f.metal", bad); err == nil || !strings.HasPrefix(err.Error(), "f.metal:") {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// Each line is outside of the subset, for the reason beside it.
func TestLint(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"  double x = 0;":                                      "no double",
		"  threadgroup float s[32];":                           "TG_ARRAY",
		"  y = exp(x);":                                        "metal::NAME",
		"  float m = max(a, b);":                               "metal::NAME",
		"#include \"common.h\"":                                "//@use",
		"  goto end;":                                          "subset",
		"  static uint n = 0;":                                 "static",
		"  auto f = [&](uint i) { return i; }":                 "lambdas",
		"  y = metal::fast::exp(x);":                           "metal::",
		"  y = i < n ? simd_sum(v) : 0.0f;":                    "conditional",
		"  if (i < n && simd_any(v > 0)) {":                    "always evaluated",
		"  x = m.thread_elements()[0];":                        "layout",
		"#if N > 3":                                            "only #ifdef",
		"#ifndef TENSOR_OPS":                                   "only #ifdef",
		"#ifdef MSL_CUDA":                                      "outside of lib",
		"  atomic_load_explicit(p, memory_order_acquire);":     "relaxed",
		" kernel void k(uint i [[thread_position_in_grid]]) {": "first column",
		"template <typename T> kernel void k() {":              "first column",
		"[[host_name(\"k_f16\")]]":                             "attribute",
		"  float2 v = x.xy;":                                   "swizzles",
		"  y = half(simd_sum(half(x)));":                       "reduce in float",
	} {
		found := msl.Lint("f.metal", "\n"+line+"\n", false)
		if len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), want) {
			t.Errorf("%s: got %q, want %q", line, found, want)
		} else if !strings.HasPrefix(found[0], "f.metal:2: ") {
			t.Errorf("%s: found at %q", line, found[0])
		}
	}
	for _, line := range []string{
		"  // double x; exp(x)", "  y = metal::exp(x);", "  TG_ARRAY(float, s, [32]);", "#ifdef TENSOR_OPS",
		"  threadgroup float *s = p + 3;", "  v.x = w.y;", "kernel void k(", "  float expected(float);",
		"  const float s = simd_sum(x);", "  /* goto */", "  x = f(a * b, c & d);", "  return *p;", "void f(thread T &t) {",
		"  device const float *p = x;", "  *p = a *b;", "  x = (a) *b;",
	} {
		if found := msl.Lint("f.metal", line, false); len(found) > 0 {
			t.Errorf("%s: %q", line, found)
		}
	}
	if found := msl.Lint("lib/f.metal", "#ifdef MSL_CUDA\n", true); len(found) > 0 {
		t.Errorf("lib: %q", found)
	}
}

// The parser reads text that people write: it must not panic on any, and what
// it accepts must be fit to be launched.
func FuzzParse(f *testing.F) {
	f.Add("kernel void k(device const float *x [[buffer(0)]], constant A &a [[buffer(1)]]) {}")
	f.Add("struct A { uint a[3]; };\nkernel void k(\n    threadgroup float *s [[threadgroup(0)]],\n    uint3 i [[thread_position_in_grid]]) {")
	f.Add("//@for S in a b\nkernel void k_@S@(device uint *x [[buffer(0)]]) {\n}\n//@end\n")
	f.Add("kernel void k(((")
	f.Fuzz(func(t *testing.T, src string) {
		text, err := msl.Expand("f.metal", src)
		if err != nil {
			return
		}
		ks, err := msl.Parse(text)
		if err != nil {
			return
		}
		for _, k := range ks {
			for _, a := range k.Args {
				if a.Index < 0 || a.Index > 30 || a.Kind == msl.Threadgroup && a.Index > 7 || a.Size < 0 {
					t.Fatalf("%s: %+v", k.Name, a)
				}
			}
		}
		msl.GenCPU(ks)
		msl.Lint("f.metal", src, false)
	})
}
