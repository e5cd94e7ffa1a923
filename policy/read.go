package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// gateFile is the module that makes a directory a policy of its own.
const gateFile = "gate.rego"

// source is what a policy is made of.
type source struct {
	modules map[string]string // text by path
	data    map[string]any
}

// version digests s: each part with its length, so that no two sources run into
// the same bytes.
func (s *source) version() (string, error) {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s.modules)) {
		fmt.Fprintf(h, "%d %s %d %s\n", len(name), name, len(s.modules[name]), s.modules[name])
	}
	if err := json.MarshalWrite(h, s.data, json.Deterministic(true)); err != nil {
		return "", fmt.Errorf("digest policy data: %w", err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// layer is one directory, or the data of the options.
type layer struct {
	modules  map[string]string
	dataFile string
	data     []byte
}

// read brings the shipped files, the user's and the data of opts together.
func read(opts Options) (*source, error) {
	base, err := readDir(Shipped())
	if err != nil {
		return nil, fmt.Errorf("read shipped policy: %w", err)
	}
	layers := []layer{base}
	modules := base.modules
	if opts.Dir != nil {
		user, err := readDir(opts.Dir)
		if err != nil {
			return nil, fmt.Errorf("read policy: %w", err)
		}
		if _, whole := user.modules[gateFile]; whole {
			modules = nil
		}
		modules = overlay(modules, user.modules)
		layers = append(layers, user)
	}
	if len(opts.Data) > 0 {
		layers = append(layers, layer{dataFile: "(options)", data: opts.Data})
	}
	data, err := mergeData(layers, opts.Labels)
	if err != nil {
		return nil, err
	}
	return &source{modules: modules, data: data}, nil
}

func overlay(under, over map[string]string) map[string]string {
	out := make(map[string]string, len(under)+len(over))
	maps.Copy(out, under)
	maps.Copy(out, over)
	return out
}

// readDir reads a policy's directory. A file that looks like data and would be
// ignored is an error: its author believes that it works.
func readDir(dir fs.FS) (layer, error) {
	l := layer{modules: map[string]string{}}
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(d.Name(), ".") && name != "."
		switch {
		case d.IsDir() && hidden:
			return fs.SkipDir
		case d.IsDir() || hidden:
			return nil
		}
		return l.add(dir, name)
	})
	return l, err
}

func (l *layer) add(dir fs.FS, name string) error {
	switch path.Ext(name) {
	case ".rego":
		if strings.HasSuffix(name, "_test.rego") {
			return nil
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		l.modules[name] = string(text)
	case ".yaml", ".yml", ".json":
		if name != "data.yaml" && name != "data.json" {
			return CompileErrors{{File: name, Code: "file_error", Message: "data belongs in data.yaml or data.json at the top"}}
		}
		if l.dataFile != "" {
			return CompileErrors{{File: name, Code: "file_error", Message: "there is also " + l.dataFile}}
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		l.dataFile, l.data = name, text
	}
	return nil
}
