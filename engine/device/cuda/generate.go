package cuda

import (
	"fmt"
	"strings"

	"weir/metalsrc"
	"weir/metalsrc/msl"
)

// note is what lines in the comment above a kernel promise of it:
//
//	//@threads N [M]  at most N threads in a threadgroup, and room wanted for M
//	                  threadgroups on a multiprocessor: the compiler divides the
//	                  registers by it
//	//@early          it waits itself for the launches that it depends on, by
//	                  inputs_ready() of lib/early.metal
type note struct {
	threads, groups int
	early           bool
}

// notes reads them, by kernel.
func notes(text string) (map[string]note, error) {
	out := map[string]note{}
	var n note
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "kernel void "); ok {
			name, _, _ = strings.Cut(name, "(")
			out[name] = n
		}
		f := strings.Fields(line)
		switch {
		case !strings.HasPrefix(line, "//"):
			n = note{}
		case f[0] == "//@early":
			n.early = true
		case f[0] == "//@threads":
			c, _ := fmt.Sscan(strings.Join(f[1:], " "), &n.threads, &n.groups) // one of them may be missing
			if len(f) > 3 || c != len(f)-1 || c == 0 || n.threads < 32 || n.threads > 1024 {
				return nil, fmt.Errorf("%q: want //@threads N [M]", line)
			}
		}
	}
	return out, nil
}

// Source is the text of a unit as NVRTC and clang get it: attributes stripped,
// and a __global__ function msl_k_NAME for each kernel NAME. Buffers become
// pointers, constant structs parameters by value, and each threadgroup(i)
// argument an offset into dynamic shared memory. Memory that a kernel only
// reads is promised to change under nobody's hand while it runs (__restrict__),
// so a stream must not bind what a kernel writes to its const arguments too.
func Source(u metalsrc.Unit) (string, error) {
	promised, err := notes(u.Text)
	if err != nil {
		return "", fmt.Errorf("unit %s: %w", u.Name, err)
	}
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
		n := promised[k.Name]
		launch, begin := "", "MSL_CUDA_BEGIN"
		switch {
		case n.groups > 0:
			launch = fmt.Sprintf("__launch_bounds__(%d, %d) ", n.threads, n.groups)
		case n.threads > 0:
			launch = fmt.Sprintf("__launch_bounds__(%d) ", n.threads)
		}
		if n.early {
			begin = "" // the kernel does it itself
		}
		fmt.Fprintf(&b, "extern \"C\" __global__ void %smsl_k_%s(%s) {\n  MSL_CUDA_BUILTINS\n  %s\n  %s(%s);\n}\n",
			launch, k.Name, strings.Join(params, ", "), begin, k.Name, strings.Join(call, ", "))
	}
	return b.String(), nil
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
	return "", msl.Cast(a.Type, builtin(a.Attr))
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
