package msl

import (
	"fmt"
	"regexp"
	"strings"
)

// rule is a construct that is not in our subset.
type rule struct {
	re  *regexp.Regexp
	why string
}

// rules are those of the portable subset that can be seen line by line.
func rules() []rule {
	r := func(re, why string) rule { return rule{regexp.MustCompile(re), why} }
	return []rule{
		r(`\bdouble\b`, "Metal has no double"),
		r(`\b(goto|throw|try|catch|virtual|new|delete|dynamic_cast|thread_local|std|typeid|union)\b`, "not in MSL, or not in our subset"),
		r(`\bstatic\s+(thread|threadgroup|device|uint|int|float|bool)\b`, "no static variables"),
		r(`\[\s*[&=]?\s*\]\s*\(`, "no lambdas"),
		r(`\bthreadgroup\s+\w+\s+\w+\s*\[[^\[]`, "declare threadgroup arrays with TG_ARRAY"),
		r(`(^|[^:\w.])(exp|exp2|log|log2|sqrt|rsqrt|sin|cos|tanh|pow|min|max|clamp|abs|fabs|fma|floor|ceil|rint)\(`, "call library functions as metal::NAME"),
		r(`\b(fast|precise)::`, "one rounding for all: say metal::"),
		r(`\bsimd_(sum|max|min)\(.*\b(half|bfloat)\b`, "reduce in float"),
		r(`\?[^;]*\b(threadgroup_barrier|simdgroup_barrier|simd_\w+)\(`, "a collective inside a conditional expression"),
		r(`(&&|\|\|)[^;]*\b(simd_\w+)\(`, "a collective that is not always evaluated"),
		r(`^\s*#\s*include\s+"`, "run-time compilation has no include path: use //@use"),
		r(`^\s*#\s*(if|ifndef|elif)\b`, "only #ifdef of the variants"),
		r(`\bthread_elements\(`, "the layout of a simdgroup matrix is not ours to know"),
		r(`\bmemory_order_(acquire|release|acq_rel|seq_cst)\b`, "atomics are relaxed"),
		r(`^\s+kernel\b|\[\[\s*kernel\s*\]\]|^kernel\s+(?:void\s\s|[^v])|^template.*\bkernel\b`, "a kernel begins with `kernel void NAME(` in the first column"),
		r(`\[\[\s*(host_name|function_constant|max_total_threads_per_threadgroup|stage_in|texture|sampler)\b`, "an attribute that the other readers do not know"),
		r(`\.(xy|xz|yz|zw|xyz|yzw|xyzw|rgb|rgba|xx|yy|wzyx)\b`, "no swizzles"),
	}
}

// rePointer finds declarations of pointers and references that begin with their
// type, as in our style: the star goes with the name.
var rePointer = regexp.MustCompile(`(?:^|[(,;{}])\s*(?:inline\s+|static\s+)*(?:const\s+)?([A-Za-z_]\w*)(?:<[^<>]*>)?\s+[*&][A-Za-z_]\w*\s*[,;)=\[(]`)

// reVariant finds the macros that a kernel's text asks for.
var reVariant = regexp.MustCompile(`^\s*#\s*ifdef\s+(\w+)`)

// Lint reports uses of MSL outside the portable subset in a file, before it is
// expanded. Only files of lib may ask for a reader other than Metal.
func Lint(file, src string, lib bool) []string {
	rules := rules()
	var out []string
	for i, l := range strings.Split(blank(src), "\n") {
		report := func(why string) {
			out = append(out, fmt.Sprintf("%s:%d: %s: %s", file, i+1, why, strings.TrimSpace(l)))
		}
		if m := reVariant.FindStringSubmatch(l); m != nil && m[1] != "TENSOR_OPS" && !lib {
			report("only #ifdef TENSOR_OPS outside of lib")
		}
		for _, m := range rePointer.FindAllStringSubmatch(l, -1) {
			if !strings.Contains(" return case else typename class ", " "+m[1]+" ") {
				report("a pointer or reference without an address space")
			}
		}
		for _, r := range rules {
			if r.re.MatchString(l) {
				report(r.why)
			}
		}
	}
	return out
}

// blank removes comments and leaves their lines.
func blank(src string) string {
	return reComment.ReplaceAllStringFunc(src, func(c string) string {
		return strings.Repeat("\n", strings.Count(c, "\n"))
	})
}
