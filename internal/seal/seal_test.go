package seal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/seal"
)

func newKeys(t testing.TB, b byte) *seal.Keys {
	t.Helper()
	k, err := seal.New([seal.Size]byte{b})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealOpens(t *testing.T) {
	t.Parallel()
	k := newKeys(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		aad := rapid.SliceOf(rapid.Byte()).Draw(t, "aad")
		box, err := k.Seal(plain, aad)
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.Open(box, aad)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("Open = %d bytes, %v; want %d", len(got), err, len(plain))
		}
		// A flip of any bit, the nonce and the version included.
		i := rapid.IntRange(0, len(box)*8-1).Draw(t, "bit")
		box[i/8] ^= 1 << (i % 8)
		if _, err := k.Open(box, aad); !errors.Is(err, seal.ErrWrongKey) {
			t.Fatalf("altered bytes: %v", err)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	k := newKeys(t, 1)
	box, err := k.Seal([]byte("value"), []byte("place"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		keys   *seal.Keys
		sealed []byte
		aad    string
	}{
		{"another key", newKeys(t, 2), box, "place"},
		{"another place", k, box, "elsewhere"},
		{"cut short", k, box[:len(box)-1], "place"},
		{"only the version", k, box[:1], "place"},
		{"nothing", k, nil, "place"},
		{"another version", k, append([]byte{2}, box[1:]...), "place"},
	} {
		if _, err := c.keys.Open(c.sealed, []byte(c.aad)); !errors.Is(err, seal.ErrWrongKey) {
			t.Errorf("%s: %v, want ErrWrongKey", c.name, err)
		}
	}
	again, _ := k.Seal([]byte("value"), []byte("place"))
	if bytes.Equal(again, box) {
		t.Error("the same value sealed twice is the same bytes")
	}
}

// Subkeys are for one use each, and the same after a restart.
func TestSubkeys(t *testing.T) {
	t.Parallel()
	k := newKeys(t, 1)
	seen := map[[32]byte]string{}
	for name, v := range map[string][32]byte{
		"task a":          k.Task("a"),
		"task b":          k.Task("b"),
		"task of nothing": k.Task(""),
		"other key":       newKeys(t, 2).Task("a"),
		"mac":             k.MAC("p", []byte("ab"), []byte("c")),
		"framed":          k.MAC("p", []byte("a"), []byte("bc")),
		"one part":        k.MAC("p", []byte("abc")),
		"purpose":         k.MAC("q", []byte("abc")),
		"no part":         k.MAC("p"),
		"empty part":      k.MAC("p", nil),
	} {
		if other, dup := seen[v]; dup {
			t.Errorf("%s and %s are the same", name, other)
		}
		seen[v] = name
	}
	if k.Task("a") != newKeys(t, 1).Task("a") || k.ID() != newKeys(t, 1).ID() || k.ID() == newKeys(t, 2).ID() {
		t.Error("keys are not a function of the root key")
	}
}

// What is on users' disks must open with later versions.
func TestDerivationIsFixed(t *testing.T) {
	t.Parallel()
	k := newKeys(t, 1)
	task := k.Task("task_a")
	mac := k.MAC("p", []byte("x"))
	got := fmt.Sprintf("%s %x %x", k.ID(), task[:4], mac[:4])
	// Computed apart from this code, with HMAC-SHA256 alone.
	const want = "dadb87107bbcd1a8 0abeddb8 e6ecd144"
	if got != want {
		t.Errorf("derived %q, want %q", got, want)
	}
}

func TestBindFrames(t *testing.T) {
	t.Parallel()
	if bytes.Equal(seal.Bind("a", "bc"), seal.Bind("ab", "c")) || bytes.Equal(seal.Bind("a"), seal.Bind("a", "")) {
		t.Error("two lists give the same bytes")
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	t.Parallel()
	root := [seal.Size]byte([]byte("0123456789abcdef0123456789abcdef"))
	k, err := seal.New(root)
	if err != nil {
		t.Fatal(err)
	}
	sub := k.Task("") // also not what is derived
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", k)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "keys", k)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "keys", k)
	for _, secret := range []string{string(root[:]), hex.EncodeToString(root[:]), hex.EncodeToString(sub[:]), "0x30", "[48 49"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("printed: %s", out.String())
		}
	}
	if !strings.Contains(out.String(), "hidden") {
		t.Errorf("nothing printed: %s", out.String())
	}
}

func TestOpenFile(t *testing.T) {
	t.Parallel()
	text := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, seal.Size))
	want, err := seal.New([seal.Size]byte(bytes.Repeat([]byte{7}, seal.Size)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		text string
		mode os.FileMode
		want error
	}{
		{"as written", text + "\n", 0o600, nil},
		{"read only", text, 0o400, nil},
		{"unpadded, as some generators print it", strings.TrimRight(text, "="), 0o600, nil},
		{"URL-safe alphabet", strings.NewReplacer("+", "-", "/", "_").Replace(text), 0o600, nil},
		{"readable by the group", text, 0o640, seal.ErrExposed},
		{"readable by all", text, 0o604, seal.ErrExposed},
		{"writable by all", text, 0o602, seal.ErrExposed},
		{"empty", "", 0o600, seal.ErrMalformed},
		{"too short", base64.StdEncoding.EncodeToString(make([]byte, 31)), 0o600, seal.ErrMalformed},
		{"too long", base64.StdEncoding.EncodeToString(make([]byte, 33)), 0o600, seal.ErrMalformed},
		{"hexadecimal", strings.Repeat("07", seal.Size), 0o600, seal.ErrMalformed},
		{"two keys", text + "\n" + text, 0o600, seal.ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			k, err := seal.Open(t.Context(), "file:"+path, "")
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if err != nil && len(c.text) > 8 && strings.Contains(err.Error(), c.text[:8]) {
				t.Errorf("the error quotes the key: %v", err)
			}
			if err == nil && k.ID() != want.ID() {
				t.Error("another key")
			}
		})
	}
}

func TestFileIsMade(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(dir, "key")
	// Many starts at once end with one key.
	ids := make([]string, 16)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			k, err := seal.Open(t.Context(), "file:"+path, "")
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = k.ID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Fatalf("several keys: %v", ids)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info.Mode(), err)
	}
	if info, err = os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("files left: %v, %v", left, err)
	}
	other, err := seal.Open(t.Context(), "file:"+filepath.Join(t.TempDir(), "key"), "")
	if err != nil || other.ID() == ids[0] {
		t.Errorf("two key files have the same key (%v)", err)
	}
}

func TestOpenEnv(t *testing.T) {
	t.Setenv("WEIR_TEST_KEY", base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, seal.Size)))
	t.Setenv("WEIR_TEST_BAD", "c2VjcmV0LXRleHQ")
	t.Setenv("WEIR_TEST_EMPTY", "")
	if _, err := seal.Open(t.Context(), "env:WEIR_TEST_KEY", ""); err != nil {
		t.Error(err)
	}
	_, err := seal.Open(t.Context(), "env:WEIR_TEST_BAD", "")
	if !errors.Is(err, seal.ErrMalformed) || strings.Contains(err.Error(), "c2Vj") {
		t.Errorf("malformed: %v", err)
	}
	for _, name := range []string{"WEIR_TEST_EMPTY", "WEIR_TEST_NOT_SET"} {
		// A key is never made up here: nobody would keep it.
		if _, err := seal.Open(t.Context(), "env:"+name, ""); err == nil {
			t.Errorf("%s gave a key", name)
		}
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{"", "auto:", "file:", "env:", "keychain:", "keychain", "/etc/key", "literal:AAAA", "AUTO", base64.StdEncoding.EncodeToString(make([]byte, 32))} {
		_, err := seal.Open(t.Context(), ref, t.TempDir())
		if !errors.Is(err, seal.ErrReference) {
			t.Errorf("%q: %v, want ErrReference", ref, err)
		}
		if len(ref) > 20 && strings.Contains(err.Error(), ref) {
			t.Error("the error quotes what may be a key")
		}
	}
}
