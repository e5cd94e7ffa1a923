// Package msl reads the project's Metal kernel files: it expands them, finds
// the kernels they declare, lints them, and makes the launchers with which the
// same text runs on a CPU and on NVIDIA GPUs.
//
// A kernel file is plain Metal Shading Language plus one textual device,
// `//@for A,B in x,y u,v` ... `//@end`, see [Expand]. All readers get the
// expanded text. Begin at [Parse]. It knows the subset of the language that
// our kernels keep to, and refuses what it does not know; it does not judge
// bodies of functions, which is for compilers and for [Lint].
package msl

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ArgKind says how a kernel argument is bound.
type ArgKind int

// The kinds of arguments.
const (
	Buffer      ArgKind = iota // device pointer, [[buffer(i)]]
	Constant                   // constant T & or constant T *, [[buffer(i)]]
	Threadgroup                // [[threadgroup(i)]]
	Builtin                    // a thread-position attribute
)

// The indices that Metal has.
const (
	maxBuffer      = 30
	maxThreadgroup = 7
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

// slot names what no two arguments of a kernel may share; empty for builtins.
func (a Arg) slot() string {
	switch a.Kind {
	case Buffer, Constant:
		return "buffer(" + strconv.Itoa(a.Index) + ")"
	case Threadgroup:
		return "threadgroup(" + strconv.Itoa(a.Index) + ")"
	}
	return ""
}

// Kernel is one kernel function.
type Kernel struct {
	Name string
	Args []Arg
}

var (
	reKernel  = regexp.MustCompile(`(?m)^kernel void (\w+)\(`)
	reComment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
)

// Parse returns the kernels declared in expanded source.
func Parse(src string) ([]Kernel, error) {
	src = reComment.ReplaceAllString(src, "")
	sizes := structSizes(src)
	var ks []Kernel
	seen := map[string]bool{}
	for _, m := range reKernel.FindAllStringSubmatchIndex(src, -1) {
		name := src[m[2]:m[3]]
		if seen[name] {
			return nil, fmt.Errorf("%s: declared twice", name)
		}
		seen[name] = true
		params, err := split(src[m[1]:])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		k, err := parseKernel(name, params, sizes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		ks = append(ks, k)
	}
	return ks, nil
}

// split cuts a parameter list, which begins the text and ends with the
// parenthesis that no other one in it opened.
func split(text string) ([]string, error) {
	var params []string
	depth, start := 1, 0
	for i, c := range text {
		switch c {
		case '(', '[', '<':
			depth++
		case ')', ']', '>':
			if depth--; depth == 0 {
				return append(params, text[start:i]), nil
			}
		case ',':
			if depth == 1 {
				params = append(params, text[start:i])
				start = i + 1
			}
		}
	}
	return nil, fmt.Errorf("the parameter list does not end")
}

func parseKernel(name string, params []string, sizes map[string]int) (Kernel, error) {
	k := Kernel{Name: name}
	used := map[string]string{}
	for _, p := range params {
		a, err := parseParam(strings.Join(strings.Fields(p), " "))
		if err != nil {
			return k, err
		}
		if a.Kind == Constant {
			a.Size = sizes[a.Type]
		}
		if slot := a.slot(); slot != "" {
			if used[slot] != "" {
				return k, fmt.Errorf("%s and %s share %s", used[slot], a.Name, slot)
			}
			used[slot] = a.Name
		}
		k.Args = append(k.Args, a)
	}
	return k, nil
}
