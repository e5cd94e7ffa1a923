package msl

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// reParam splits a parameter into type, name, attribute, and index.
var reParam = regexp.MustCompile(`^(.*?)(\w+)\s*\[\[\s*(\w+)(?:\((\d+)\))?\s*\]\]$`)

// dimensions of the thread attributes, by name.
func dimensions(attr string) (int, bool) {
	switch attr {
	case "thread_position_in_grid", "threadgroup_position_in_grid", "thread_position_in_threadgroup",
		"threads_per_threadgroup", "threadgroups_per_grid", "threads_per_grid":
		return 3, true
	case "thread_index_in_threadgroup", "simdgroup_index_in_threadgroup", "thread_index_in_simdgroup",
		"simdgroups_per_threadgroup", "threads_per_simdgroup":
		return 1, true
	}
	return 0, false
}

func parseParam(p string) (Arg, error) {
	m := reParam.FindStringSubmatch(p)
	if m == nil {
		return Arg{}, fmt.Errorf("parameter %q: no attribute", p)
	}
	a := Arg{Name: m[2], Source: p}
	typ, attr := strings.TrimSpace(m[1]), m[3]
	switch attr {
	case "buffer", "threadgroup":
		if m[4] == "" {
			return a, fmt.Errorf("parameter %q: no index", p)
		}
		var err error
		if a.Index, err = strconv.Atoi(m[4]); err != nil {
			return a, fmt.Errorf("parameter %q: index: %w", p, err)
		}
		return a, a.pointer(typ, attr)
	}
	n, ok := dimensions(attr)
	if !ok || m[4] != "" {
		return a, fmt.Errorf("parameter %q: unknown attribute", p)
	}
	a.Kind, a.Attr, a.Type = Builtin, attr, typ
	switch typ {
	case "uint", "ushort":
	case "uint2", "uint3", "ushort2", "ushort3":
		if n != 3 {
			return a, fmt.Errorf("parameter %q: %s is a scalar", p, attr)
		}
	default:
		return a, fmt.Errorf("parameter %q: type of %s", p, attr)
	}
	return a, nil
}

// pointer reads the type of an argument that is bound to memory.
func (a *Arg) pointer(typ, attr string) error {
	space, rest, _ := strings.Cut(typ, " ")
	typeName, star := strings.CutSuffix(rest, "*")
	typeName, ref := strings.CutSuffix(typeName, "&")
	a.Type = strings.TrimSpace(typeName)
	last := maxBuffer
	switch {
	case attr == "buffer" && space == "device" && star:
		a.Kind = Buffer
		a.Type, a.Const = strings.CutPrefix(a.Type, "const ")
	case attr == "buffer" && space == "constant" && (star || ref):
		a.Kind, a.Ref = Constant, ref
	case attr == "threadgroup" && space == "threadgroup" && star:
		a.Kind, last = Threadgroup, maxThreadgroup
	default:
		return fmt.Errorf("parameter %q: its address space does not go with [[%s]]", a.Source, attr)
	}
	if strings.ContainsAny(a.Type, "*& ") || a.Type == "" {
		return fmt.Errorf("parameter %q: type %q is not a plain one", a.Source, a.Type)
	}
	if a.Index > last {
		return fmt.Errorf("parameter %q: index above %d", a.Source, last)
	}
	return nil
}
