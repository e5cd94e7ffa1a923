package msl

import (
	"fmt"
	"regexp"
	"strings"
)

var lints = []struct {
	re  *regexp.Regexp
	why string
}{
	{regexp.MustCompile(`\bdouble\b`), "Metal has no double"},
	{regexp.MustCompile(`\b(goto|throw|try|catch|virtual|new|delete|dynamic_cast|static_assert_fail|thread_local|std)\b`), "not in MSL, or not in our subset"},
	{regexp.MustCompile(`\bthreadgroup\s+\w+\s+\w+\s*\[[^\[]`), "declare threadgroup arrays with TG_ARRAY"},
	{regexp.MustCompile(`(^|[^:\w.])(exp|exp2|log|log2|sqrt|rsqrt|sin|cos|tanh|pow|min|max|clamp|abs|fabs|fma|floor|ceil|rint)\(`), "call library math as metal::NAME"},
	{regexp.MustCompile(`\bsimd_(sum|max|min)\(.*\bhalf\b`), "reduce in float"},
	{regexp.MustCompile(`\?[^;]*\b(threadgroup_barrier|simd_sum|simd_shuffle)\(`), "collective inside a conditional expression"},
	{regexp.MustCompile(`#include\s+"`), "run-time compilation has no include path: compose in Go"},
}

// Lint reports uses of MSL outside the portable subset.
func Lint(src string) []string {
	var out []string
	for i, l := range strings.Split(reComment.ReplaceAllStringFunc(src, func(c string) string {
		return strings.Repeat("\n", strings.Count(c, "\n"))
	}), "\n") {
		for _, r := range lints {
			if r.re.MatchString(l) {
				out = append(out, fmt.Sprintf("line %d: %s: %s", i+1, r.why, strings.TrimSpace(l)))
			}
		}
	}
	return out
}
