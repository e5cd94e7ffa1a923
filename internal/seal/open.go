package seal

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Errors of finding the root key.
var (
	// ErrReference reports a reference of no known form.
	ErrReference = errors.New("key reference must be auto, keychain:NAME, env:VAR or file:PATH")
	// ErrExposed reports a key file that others than its owner may read.
	ErrExposed = errors.New("key file is open to others")
	// ErrMalformed reports a key that is not 32 bytes in Base64.
	ErrMalformed = errors.New("key is not 32 bytes in Base64")
	// ErrNoKeychain reports a key store of the system that does not answer.
	ErrNoKeychain = errors.New("the system's key store does not answer")
)

const (
	// keyFile is where auto keeps the key if there is no key store.
	keyFile = "key"
	// sourceFile records that auto took the key store. Without it, a start
	// without the key store would make a second key, and all that was sealed
	// under the first would look lost.
	sourceFile = "key.keychain"
	// entry is the name that auto uses in the key store.
	entry = "default"
)

// Open returns the keys of the root key that ref names:
//
//	keychain:NAME  the system's key store, entry NAME of service "weir"
//	env:VAR        environment variable VAR, 32 bytes in Base64
//	file:PATH      a file, readable by its owner only
//	auto           the key store if it answers at once, else a file in dataDir
//
// A missing key is made, except in the environment. What auto has once chosen
// for dataDir it keeps.
func Open(ctx context.Context, ref, dataDir string) (*Keys, error) {
	return open(ctx, ref, dataDir, systemRing())
}

func open(ctx context.Context, ref, dataDir string, r ring) (*Keys, error) {
	kind, name, _ := strings.Cut(ref, ":")
	var root [Size]byte
	var err error
	switch {
	case ref == "auto":
		root, err = auto(ctx, dataDir, r)
	case kind == "keychain" && name != "":
		root, err = fromRing(ctx, r, name, askLimit)
	case kind == "env" && name != "":
		root, err = fromEnv(name)
	case kind == "file" && name != "":
		root, err = fromFile(name)
	default:
		return nil, ErrReference
	}
	if err != nil {
		return nil, err
	}
	return New(root)
}

// AutoFiles are the files in dataDir that tell where auto found the key: one of
// them is there if it has made one.
func AutoFiles(dataDir string) []string {
	return []string{filepath.Join(dataDir, keyFile), filepath.Join(dataDir, sourceFile)}
}

func auto(ctx context.Context, dir string, r ring) ([Size]byte, error) {
	path, source := filepath.Join(dir, keyFile), filepath.Join(dir, sourceFile)
	if _, err := os.Lstat(path); err == nil {
		return fromFile(path)
	}
	if _, err := os.Lstat(source); err == nil {
		return fromRing(ctx, r, entry, askLimit)
	}
	if r.likely() {
		root, err := fromRing(ctx, r, entry, quickLimit)
		if err == nil {
			return root, remember(source)
		}
		if ctx.Err() != nil || errors.Is(err, ErrMalformed) {
			return root, err // a foreign entry must not lead to a second key
		}
	}
	return fromFile(path)
}

// remember records that the key store was taken.
func remember(source string) error {
	if err := os.MkdirAll(filepath.Dir(source), 0o700); err != nil {
		return fmt.Errorf("make key directory: %w", err)
	}
	err := createFile(source, []byte("keychain:"+entry+"\n"))
	if errors.Is(err, fs.ErrExist) {
		return nil // another process came to the same choice
	}
	return err
}

func fromEnv(name string) ([Size]byte, error) {
	text, ok := os.LookupEnv(name)
	if !ok || text == "" {
		return [Size]byte{}, fmt.Errorf("key: environment variable %s is not set", name)
	}
	root, err := parse(text)
	if err != nil {
		return root, fmt.Errorf("key in environment variable %s: %w", name, err)
	}
	return root, nil
}

// parse reads a root key. Padding and alphabet are accepted as people have
// them: openssl prints one form, a URL-safe generator another.
func parse(text string) ([Size]byte, error) {
	text = strings.TrimRight(strings.TrimSpace(text), "=")
	text = strings.NewReplacer("-", "+", "_", "/").Replace(text)
	raw, err := base64.RawStdEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != Size {
		return [Size]byte{}, ErrMalformed // the decoder's error would quote the key
	}
	return [Size]byte(raw), nil
}

// fresh makes a root key, as text.
func fresh() string {
	raw := make([]byte, Size)
	_, _ = rand.Read(raw) // never fails since Go 1.24
	return base64.StdEncoding.EncodeToString(raw)
}
