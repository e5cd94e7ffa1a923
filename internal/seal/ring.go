package seal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/zalando/go-keyring"
)

const (
	service = "weir"
	// quickLimit is how long auto waits for a key store that nobody asked for.
	quickLimit = 2 * time.Second
	// askLimit leaves a person the time to unlock the key store.
	askLimit = time.Minute
)

// ring is the system's key store.
type ring struct {
	get    func(service, user string) (string, error)
	set    func(service, user, secret string) error
	likely func() bool // whether there may be one
}

func systemRing() ring {
	return ring{get: keyring.Get, set: keyring.Set, likely: busThere}
}

// busThere says whether a key store can be expected. On Linux it is reached by
// the session bus; without one the bus library would try to launch a daemon,
// which on a server costs seconds and leaves a process behind.
func busThere() bool {
	if runtime.GOOS != "linux" {
		return true
	}
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil
}

// fromRing reads the key from the key store, making it if there is none. The
// store's interface cannot be cancelled: a call that outlives the limit is left
// to end by itself, and its result is dropped.
func fromRing(ctx context.Context, r ring, name string, limit time.Duration) ([Size]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1) // room for a result that nobody waits for
	go func() {
		text, err := r.get(service, name)
		if errors.Is(err, keyring.ErrNotFound) {
			if err = r.set(service, name, fresh()); err == nil {
				// Read back: another process may have set its own just now.
				text, err = r.get(service, name)
			}
		}
		done <- result{text, err}
	}()
	select {
	case res := <-done:
		if res.err != nil {
			return [Size]byte{}, fmt.Errorf("%w: entry %s: %w", ErrNoKeychain, name, res.err)
		}
		root, err := parse(res.text)
		if err != nil {
			return root, fmt.Errorf("key in key store entry %s: %w", name, err)
		}
		return root, nil
	case <-ctx.Done():
		return [Size]byte{}, fmt.Errorf("%w: entry %s: %w", ErrNoKeychain, name, ctx.Err())
	}
}
