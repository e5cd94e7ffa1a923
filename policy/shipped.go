package policy

import (
	"embed"
	"io/fs"
)

//go:embed rego schema
var files embed.FS

// Shipped returns the files of the default policy, its tests included, in the
// layout that [Options.Dir] takes: a user may write them out and edit them.
func Shipped() fs.FS { return folder("rego") }

// Schemas returns the JSON Schemas of the documents: input.v1.json,
// decision.v1.json and, for data.yaml, data.v1.json.
func Schemas() fs.FS { return folder("schema") }

func folder(name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the names above are fixed and valid
	}
	return sub
}
