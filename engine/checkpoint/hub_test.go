package checkpoint_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/engine/checkpoint"
)

// hub is a stand-in for a hub: its paths, its redirect to a storage on
// another host, ranges. A test may put its own handler before the storage.
type hub struct {
	api, storage *httptest.Server
	manifest     checkpoint.Manifest
	content      map[string][]byte
	requests     atomic.Int64
	// before may answer a request to the storage, and returns whether it did.
	before func(w http.ResponseWriter, r *http.Request, name string) bool
	mu     sync.Mutex
	tokens []string // Authorization as the storage saw it
}

const segment = 100_000

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{content: map[string][]byte{}, manifest: checkpoint.Manifest{Repo: "org/model", Revision: "0123456789abcdef"}}
	r := rand.NewChaCha8([32]byte{1})
	for name, size := range map[string]int{"config.json": 1234, "model-1.safetensors": 1_234_567, "model-2.safetensors": 300_000, "empty.json": 0} {
		b := make([]byte, size)
		r.Read(b)
		h.content[name] = b
		sum := sha256.Sum256(b)
		h.manifest.Files = append(h.manifest.Files, checkpoint.PinnedFile{Name: name, Size: int64(size), SHA256: hex.EncodeToString(sum[:])})
	}
	h.storage = httptest.NewServer(http.HandlerFunc(h.serveStorage))
	h.api = httptest.NewServer(http.HandlerFunc(h.serveAPI))
	t.Cleanup(h.storage.Close)
	t.Cleanup(h.api.Close)
	return h
}

func (h *hub) serveAPI(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, "/org/model/resolve/0123456789abcdef/")
	if _, known := h.content[name]; !ok || !known {
		http.NotFound(w, r)
		return
	}
	if strings.HasSuffix(name, ".json") { // small files come directly
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(h.content[name]))
		return
	}
	http.Redirect(w, r, h.storage.URL+"/blob/"+name+"?signature=very-secret", http.StatusFound)
}

func (h *hub) serveStorage(w http.ResponseWriter, r *http.Request) {
	h.requests.Add(1)
	h.mu.Lock()
	h.tokens = append(h.tokens, r.Header.Get("Authorization"))
	h.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/blob/")
	if h.before != nil && h.before(w, r, name) {
		return
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(h.content[name]))
}

func (h *hub) options() checkpoint.Hub {
	return checkpoint.Hub{
		Endpoint: h.api.URL, Connections: 4, SegmentBytes: segment,
		Stall: 200 * time.Millisecond, Backoff: time.Millisecond,
		Transport: &http.Transport{},
	}
}

// wantAll fails unless the folder holds exactly the files of the hub.
func (h *hub) wantAll(t *testing.T, dir string) {
	t.Helper()
	for name, want := range h.content {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the hub has (%v)", name, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(h.content) {
		t.Errorf("the folder has %v (%v)", entries, err)
	}
}

// wantNone fails if a wrong file got its final name.
func (h *hub) wantNone(t *testing.T, dir, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
		t.Errorf("%s appeared although it is not right", name)
	}
}
