package msl

import (
	"fmt"
	"regexp"
	"strings"
)

// cast makes a value of a thread attribute of an array of three numbers.
func cast(typ, base string) string {
	switch {
	case strings.HasSuffix(typ, "3"):
		return fmt.Sprintf("metal::%s(%s[0], %s[1], %s[2])", typ, base, base, base)
	case strings.HasSuffix(typ, "2"):
		return fmt.Sprintf("metal::%s(%s[0], %s[1])", typ, base, base)
	}
	return fmt.Sprintf("(metal::%s)%s[0]", typ, base)
}

// GenCUDA returns __global__ wrappers. Buffers become pointers, constant
// structs become by-value parameters, and each [[threadgroup(i)]] argument
// becomes a byte offset into dynamic shared memory.
func GenCUDA(ks []Kernel) string {
	var b strings.Builder
	b.WriteString("extern __shared__ __align__(16) unsigned char msl_dyn[];\n")
	for _, k := range ks {
		var params, call []string
		for _, a := range k.Args {
			switch a.Kind {
			case Buffer:
				c := ""
				if a.Const {
					c = "const "
				}
				params = append(params, fmt.Sprintf("%s%s* p%d", c, a.Type, a.Index))
				call = append(call, fmt.Sprintf("p%d", a.Index))
			case Constant:
				if a.Ref {
					params = append(params, fmt.Sprintf("const %s p%d", a.Type, a.Index))
				} else {
					params = append(params, fmt.Sprintf("const %s* p%d", a.Type, a.Index))
				}
				call = append(call, fmt.Sprintf("p%d", a.Index))
			case Threadgroup:
				params = append(params, fmt.Sprintf("unsigned t%d", a.Index))
				call = append(call, fmt.Sprintf("(%s*)(msl_dyn + t%d)", a.Type, a.Index))
			case Builtin:
				base := map[string]string{
					"thread_position_in_grid": "tpig", "threadgroup_position_in_grid": "tgpig",
					"thread_position_in_threadgroup": "tpitg", "threads_per_threadgroup": "tpt",
					"threadgroups_per_grid": "tgpg", "threads_per_grid": "tpgrid",
					"thread_index_in_threadgroup": "tiitg", "simdgroup_index_in_threadgroup": "sgi",
					"thread_index_in_simdgroup": "lane", "simdgroups_per_threadgroup": "nsg",
					"threads_per_simdgroup": "w32",
				}[a.Attr]
				call = append(call, cast(a.Type, base))
			}
		}
		fmt.Fprintf(&b, "extern \"C\" __global__ void msl_k_%s(%s) {\n  MSL_CUDA_BUILTINS\n  %s(%s);\n}\n",
			k.Name, strings.Join(params, ", "), k.Name, strings.Join(call, ", "))
	}
	return b.String()
}

var reAttr = regexp.MustCompile(`[ \t]*\[\[[a-z_]+(\([^()]*\))?\]\]`)

// Strip removes every [[attribute]]; the parser has read them by then, and the
// word threadgroup inside [[threadgroup(0)]] would clash with the shim's macro.
func Strip(src string) string { return reAttr.ReplaceAllString(src, "") }
