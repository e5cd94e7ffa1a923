package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/internal/config"
	"weir/policy"
)

type initCommand struct {
	Path   string `arg:"" optional:"" default:"weir.yaml" type:"path" help:"File to write."`
	Policy string `help:"Also write the shipped policy to this directory, to edit." type:"path" placeholder:"DIR"`
	Force  bool   `help:"Overwrite what is there."`
}

// Run writes the commented configuration, and the policy if asked.
func (c initCommand) Run(io streams) error {
	if err := ensureDir(filepath.Dir(c.Path)); err != nil {
		return err
	}
	if err := writeNew(c.Path, c.example(), c.Force); err != nil {
		return err
	}
	fmt.Fprintln(io.out, "wrote", c.Path)
	if c.Policy != "" {
		if err := c.writePolicy(io); err != nil {
			return err
		}
	}
	fmt.Fprintf(io.out, "next: edit %s, then run: weir doctor, and: weir serve\n", c.Path)
	return nil
}

// example is the commented configuration; it names the policy's directory if one
// is written.
func (c initCommand) example() []byte {
	if c.Policy == "" {
		return config.Example()
	}
	return bytes.Replace(config.Example(), []byte(`  dir: ""`), []byte("  dir: "+c.Policy), 1)
}

func (c initCommand) writePolicy(io streams) error {
	return fs.WalkDir(policy.Shipped(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(policy.Shipped(), path)
		if err != nil {
			return fmt.Errorf("read shipped policy: %w", err)
		}
		to := filepath.Join(c.Policy, filepath.FromSlash(path))
		if err := ensureDir(filepath.Dir(to)); err != nil {
			return err
		}
		if err := writeNew(to, b, c.Force); err != nil {
			return err
		}
		_, err = fmt.Fprintln(io.out, "wrote", to)
		return err
	})
}

// writeNew writes a file that only the user can read, and overwrites none unless
// told so.
func writeNew(path string, data []byte, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return hinted{fmt.Errorf("%s exists", path), "--force overwrites it"}
	}
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), f.Close())
	}
	return f.Close()
}
