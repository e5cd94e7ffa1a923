package policy

import (
	"embed"
	"io/fs"
)

//go:embed rego
var shipped embed.FS

//go:embed schema/input.v1.json
var inputSchema []byte

//go:embed schema/data.v1.json
var dataSchema []byte

// Shipped returns the files of the default policy, its tests included, in the
// layout that [Options.Dir] takes: a user may write them out and edit them.
func Shipped() fs.FS {
	sub, err := fs.Sub(shipped, "rego")
	if err != nil {
		panic(err) // the name above is fixed and valid
	}
	return sub
}
