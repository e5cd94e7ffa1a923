package msl

import (
	"fmt"
	"strings"
)

// cpuBuiltins says where the CPU runtime keeps what each thread attribute names.
func cpuBuiltins() map[string]string {
	return map[string]string{
		"thread_position_in_grid": "tpig", "threadgroup_position_in_grid": "g->tgpig",
		"thread_position_in_threadgroup": "t->tpitg", "threads_per_threadgroup": "L->tg",
		"threadgroups_per_grid": "L->grid", "threads_per_grid": "tpgrid",
		"thread_index_in_threadgroup": "(&t->tiitg)", "simdgroup_index_in_threadgroup": "(&t->sgid)",
		"thread_index_in_simdgroup": "(&t->lane)", "simdgroups_per_threadgroup": "(&t->nsg)",
		"threads_per_simdgroup": "w32",
	}
}

// GenCPU returns C++ functions msl_k_NAME that run one thread of a kernel, to
// be appended to the source, and msl_sz_NAME_INDEX, the sizes that the compiler
// gives its argument structs.
func GenCPU(ks []Kernel) string {
	builtin := cpuBuiltins()
	var b strings.Builder
	for _, k := range ks {
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
				star := ""
				if a.Ref {
					star = "*"
				}
				call = append(call, fmt.Sprintf("%s(const %s*)L->buf[%d]", star, a.Type, a.Index))
			case Threadgroup:
				call = append(call, fmt.Sprintf("(%s*)g->tgarg[%d]", a.Type, a.Index))
			case Builtin:
				call = append(call, Cast(a.Type, builtin[a.Attr]))
			}
		}
		fmt.Fprintf(&b, `extern "C" __attribute__((visibility("default"))) void msl_k_%s(const MslLaunch* L, const MslGroup* g, const MslThread* t) {
  const unsigned tpig[3] = {g->tgpig[0]*L->tg[0] + t->tpitg[0], g->tgpig[1]*L->tg[1] + t->tpitg[1], g->tgpig[2]*L->tg[2] + t->tpitg[2]};
  const unsigned tpgrid[3] = {L->grid[0]*L->tg[0], L->grid[1]*L->tg[1], L->grid[2]*L->tg[2]}, w32[1] = {32};
  (void)tpig; (void)tpgrid; (void)w32;
  %s(%s);
}
`, k.Name, k.Name, strings.Join(call, ", "))
		for _, a := range k.Args {
			if a.Kind == Constant && a.Ref {
				fmt.Fprintf(&b, "extern \"C\" __attribute__((visibility(\"default\"))) const unsigned msl_sz_%s_%d = sizeof(%s);\n", k.Name, a.Index, a.Type)
			}
		}
	}
	return b.String()
}
