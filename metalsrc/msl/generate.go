package msl

import (
	"fmt"
	"regexp"
	"strings"
)

func cast(typ, base string) string {
	switch {
	case strings.HasSuffix(typ, "3"):
		return fmt.Sprintf("metal::%s(%s[0], %s[1], %s[2])", typ, base, base, base)
	case strings.HasSuffix(typ, "2"):
		return fmt.Sprintf("metal::%s(%s[0], %s[1])", typ, base, base)
	}
	return fmt.Sprintf("(metal::%s)%s[0]", typ, base)
}

// GenCPU returns C++ launchers named msl_k_NAME, to be appended to the source.
func GenCPU(ks []Kernel) string {
	var b strings.Builder
	for _, k := range ks {
		fmt.Fprintf(&b, "static void msl_body_%s(const MslLaunch* L, const MslThread* t) {\n", k.Name)
		b.WriteString("  const unsigned tpgrid[3] = {L->grid[0]*L->tg[0], L->grid[1]*L->tg[1], L->grid[2]*L->tg[2]}; const unsigned w32[1] = {32}; (void)tpgrid; (void)w32;\n")
		var call []string
		for _, a := range k.Args {
			switch a.Kind {
			case Buffer:
				c := ""
				if a.Const {
					c = "const "
				}
				call = append(call, fmt.Sprintf("(%s%s*)L->buf[%d]", c, a.Type, a.Index))
			case Constant:
				if a.Ref {
					call = append(call, fmt.Sprintf("*(const %s*)L->buf[%d]", a.Type, a.Index))
				} else {
					call = append(call, fmt.Sprintf("(const %s*)L->buf[%d]", a.Type, a.Index))
				}
			case Threadgroup:
				call = append(call, fmt.Sprintf("(%s*)t->tgarg[%d]", a.Type, a.Index))
			case Builtin:
				base := map[string]string{
					"thread_position_in_grid": "t->tpig", "threadgroup_position_in_grid": "t->tgpig",
					"thread_position_in_threadgroup": "t->tpitg", "threads_per_threadgroup": "L->tg",
					"threadgroups_per_grid": "L->grid", "threads_per_grid": "tpgrid",
					"thread_index_in_threadgroup": "(&t->tiitg)", "simdgroup_index_in_threadgroup": "(&t->sgid)",
					"thread_index_in_simdgroup": "(&t->lane)", "simdgroups_per_threadgroup": "(&t->nsg)",
					"threads_per_simdgroup": "w32",
				}[a.Attr]
				call = append(call, cast(a.Type, base))
			}
		}
		fmt.Fprintf(&b, "  %s(%s);\n}\n", k.Name, strings.Join(call, ", "))
		fmt.Fprintf(&b, "extern \"C\" __attribute__((visibility(\"default\"))) int msl_k_%s(MslLaunch* L) { return msl_run(L, msl_body_%s); }\n", k.Name, k.Name)
		// sizes, so that the host side can be checked against the structs
		for _, a := range k.Args {
			if a.Kind == Constant && a.Ref {
				fmt.Fprintf(&b, "extern \"C\" __attribute__((visibility(\"default\"))) unsigned long msl_sz_%s_%d() { return sizeof(%s); }\n", k.Name, a.Index, a.Type)
			}
		}
	}
	return b.String()
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
