package checkpoint_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weir/engine/checkpoint"
)

// A disk that somebody else fills while we fetch: a clear error, and the next
// call goes on from there.
func TestPullDiskFull(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("needs the right to mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	h := newHub(t)
	filler := filepath.Join(disk, "filler")
	var once sync.Once
	h.before = func(http.ResponseWriter, *http.Request, string) bool {
		once.Do(func() {
			if err := os.WriteFile(filler, make([]byte, 1_400_000), 0o600); err != nil {
				t.Error(err)
			}
		})
		return false
	}
	dir := filepath.Join(disk, "model")
	err := checkpoint.Pull(t.Context(), dir, h.manifest, h.options())
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("got %v", err)
	}
	// Now it is known before anything is fetched.
	n := h.requests.Load()
	err = checkpoint.Pull(t.Context(), dir, h.manifest, h.options())
	if err == nil || !strings.Contains(err.Error(), "still to be fetched") || h.requests.Load() != n {
		t.Errorf("got %v after %d more requests", err, h.requests.Load()-n)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.Pull(t.Context(), dir, h.manifest, h.options()); err != nil {
		t.Fatal(err)
	}
	h.wantAll(t, dir)
}
