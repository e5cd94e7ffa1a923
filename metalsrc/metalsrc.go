// Package metalsrc holds the engine's GPU kernels, written by hand in the Metal
// Shading Language, and the headers with which the same text compiles for a
// CPU emulator and for NVIDIA GPUs.
//
// A unit is one NAME.metal file and what it uses: the prelude, and files of
// lib that it names in lines "//@use NAME" at its top. Every reader (Metal's
// run-time compiler, a C++ compiler, NVRTC) gets the same composed text.
// Package msl reads declarations out of it and makes launchers.
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
	use := []string{"prelude"}
	for line := range strings.Lines(text) {
		n, ok := strings.CutPrefix(line, "//@use ")
		if !ok {
			break
		}
		use = append(use, strings.Fields(n)...)
	}
	for _, n := range use {
		b, err := files.ReadFile(path.Join("lib", n+".metal"))
		if err != nil {
			return Unit{}, fmt.Errorf("compose %s: %w", name, err)
		}
		all.Write(b)
	}
	all.WriteString(text)
	expanded, err := msl.Expand(all.String())
	if err != nil {
		return Unit{}, fmt.Errorf("compose %s: %w", name, err)
	}
	kernels, err := msl.Parse(expanded)
	if err != nil {
		return Unit{}, fmt.Errorf("compose %s: %w", name, err)
	}
	return Unit{name, expanded, kernels}, nil
}

// Shim is the folder of headers for readers that are not Metal.
func Shim() fs.FS {
	sub, err := fs.Sub(files, "shim")
	if err != nil {
		panic(err) // the embedded folder is fixed at build time
	}
	return sub
}
