package main

import (
	"fmt"
	"runtime/debug"
)

type versionCommand struct{}

// Run prints the version that the build knows.
func (versionCommand) Run(io streams) error {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	_, err := fmt.Fprintln(io.out, "weir", version)
	return err
}
