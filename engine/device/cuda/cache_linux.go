//go:build amd64 || arm64

package cuda

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/metalsrc"
)

// cache keeps compiled kernels on disk. It is a help, not a need: what cannot be
// read or written is compiled.
type cache struct{ dir string }

// key names a kernel's machine code by everything that it is made of.
func (c cache) key(text string, options []string, major, minor int) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%d.%d %q %d\n%s", major, minor, options, len(text), text)
	for _, name := range []string{"msl_common.h", "msl_cuda.h"} {
		b, err := fs.ReadFile(metalsrc.Shim(), name)
		if err != nil {
			return "", fmt.Errorf("read the shim: %w", err)
		}
		h.Write(b)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}

func (c cache) path(key string) (string, error) {
	dir := c.dir
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "weir", "cuda")
	}
	return filepath.Join(dir, key+".bin"), os.MkdirAll(dir, 0o700)
}

// get returns what is kept, or nil. A file that was cut short or changed is
// none: its digest stands in front.
func (c cache) get(key string) []byte {
	path, err := c.path(key)
	if err != nil {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil || len(b) <= sha256.Size {
		return nil
	}
	sum := sha256.Sum256(b[sha256.Size:])
	if !bytes.Equal(sum[:], b[:sha256.Size]) {
		return nil
	}
	return b[sha256.Size:]
}

// put keeps a product; of several writers of the same one any may be last.
func (c cache) put(key string, image []byte) {
	path, err := c.path(key)
	if err != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return
	}
	sum := sha256.Sum256(image)
	_, err = f.Write(append(sum[:], image...))
	if cerr := f.Close(); err != nil || cerr != nil || os.Rename(f.Name(), path) != nil {
		_ = os.Remove(f.Name()) // nothing can be done about a file that stays
	}
}
