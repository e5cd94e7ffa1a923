package checkpoint_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
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

func TestPull(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	o := h.options()
	o.Token = "hf_invented"
	var last checkpoint.Progress
	o.Progress = func(p checkpoint.Progress) { last = p }
	dir := filepath.Join(t.TempDir(), "new", "folder")
	if err := checkpoint.Pull(t.Context(), dir, h.manifest, o); err != nil {
		t.Fatal(err)
	}
	h.wantAll(t, dir)
	if last.Done != h.manifest.Bytes() || last.Total != h.manifest.Bytes() {
		t.Errorf("progress ended at %+v of %d", last, h.manifest.Bytes())
	}
	for _, token := range h.tokens {
		if token != "" {
			t.Fatal("the token went to the storage")
		}
	}
	if err := checkpoint.Verify(t.Context(), dir, h.manifest, nil); err != nil {
		t.Error(err)
	}
	n := h.requests.Load()
	if n < 1_234_567/segment {
		t.Errorf("only %d requests: not in ranges", n)
	}
	if err := checkpoint.Pull(t.Context(), dir, h.manifest, o); err != nil {
		t.Errorf("pull again: %v", err)
	}
	if h.requests.Load() != n {
		t.Error("what was there was fetched again")
	}
}

// Each row is a hub that misbehaves for a while and must be got over.
func TestPullSurvives(t *testing.T) {
	t.Parallel()
	rows := map[string]func(h *hub) func(w http.ResponseWriter, r *http.Request, name string) bool{
		"connections reset in the middle": func(h *hub) func(http.ResponseWriter, *http.Request, string) bool {
			var n atomic.Int64
			return func(w http.ResponseWriter, r *http.Request, name string) bool {
				if n.Add(1)%2 == 0 {
					return false
				}
				var from, to int
				fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(h.content[name])))
				w.Header().Set("Content-Length", fmt.Sprint(to-from+1))
				w.WriteHeader(http.StatusPartialContent)
				w.Write(h.content[name][from : from+(to-from)/2])
				panic(http.ErrAbortHandler)
			}
		},
		"silence": func(*hub) func(http.ResponseWriter, *http.Request, string) bool {
			var n atomic.Int64
			return func(_ http.ResponseWriter, r *http.Request, _ string) bool {
				if n.Add(1) > 2 {
					return false
				}
				<-r.Context().Done()
				return true
			}
		},
		"too many requests": func(*hub) func(http.ResponseWriter, *http.Request, string) bool {
			var n atomic.Int64
			return func(w http.ResponseWriter, _ *http.Request, _ string) bool {
				if n.Add(1) > 3 {
					return false
				}
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			}
		},
		"expired storage address": func(*hub) func(http.ResponseWriter, *http.Request, string) bool {
			var n atomic.Int64
			return func(w http.ResponseWriter, _ *http.Request, _ string) bool {
				if n.Add(1) > 1 {
					return false
				}
				w.WriteHeader(http.StatusForbidden)
				return true
			}
		},
		"no ranges": func(h *hub) func(http.ResponseWriter, *http.Request, string) bool {
			return func(w http.ResponseWriter, _ *http.Request, name string) bool {
				w.Write(h.content[name])
				return true
			}
		},
		"no ranges and a reset": func(h *hub) func(http.ResponseWriter, *http.Request, string) bool {
			var n atomic.Int64
			return func(w http.ResponseWriter, r *http.Request, name string) bool {
				if r.Header.Get("Range") == "" && n.Add(1) == 1 {
					w.Write(h.content[name][:len(h.content[name])/2])
					panic(http.ErrAbortHandler)
				}
				w.Write(h.content[name])
				return true
			}
		},
		"shorter ranges than asked for": func(h *hub) func(http.ResponseWriter, *http.Request, string) bool {
			return func(w http.ResponseWriter, r *http.Request, name string) bool {
				var from, to int
				fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
				to = min(to, from+70_000)
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(h.content[name])))
				w.WriteHeader(http.StatusPartialContent)
				w.Write(h.content[name][from : to+1])
				return true
			}
		},
		"wrong bytes once": func(h *hub) func(http.ResponseWriter, *http.Request, string) bool {
			var n atomic.Int64
			return func(w http.ResponseWriter, r *http.Request, name string) bool {
				if n.Add(1) != 2 {
					return false
				}
				lie := bytes.Repeat([]byte{7}, len(h.content[name]))
				http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(lie))
				return true
			}
		},
	}
	for name, before := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.before = before(h)
			o := h.options()
			var last checkpoint.Progress
			o.Progress = func(p checkpoint.Progress) { last = p }
			dir := t.TempDir()
			if err := checkpoint.Pull(t.Context(), dir, h.manifest, o); err != nil {
				t.Fatal(err)
			}
			h.wantAll(t, dir)
			if last.Done != last.Total {
				t.Errorf("progress ended at %+v", last)
			}
		})
	}
}

// Each row is a hub that keeps lying or refusing: a clear error, no wrong file.
func TestPullRefuses(t *testing.T) {
	t.Parallel()
	reply := func(code int, body string, header ...string) func(*hub) func(http.ResponseWriter, *http.Request, string) bool {
		return func(*hub) func(http.ResponseWriter, *http.Request, string) bool {
			return func(w http.ResponseWriter, _ *http.Request, _ string) bool {
				for i := 0; i < len(header); i += 2 {
					w.Header().Set(header[i], header[i+1])
				}
				w.WriteHeader(code)
				io.WriteString(w, body)
				return true
			}
		}
	}
	rows := map[string]struct {
		before func(*hub) func(http.ResponseWriter, *http.Request, string) bool
		want   string
	}{
		"a web page":           {reply(200, "<html>log in</html>"), "bytes, the pinned file has"},
		"another range":        {reply(206, "x", "Content-Range", "bytes 5-5/1234567"), "another range"},
		"no range named":       {reply(206, "x"), "another range"},
		"another size":         {reply(206, "x", "Content-Range", "bytes 0-0/99"), ""},
		"not found":            {reply(404, ""), "has no model-"},
		"unauthorized":         {reply(401, ""), "wants a token"},
		"always unavailable":   {reply(503, ""), "HTTP 503"},
		"range not there":      {reply(416, ""), "shorter than"},
		"teapot":               {reply(418, ""), "HTTP 418"},
		"redirects in circles": {reply(302, "", "Location", "/blob/model-1.safetensors"), "without end"},
		"always other content": {func(h *hub) func(http.ResponseWriter, *http.Request, string) bool {
			return func(w http.ResponseWriter, r *http.Request, name string) bool {
				lie := bytes.Repeat([]byte{7}, len(h.content[name]))
				http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(lie))
				return true
			}
		}, "other content than the pinned one, twice"},
		"no ranges, and never whole": {func(h *hub) func(http.ResponseWriter, *http.Request, string) bool {
			return func(w http.ResponseWriter, _ *http.Request, name string) bool {
				w.Write(h.content[name][:len(h.content[name])/2])
				panic(http.ErrAbortHandler)
			}
		}, ""},
		"a byte at a time": {func(h *hub) func(http.ResponseWriter, *http.Request, string) bool {
			return func(w http.ResponseWriter, r *http.Request, name string) bool {
				var from, to int
				fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
				w.Header().Set("Content-Length", fmt.Sprint(to-from+1))
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(h.content[name])))
				w.WriteHeader(http.StatusPartialContent)
				w.Write(h.content[name][from : from+1])
				panic(http.ErrAbortHandler)
			}
		}, ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.before = row.before(h)
			dir := t.TempDir()
			err := checkpoint.Pull(t.Context(), dir, h.manifest, h.options())
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
			if err != nil && strings.Contains(err.Error(), "very-secret") {
				t.Errorf("the error shows a signed address: %v", err)
			}
			h.wantNone(t, dir, "model-1.safetensors")
		})
	}
}

// What an interrupted pull has fetched must not be fetched again.
func TestPullResumes(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	o := h.options()
	o.Connections = 1
	o.Progress = func(p checkpoint.Progress) {
		if p.Done > 800_000 {
			cancel()
		}
	}
	if err := checkpoint.Pull(ctx, dir, h.manifest, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled pull: %v", err)
	}
	before := h.requests.Load()
	o.Progress = nil
	if err := checkpoint.Pull(t.Context(), dir, h.manifest, o); err != nil {
		t.Fatal(err)
	}
	h.wantAll(t, dir)
	all := int64(1_234_567/segment+1) + 3
	if again := h.requests.Load() - before; again > all-6 {
		t.Errorf("%d of %d segments were fetched after 800 kB had arrived", again, all)
	}
}

// A part that was damaged between two runs must be noticed and fetched anew.
func TestPullDamagedPart(t *testing.T) {
	t.Parallel()
	rows := map[string]func(t *testing.T, part string){
		"other bytes": func(t *testing.T, part string) {
			f, err := os.OpenFile(part, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt(make([]byte, 5000), 0); err != nil {
				t.Fatal(err)
			}
		},
		"cut short": func(t *testing.T, part string) {
			if err := os.Truncate(part, 100); err != nil {
				t.Fatal(err)
			}
		},
		"state of something else": func(t *testing.T, part string) {
			if err := os.WriteFile(part+".state", []byte("weir pull 1 abc 5 5\n1"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, damage := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			o := h.options()
			o.Connections = 1
			o.Progress = func(p checkpoint.Progress) {
				if p.File == "model-1.safetensors" && p.Done > 500_000 {
					cancel()
				}
			}
			if err := checkpoint.Pull(ctx, dir, h.manifest, o); err == nil {
				t.Fatal("the first pull was not interrupted")
			}
			damage(t, filepath.Join(dir, "model-1.safetensors.part"))
			o.Progress = nil
			if err := checkpoint.Pull(t.Context(), dir, h.manifest, o); err != nil {
				t.Fatal(err)
			}
			h.wantAll(t, dir)
		})
	}
}

func TestPullKeepsForeignFiles(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "config.json")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.Pull(t.Context(), dir, h.manifest, h.options()); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("got %v", err)
	}
	if raw, _ := os.ReadFile(path); string(raw) != "mine" {
		t.Error("the file was replaced")
	}
}

func TestPullEndpoint(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	tls := httptest.NewUnstartedServer(http.RedirectHandler(h.storage.URL, http.StatusFound))
	tls.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that hangs up is what is wanted
	tls.StartTLS()
	t.Cleanup(tls.Close)
	rows := map[string]struct {
		hub  checkpoint.Hub
		want string
	}{
		"token over plain http":  {checkpoint.Hub{Endpoint: "http://hub.example", Token: "hf_invented"}, "plain http"},
		"loopback look-alike":    {checkpoint.Hub{Endpoint: "http://127.0.0.1.hub.example", Token: "hf_invented"}, "plain http"},
		"not http":               {checkpoint.Hub{Endpoint: "ftp://hub.example"}, "not an http"},
		"no host":                {checkpoint.Hub{Endpoint: "https://"}, "not an http"},
		"from tls to plain text": {checkpoint.Hub{Endpoint: tls.URL, Transport: tls.Client().Transport}, "plain http"},
	}
	for name, row := range rows {
		err := checkpoint.Pull(t.Context(), t.TempDir(), h.manifest, row.hub)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	secret := checkpoint.Hub{Token: "hf_invented"}
	if s := fmt.Sprintf("%v %+v %#v %s", secret, secret, secret, secret.LogValue()); strings.Contains(s, "invented") {
		t.Errorf("the token is printed: %s", s)
	}
}

func TestPullPathEscape(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.manifest.Files[0].Name = "../escape"
	if err := checkpoint.Pull(t.Context(), t.TempDir(), h.manifest, h.options()); err == nil {
		t.Error("a name outside the folder was accepted")
	}
}

func TestPullLock(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	dir := t.TempDir()
	started, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	h.before = func(http.ResponseWriter, *http.Request, string) bool {
		once.Do(func() { close(started) })
		<-release
		return false
	}
	done := make(chan error, 1)
	o := h.options()
	o.Stall = time.Minute
	go func() { done <- checkpoint.Pull(t.Context(), dir, h.manifest, o) }()
	select {
	case <-started:
	case err := <-done:
		t.Fatalf("the first pull fetched nothing: %v", err)
	}
	if err := checkpoint.Pull(t.Context(), dir, h.manifest, o); err == nil || !strings.Contains(err.Error(), "another download") {
		t.Errorf("second pull: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	h.wantAll(t, dir)
}

func TestEnough(t *testing.T) {
	t.Parallel()
	if err := checkpoint.Enough(5, 5); err != nil {
		t.Error(err)
	}
	if err := checkpoint.Enough(12_300_000_000, 20_429_000_000); err == nil || !strings.Contains(err.Error(), "12.3 GB free, 20.4 GB") {
		t.Errorf("got %v", err)
	}
}

// Over loopback, what remains is our own cost: writing, and hashing once.
func BenchmarkPull(b *testing.B) {
	content := make([]byte, 64<<20)
	rand.NewChaCha8([32]byte{2}).Read(content)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "x", time.Time{}, bytes.NewReader(content))
	}))
	b.Cleanup(server.Close)
	sum := sha256.Sum256(content)
	m := checkpoint.Manifest{Repo: "org/model", Revision: "r", Files: []checkpoint.PinnedFile{
		{Name: "x", Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])},
	}}
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		hub := checkpoint.Hub{Endpoint: server.URL, SegmentBytes: 8 << 20}
		if err := checkpoint.Pull(b.Context(), b.TempDir(), m, hub); err != nil {
			b.Fatal(err)
		}
	}
}
