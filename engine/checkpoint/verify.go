package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Progress says how far [Verify] or [Pull] is. It is reported by one
// goroutine at a time.
type Progress struct {
	File        string // the file that moved on
	Done, Total int64  // bytes of all files
}

// Verify compares the files of a folder with a manifest, sizes first and then
// SHA-256, and reports every difference as a [*Problems]. It reads every byte
// of the files, 20 GB for [Pinned]. Other files in the folder do not matter.
// progress may be nil.
func Verify(ctx context.Context, dir string, m Manifest, progress func(Progress)) error {
	p := &Problems{Dir: dir}
	for _, f := range m.Files {
		info, err := os.Stat(filepath.Join(dir, f.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			p.addf("%s is missing", f.Name)
		case err != nil:
			return err
		case info.Size() != f.Size:
			p.addf("%s has %d bytes, revision %.8s has %d", f.Name, info.Size(), m.Revision, f.Size)
		}
	}
	if err := p.err(); err != nil {
		return err // hashing for minutes would tell nothing new
	}
	meter := newMeter(m.Bytes(), progress)
	sums := make([]string, len(m.Files))
	err := parallel(ctx, len(m.Files), hashers, func(ctx context.Context, i int) error {
		var err error
		sums[i], err = hashFile(ctx, filepath.Join(dir, m.Files[i].Name), func(n int) { meter.add(m.Files[i].Name, int64(n)) })
		return err
	})
	if err != nil {
		return err
	}
	for i, f := range m.Files {
		if sums[i] != f.SHA256 {
			p.addf("%s has SHA-256 %s, revision %.8s has %s", f.Name, sums[i], m.Revision, f.SHA256)
		}
	}
	return p.err()
}

// hashers bounds how many files are hashed at a time: enough to keep a fast
// disk busy.
const hashers = 4

// hashFile returns a file's SHA-256, telling read how many bytes each step took.
func hashFile(ctx context.Context, path string, read func(int)) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if read != nil {
			read(n)
		}
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", fmt.Errorf("hash %s: %w", path, err)
		}
	}
}

// meter adds up progress from several goroutines.
type meter struct {
	mu     sync.Mutex
	p      Progress
	report func(Progress)
}

func newMeter(total int64, report func(Progress)) *meter {
	return &meter{p: Progress{Total: total}, report: report}
}

// add notes n more bytes of a file; n is negative when bytes must be fetched
// again.
func (m *meter) add(file string, n int64) {
	if m.report == nil || n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.File, m.p.Done = file, m.p.Done+n
	m.report(m.p)
}
