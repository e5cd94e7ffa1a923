// Package metalsrc holds the engine's GPU kernels, written by hand in the Metal
// Shading Language, and the headers with which the same text compiles for a
// CPU emulator and for NVIDIA GPUs.
//
// A unit is one NAME.metal file and what it uses: the prelude, and files of
// lib that it names in lines "//@use NAME" at its top. Every reader (Metal's
// run-time compiler, a C++ compiler, NVRTC) gets the same composed text, begin
// at [Units]. Package msl reads declarations out of it and makes launchers.
package metalsrc

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"weir/metalsrc/msl"
)

//go:embed *.metal lib shim
var files embed.FS

// Unit is one compilation unit.
type Unit struct {
	Name    string
	Text    string // composed and expanded
	Kernels []msl.Kernel
}

// Units returns all units, in the order of their names.
func Units() ([]Unit, error) {
	names, err := fs.Glob(files, "*.metal")
	if err != nil {
		return nil, err
	}
	var units []Unit
	for _, n := range names {
		b, err := files.ReadFile(n)
		if err != nil {
			return nil, err
		}
		u, err := Compose(strings.TrimSuffix(n, ".metal"), string(b))
		if err != nil {
			return nil, err
		}
		units = append(units, u)
	}
	return units, nil
}

// Compose makes a unit of the text of a kernel file.
func Compose(name, text string) (Unit, error) {
	var all strings.Builder
	for _, n := range append([]string{"prelude"}, uses(text)...) {
		b, err := files.ReadFile(path.Join("lib", n+".metal"))
		if err != nil {
			return Unit{}, fmt.Errorf("compose %s: %w", name, err)
		}
		lib, err := msl.Expand("lib/"+n+".metal", string(b))
		if err != nil {
			return Unit{}, fmt.Errorf("compose %s: %w", name, err)
		}
		all.WriteString(lib)
	}
	own, err := msl.Expand(name+".metal", text)
	if err != nil {
		return Unit{}, fmt.Errorf("compose %s: %w", name, err)
	}
	all.WriteString(own)
	kernels, err := msl.Parse(all.String())
	if err != nil {
		return Unit{}, fmt.Errorf("compose %s: %w", name, err)
	}
	return Unit{name, all.String(), kernels}, nil
}

// uses lists the files of lib that a kernel file names at its top.
func uses(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		n, ok := strings.CutPrefix(line, "//@use ")
		if !ok {
			break
		}
		names = append(names, strings.Fields(n)...)
	}
	return names
}

// Lint reports constructs outside the portable subset in all kernel files.
func Lint() ([]string, error) {
	var out []string
	for _, pattern := range []string{"*.metal", "lib/*.metal"} {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if n == "lib/prelude.metal" {
				continue // what it defines is what the others must use
			}
			b, err := files.ReadFile(n)
			if err != nil {
				return nil, err
			}
			out = append(out, msl.Lint(n, string(b), strings.HasPrefix(n, "lib/"))...)
		}
	}
	return out, nil
}

// Shim is the folder of headers for readers that are not Metal.
func Shim() fs.FS {
	sub, err := fs.Sub(files, "shim")
	if err != nil {
		panic(err) // the embedded folder is fixed at build time
	}
	return sub
}
