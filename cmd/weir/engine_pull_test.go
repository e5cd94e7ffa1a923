package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/engine/checkpoint"
)

// hub serves the files of a small revision.
type hub struct {
	*httptest.Server
	manifest checkpoint.Manifest
	requests atomic.Int64
	cut      atomic.Bool // breaks off in the middle of large files
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{manifest: checkpoint.Manifest{Repo: "org/model", Revision: "0123456789abcdef"}}
	content := map[string][]byte{}
	r := rand.NewChaCha8([32]byte{7})
	for name, size := range map[string]int{"config.json": 500, "model-00001.safetensors": 300_000, "model-00002.safetensors": 120_000} {
		b := make([]byte, size)
		r.Read(b)
		content[name] = b
		sum := sha256.Sum256(b)
		h.manifest.Files = append(h.manifest.Files, checkpoint.PinnedFile{Name: name, Size: int64(size), SHA256: hex.EncodeToString(sum[:])})
	}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h.requests.Add(1)
		name := strings.TrimPrefix(req.URL.Path, "/org/model/resolve/0123456789abcdef/")
		b, ok := content[name]
		switch {
		case !ok:
			http.NotFound(w, req)
		case h.cut.Load() && len(b) > 200_000:
			w.WriteHeader(http.StatusForbidden) // not one that is tried again
		default:
			http.ServeContent(w, req, name, time.Time{}, bytes.NewReader(b))
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hub) pull(ctx context.Context, dir string) (out, progress string, err error) {
	var o, e bytes.Buffer
	err = enginePullCommand{Connections: 2}.pull(ctx, streams{strings.NewReader(""), &o, &e}, dir, h.manifest,
		checkpoint.Hub{Endpoint: h.URL, SegmentBytes: 100_000, Backoff: time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}})
	return o.String(), e.String(), err
}

func (h *hub) verify(ctx context.Context, dir string) (string, error) {
	var o, e bytes.Buffer
	err := engineVerifyCommand{}.files(ctx, streams{strings.NewReader(""), &o, &e}, dir, h.manifest)
	return o.String(), err
}

// hintOf is what an error tells the user to do.
func hintOf(err error) string {
	h, _ := errors.AsType[hinted](err)
	return h.hint
}

func TestEnginePullAndVerify(t *testing.T) {
	t.Parallel()
	h, dir := newHub(t), filepath.Join(t.TempDir(), "model")
	if _, err := h.verify(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "config.json is missing") || !strings.Contains(hintOf(err), "weir engine pull "+dir) {
		t.Errorf("verify of nothing: %v, hint %q", err, hintOf(err))
	}
	h.cut.Store(true)
	if _, _, err := h.pull(t.Context(), dir); err == nil || !strings.Contains(hintOf(err), "goes on from there") {
		t.Errorf("a hub that refuses one file: %v, hint %q", err, hintOf(err))
	}
	if _, err := os.Stat(filepath.Join(dir, "model-00001.safetensors")); err == nil {
		t.Error("a file that is not whole has its name")
	}
	h.cut.Store(false)
	out, progress, err := h.pull(t.Context(), dir)
	if err != nil || out != "org/model at revision 0123456789ab is whole in "+dir+"\n" || !strings.Contains(progress, "100.0%") {
		t.Errorf("pull: %v, output %q, progress %q", err, out, progress)
	}
	if out, err := h.verify(t.Context(), dir); err != nil || !strings.HasPrefix(out, "ok:") {
		t.Errorf("verify: %v, output %q", err, out)
	}
	before := h.requests.Load()
	if _, _, err := h.pull(t.Context(), dir); err != nil || h.requests.Load() != before {
		t.Errorf("pull of what is there: %v, and %d requests", err, h.requests.Load()-before)
	}
	name := filepath.Join(dir, "model-00002.safetensors")
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	raw[60_000] ^= 1
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.verify(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "model-00002.safetensors has SHA-256") {
		t.Errorf("verify of a flipped bit: %v", err)
	}
	if _, _, err := h.pull(t.Context(), dir); err == nil {
		t.Error("pull took a file with a flipped bit for whole")
	}
	if left, err := os.ReadFile(name); err != nil || !bytes.Equal(left, raw) {
		t.Error("pull changed a file that it did not fetch")
	}
}

func TestEnginePullCancelled(t *testing.T) {
	t.Parallel()
	h, dir := newHub(t), filepath.Join(t.TempDir(), "model")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := h.pull(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
