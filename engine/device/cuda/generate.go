package cuda

import (
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"weir/metalsrc"
	"weir/metalsrc/msl"
)

// bounds are what a line "//@threads N [M]" above a kernel promises: at most N
// threads in a threadgroup, and room wanted for M threadgroups on a
// multiprocessor. The compiler divides the registers by it.
type bounds struct{ threads, groups int }

func readBounds(text string) map[string]bounds {
	re := regexp.MustCompile(`(?m)^//@threads (\d+)(?: (\d+))?[ \t]*\n(?:[ \t]*//[^\n]*\n)*kernel void (\w+)\(`)
	out := map[string]bounds{}
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1]) // digits only; empty is zero
		g, _ := strconv.Atoi(m[2])
		out[m[3]] = bounds{n, g}
	}
	return out
}

// Source is the text of a unit as NVRTC and clang get it: attributes stripped,
// and a __global__ function msl_k_NAME for each kernel NAME. Buffers become
// pointers, constant structs parameters by value, and each threadgroup(i)
// argument an offset into dynamic shared memory. Memory that a kernel only
// reads is promised to change under nobody's hand while it runs (__restrict__),
// so a stream must not bind what a kernel writes to its const arguments too.
func Source(u metalsrc.Unit) string {
	limit := readBounds(u.Text)
	var b strings.Builder
	b.WriteString(msl.Strip(u.Text))
	b.WriteString("\nextern __shared__ __align__(128) unsigned char msl_dyn[];\n")
	for _, k := range u.Kernels {
		var params, call []string
		for _, a := range k.Args {
			p, c := wrap(a)
			if p != "" {
				params = append(params, p)
			}
			call = append(call, c)
		}
		launch := ""
		if l, ok := limit[k.Name]; ok {
			launch = fmt.Sprintf("__launch_bounds__(%d) ", l.threads)
			if l.groups > 0 {
				launch = fmt.Sprintf("__launch_bounds__(%d, %d) ", l.threads, l.groups)
			}
		}
		fmt.Fprintf(&b, "extern \"C\" __global__ void %smsl_k_%s(%s) {\n  MSL_CUDA_BUILTINS\n  MSL_CUDA_BEGIN\n  %s(%s);\n}\n",
			launch, k.Name, strings.Join(params, ", "), k.Name, strings.Join(call, ", "))
	}
	return b.String()
}

// wrap is how the wrapper takes an argument, and how it passes it on.
func wrap(a msl.Arg) (param, call string) {
	name := fmt.Sprintf("p%d", a.Index)
	switch {
	case a.Kind == msl.Buffer && a.Const, a.Kind == msl.Constant && !a.Ref:
		return fmt.Sprintf("const %s* MSL_CUDA_READONLY %s", a.Type, name), name
	case a.Kind == msl.Buffer:
		return fmt.Sprintf("%s* %s", a.Type, name), name
	case a.Kind == msl.Constant:
		return fmt.Sprintf("const %s %s", a.Type, name), name
	case a.Kind == msl.Threadgroup:
		name = fmt.Sprintf("t%d", a.Index)
		return "unsigned " + name, fmt.Sprintf("(%s*)(msl_dyn + %s)", a.Type, name)
	}
	base := builtin(a.Attr)
	switch {
	case strings.HasSuffix(a.Type, "3"):
		return "", fmt.Sprintf("metal::%s(%s[0], %s[1], %s[2])", a.Type, base, base, base)
	case strings.HasSuffix(a.Type, "2"):
		return "", fmt.Sprintf("metal::%s(%s[0], %s[1])", a.Type, base, base)
	}
	return "", fmt.Sprintf("(metal::%s)%s[0]", a.Type, base)
}

// builtin is the array of MSL_CUDA_BUILTINS that holds a thread attribute.
func builtin(attr string) string {
	switch attr {
	case "thread_position_in_grid":
		return "tpig"
	case "threadgroup_position_in_grid":
		return "tgpig"
	case "thread_position_in_threadgroup":
		return "tpitg"
	case "threads_per_threadgroup":
		return "tpt"
	case "threadgroups_per_grid":
		return "tgpg"
	case "threads_per_grid":
		return "tpgrid"
	case "thread_index_in_threadgroup":
		return "tiitg"
	case "simdgroup_index_in_threadgroup":
		return "sgi"
	case "thread_index_in_simdgroup":
		return "lane"
	case "simdgroups_per_threadgroup":
		return "nsg"
	}
	return "w32" // threads_per_simdgroup, the only other one that msl.Parse accepts
}

func fsRead(f fs.FS, name string) (string, error) {
	b, err := fs.ReadFile(f, name)
	if err != nil {
		return "", fmt.Errorf("read the shim: %w", err)
	}
	return string(b), nil
}
