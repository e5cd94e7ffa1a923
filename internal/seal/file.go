package seal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// fromFile reads the key file, making it if there is none.
func fromFile(path string) ([Size]byte, error) {
	root, err := readFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return root, fmt.Errorf("make key directory: %w", err)
	}
	// Of two processes that start at once, one creates the file and both
	// then read that one.
	if err := createFile(path, []byte(fresh()+"\n")); err != nil && !errors.Is(err, fs.ErrExist) {
		return root, err
	}
	return readFile(path)
}

func readFile(path string) ([Size]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return [Size]byte{}, fmt.Errorf("open key file: %w", err)
	}
	defer f.Close()
	// The open file is asked, not the path, which could change in between.
	info, err := f.Stat()
	if err != nil {
		return [Size]byte{}, fmt.Errorf("open key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return [Size]byte{}, fmt.Errorf("key file %s: not a regular file", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return [Size]byte{}, fmt.Errorf("%w: %s has mode %04o, want 0600", ErrExposed, path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, 1024))
	if err != nil {
		return [Size]byte{}, fmt.Errorf("read key file: %w", err)
	}
	root, err := parse(string(text))
	if err != nil {
		return root, fmt.Errorf("key file %s: %w", path, err)
	}
	return root, nil
}

// createFile makes path with mode 0600, whole or not at all: the content is
// written and synced under another name, and the link fails with fs.ErrExist if
// path is there. A crash leaves no half-written key that the next start takes
// for one.
func createFile(path string, content []byte) error {
	tmp := path + ".new-" + rand.Text()
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("create key file: %w", err)
	}
	defer os.Remove(tmp)
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("create key file: %w", err)
	}
	if err := os.Link(tmp, path); err != nil {
		return fmt.Errorf("create key file: %w", err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("sync key directory: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync key directory: %w", err)
	}
	return nil
}
