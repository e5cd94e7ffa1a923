package seal

// Tested from inside: the system's key store is not there in a test, and the
// library's stand-in is one for the whole process.

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zalando/go-keyring"
)

// memoryRing is a key store that works.
type memoryRing struct {
	mu    sync.Mutex
	items map[string]string
	calls int
}

func (m *memoryRing) ring() ring {
	return ring{
		likely: func() bool { return true },
		get: func(service, user string) (string, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.calls++
			v, ok := m.items[service+"/"+user]
			if !ok {
				return "", keyring.ErrNotFound
			}
			return v, nil
		},
		set: func(service, user, secret string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.items == nil {
				m.items = map[string]string{}
			}
			m.items[service+"/"+user] = secret
			return nil
		},
	}
}

// absentRing is a machine without one.
func absentRing(t *testing.T) ring {
	refuse := func() { t.Error("a key store was asked that is not there") }
	return ring{
		likely: func() bool { return false },
		get:    func(string, string) (string, error) { refuse(); return "", errors.New("absent") },
		set:    func(string, string, string) error { refuse(); return errors.New("absent") },
	}
}

// hangingRing is one that never answers.
func hangingRing(ctx context.Context) ring {
	return ring{
		likely: func() bool { return true },
		get:    func(string, string) (string, error) { <-ctx.Done(); return "", ctx.Err() },
		set:    func(string, string, string) error { <-ctx.Done(); return ctx.Err() },
	}
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestKeychain(t *testing.T) {
	t.Parallel()
	var m memoryRing
	a, err := open(t.Context(), "keychain:one", "", m.ring())
	if err != nil {
		t.Fatal(err)
	}
	again, err := open(t.Context(), "keychain:one", "", m.ring())
	if err != nil || again.ID() != a.ID() {
		t.Errorf("second start has another key (%v)", err)
	}
	b, err := open(t.Context(), "keychain:two", "", m.ring())
	if err != nil || b.ID() == a.ID() {
		t.Errorf("two entries have one key (%v)", err)
	}
	m.items["weir/bad"] = "hunter2"
	if _, err := open(t.Context(), "keychain:bad", "", m.ring()); !errors.Is(err, ErrMalformed) {
		t.Errorf("an entry that is no key: %v", err)
	}
}

func TestAutoTakesTheKeyStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	var m memoryRing
	a, err := open(t.Context(), "auto", dir, m.ring())
	if err != nil {
		t.Fatal(err)
	}
	if exists(t, filepath.Join(dir, keyFile)) || !exists(t, filepath.Join(dir, sourceFile)) {
		t.Error("the choice is not recorded, or a key file was made")
	}
	again, err := open(t.Context(), "auto", dir, m.ring())
	if err != nil || again.ID() != a.ID() {
		t.Errorf("second start: %v", err)
	}
	// Started where the key store is out of reach: an error, and no second key.
	broken := m.ring()
	broken.get = func(string, string) (string, error) { return "", errors.New("no bus") }
	broken.likely = func() bool { return false }
	if _, err := open(t.Context(), "auto", dir, broken); !errors.Is(err, ErrNoKeychain) {
		t.Errorf("without the key store: %v, want ErrNoKeychain", err)
	}
	if exists(t, filepath.Join(dir, keyFile)) {
		t.Error("a second key was made")
	}
}

func TestAutoTakesAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := open(t.Context(), "auto", dir, absentRing(t))
	if err != nil {
		t.Fatal(err)
	}
	// A key store that turns up later does not change the key.
	var m memoryRing
	again, err := open(t.Context(), "auto", dir, m.ring())
	if err != nil || again.ID() != a.ID() || m.calls != 0 {
		t.Errorf("second start: %v, key store asked %d times", err, m.calls)
	}
}

// An entry of the key store that is no key is somebody else's, or damaged: to
// make a second key then would hide it.
func TestAutoStopsAtAForeignEntry(t *testing.T) {
	t.Parallel()
	m := memoryRing{items: map[string]string{"weir/default": "hunter2"}}
	dir := t.TempDir()
	if _, err := open(t.Context(), "auto", dir, m.ring()); !errors.Is(err, ErrMalformed) {
		t.Errorf("error %v, want ErrMalformed", err)
	}
	if exists(t, filepath.Join(dir, keyFile)) {
		t.Error("a second key was made")
	}
}

func TestHangingKeyStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begin := time.Now()
		if _, err := open(ctx, "auto", dir, hangingRing(ctx)); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != quickLimit {
			t.Errorf("auto took %v, want %v", took, quickLimit)
		}
		if !exists(t, filepath.Join(dir, keyFile)) {
			t.Error("no key file was made")
		}
		begin = time.Now()
		_, err := open(ctx, "keychain:one", dir, hangingRing(ctx))
		if !errors.Is(err, ErrNoKeychain) || time.Since(begin) != askLimit {
			t.Errorf("keychain: %v after %v", err, time.Since(begin))
		}
	})
}

func TestCancelledAutoMakesNoKey(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if _, err := open(ctx, "auto", dir, hangingRing(ctx)); err == nil {
		t.Error("opened")
	}
	if exists(t, filepath.Join(dir, keyFile)) {
		t.Error("a key was made for a start that was given up")
	}
}
