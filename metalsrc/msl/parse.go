// Package msl composes, parses and lints the project's Metal kernel files and
// generates the launch glue for the CPU and CUDA shims.
//
// A kernel file is plain Metal Shading Language plus one textual device:
// `//@for A,B in x,y u,v` ... `//@end` repeats a block with @A@ and @B@
// replaced. Composition happens in Go, so Metal, clang and NVRTC see the same
// text.
package msl

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ArgKind says how a kernel argument is bound.
type ArgKind int

const (
	Buffer      ArgKind = iota // device pointer, [[buffer(i)]]
	Constant                   // constant T & or constant T *, [[buffer(i)]]
	Threadgroup                // [[threadgroup(i)]]
	Builtin                    // a thread-position attribute
)

// Arg is one kernel parameter.
type Arg struct {
	Kind   ArgKind
	Type   string // without address space, pointer or const
	Const  bool   // device const
	Ref    bool   // constant T &
	Size   int    // bytes of a constant struct; zero if the host cannot mirror it
	Name   string
	Index  int
	Attr   string // for Builtin
	Source string
}

// Kernel is one kernel function.
type Kernel struct {
	Name string
	Args []Arg
}

var (
	reKernel  = regexp.MustCompile(`(?m)^kernel void (\w+)\(`)
	reComment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	reParam   = regexp.MustCompile(`^(.*?)(\w+)\s*\[\[\s*(\w+)(?:\((\d+)\))?\s*\]\]$`)
)

var builtins = map[string]int{ // attribute -> widest dimension
	"thread_position_in_grid": 3, "threadgroup_position_in_grid": 3,
	"thread_position_in_threadgroup": 3, "threads_per_threadgroup": 3,
	"threadgroups_per_grid": 3, "threads_per_grid": 3,
	"thread_index_in_threadgroup": 1, "simdgroup_index_in_threadgroup": 1,
	"thread_index_in_simdgroup": 1, "simdgroups_per_threadgroup": 1,
	"threads_per_simdgroup": 1,
}

// Parse returns the kernels declared in expanded source.
func Parse(src string) ([]Kernel, error) {
	src = reComment.ReplaceAllString(src, "")
	sizes := structSizes(src)
	var ks []Kernel
	seen := map[string]bool{}
	for _, m := range reKernel.FindAllStringSubmatchIndex(src, -1) {
		k := Kernel{Name: src[m[2]:m[3]]}
		if seen[k.Name] {
			return nil, fmt.Errorf("%s: declared twice", k.Name)
		}
		seen[k.Name] = true
		depth, i := 1, m[1]
		start := i
		var params []string
		for ; i < len(src) && depth > 0; i++ {
			switch src[i] {
			case '(', '[', '<':
				depth++
			case ')', ']', '>':
				depth--
			case ',':
				if depth == 1 {
					params = append(params, src[start:i])
					start = i + 1
				}
			}
		}
		params = append(params, src[start:i-1])
		used := map[string]string{}
		for _, p := range params {
			a, err := parseParam(strings.Join(strings.Fields(p), " "))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k.Name, err)
			}
			if a.Kind == Constant {
				a.Size = sizes[a.Type]
			}
			key := ""
			switch a.Kind {
			case Buffer, Constant:
				key = "buffer " + strconv.Itoa(a.Index)
				if a.Index > 30 {
					return nil, fmt.Errorf("%s: buffer index %d above 30", k.Name, a.Index)
				}
			case Threadgroup:
				key = "threadgroup " + strconv.Itoa(a.Index)
			}
			if key != "" && used[key] != "" {
				return nil, fmt.Errorf("%s: %s and %s share %s", k.Name, used[key], a.Name, key)
			}
			used[key] = a.Name
			k.Args = append(k.Args, a)
		}
		ks = append(ks, k)
	}
	return ks, nil
}

func parseParam(p string) (Arg, error) {
	m := reParam.FindStringSubmatch(p)
	if m == nil {
		return Arg{}, fmt.Errorf("parameter %q: no attribute", p)
	}
	a := Arg{Name: m[2], Source: p}
	if m[4] != "" {
		a.Index, _ = strconv.Atoi(m[4])
	}
	t := strings.TrimSpace(m[1])
	space, rest, _ := strings.Cut(t, " ")
	switch {
	case m[3] == "buffer" && space == "device" && strings.HasSuffix(rest, "*"):
		a.Kind = Buffer
		rest = strings.TrimSpace(strings.TrimSuffix(rest, "*"))
		if strings.HasPrefix(rest, "const ") {
			a.Const = true
			rest = strings.TrimPrefix(rest, "const ")
		}
		a.Type = rest
	case m[3] == "buffer" && space == "constant" && (strings.HasSuffix(rest, "*") || strings.HasSuffix(rest, "&")):
		a.Kind = Constant
		a.Ref = strings.HasSuffix(rest, "&")
		a.Type = strings.TrimSpace(strings.TrimRight(rest, "*&"))
	case m[3] == "threadgroup" && space == "threadgroup" && strings.HasSuffix(rest, "*"):
		a.Kind = Threadgroup
		a.Type = strings.TrimSpace(strings.TrimSuffix(rest, "*"))
	default:
		n, ok := builtins[m[3]]
		if !ok {
			return a, fmt.Errorf("parameter %q: unknown attribute or address space", p)
		}
		a.Kind, a.Attr, a.Type = Builtin, m[3], t
		switch t {
		case "uint", "ushort":
		case "uint2", "uint3", "ushort2", "ushort3":
			if n != 3 {
				return a, fmt.Errorf("parameter %q: %s is a scalar", p, m[3])
			}
		default:
			return a, fmt.Errorf("parameter %q: type of %s", p, m[3])
		}
	}
	return a, nil
}
