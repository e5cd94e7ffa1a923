package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"

	"weir/internal/config"
	"weir/internal/weirtest"
)

type benchCommand struct {
	Requests int `default:"2000" help:"Requests a target and case."`
	Rounds   int `default:"3" help:"Rounds; targets take turns in each. The median of the rounds is printed."`
	Prompt   int `default:"2048" help:"Bytes of the prompt."`
}

// Run measures direct calls, a bare reverse proxy and Weir in turns, in one
// process against one stand-in, so that only the ratios mean something.
func (c benchCommand) Run(ctx context.Context, io streams) error {
	b, err := newBench(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Fprintf(io.out, "%d cores, %s, prompt of %d bytes, no finding in it; times in µs, x = ratio to the bare proxy\n", runtime.GOMAXPROCS(0), runtime.Version(), c.Prompt)
	t := tabwriter.NewWriter(io.out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "case\ttarget\tp50\tx\tp99\tx\treq/s\tx\terrors\t")
	for _, cs := range []benchCase{{"1 worker", 1, false}, {"32 workers", 32, false}, {"32 streams", 32, true}} {
		if err := c.measure(ctx, t, b, cs); err != nil {
			return err
		}
	}
	return t.Flush()
}

type benchCase struct {
	name    string
	workers int
	stream  bool
}

type benchResult struct {
	p50, p99, rps float64
	errors        int
}

func (c benchCommand) measure(ctx context.Context, w io.Writer, b *bench, cs benchCase) error {
	body, err := c.body(cs.stream)
	if err != nil {
		return err
	}
	results := map[string][]benchResult{}
	for round := range c.Rounds + 1 {
		n := c.Requests
		if round == 0 { // warm-up
			n = max(20, n/10)
		}
		for _, target := range b.targets {
			r := b.load(ctx, target.url, body, cs.workers, n)
			b.standIn.Forget() // what it keeps of requests must not grow
			if round > 0 {
				results[target.name] = append(results[target.name], r)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	floor := median(results["bare proxy"])
	for _, target := range b.targets {
		m := median(results[target.name])
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.2f\t%.0f\t%.2f\t%.0f\t%.2f\t%d\t\n", cs.name, target.name,
			m.p50, m.p50/floor.p50, m.p99, m.p99/floor.p99, m.rps, m.rps/floor.rps, m.errors)
	}
	return nil
}

func (c benchCommand) body(stream bool) ([]byte, error) {
	const sentence = "The quarterly plan lists the open work, the order of it, and what each part waits for. "
	prompt := strings.Repeat(sentence, c.Prompt/len(sentence)+1)[:c.Prompt]
	return json.Marshal(map[string]any{
		"model": "cloud/text", "stream": stream,
		"messages": []map[string]string{{"role": "user", "content": prompt}},
	}, json.Deterministic(true))
}

func median(rs []benchResult) benchResult {
	pick := func(f func(benchResult) float64) float64 {
		v := make([]float64, len(rs))
		for i, r := range rs {
			v[i] = f(r)
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	out := benchResult{
		p50: pick(func(r benchResult) float64 { return r.p50 }), p99: pick(func(r benchResult) float64 { return r.p99 }),
		rps: pick(func(r benchResult) float64 { return r.rps }),
	}
	for _, r := range rs {
		out.errors += r.errors
	}
	return out
}

type benchTarget struct{ name, url string }

// bench is a stand-in, a bare proxy before it and a front door before it.
type bench struct {
	targets []benchTarget
	standIn *weirtest.StandIn
	client  *http.Client
	closers []func()
}

func (b *bench) close() {
	for _, c := range slices.Backward(b.closers) {
		c()
	}
}

func newBench(ctx context.Context) (b *bench, err error) {
	b = &bench{client: &http.Client{Transport: &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, DisableCompression: true}}}
	b.closers = append(b.closers, b.client.CloseIdleConnections)
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	standIn, err := weirtest.Start(weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.Text, Text: strings.Repeat("A steady sentence. ", 50)}})
	if err != nil {
		return b, err
	}
	b.standIn = standIn
	b.closers = append(b.closers, func() { standIn.Close() })
	proxy, err := b.bareProxy(ctx, standIn.URL())
	if err != nil {
		return b, err
	}
	door, err := b.frontDoor(ctx, standIn.URL())
	if err != nil {
		return b, err
	}
	b.targets = []benchTarget{{"direct", standIn.URL()}, {"bare proxy", proxy}, {"weir", door}}
	return b, nil
}

// bareProxy is the least that a Go gateway can be.
func (b *bench) bareProxy(ctx context.Context, upstream string) (string, error) {
	u, err := url.Parse(strings.TrimSuffix(upstream, "/v1"))
	if err != nil {
		return "", err
	}
	t := &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, DisableCompression: true}
	p := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, Transport: t, FlushInterval: -1}
	return b.serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // net/http always can
		p.ServeHTTP(w, r)
	}))
}

func (b *bench) frontDoor(ctx context.Context, upstream string) (string, error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return "", fmt.Errorf("make a place for the store: %w", err)
	}
	b.closers = append(b.closers, func() { os.RemoveAll(dir) })
	cfg := config.Default()
	cfg.DataDir, cfg.Store.Path = dir, filepath.Join(dir, "weir.db")
	if err := cfg.Store.Key.UnmarshalText([]byte("file:" + filepath.Join(dir, "key"))); err != nil {
		return "", err
	}
	cfg.Upstreams = []config.Upstream{{Name: "stand-in", Kind: config.KindCloud, BaseURL: upstream, Models: []string{"text"}}}
	p, err := open(ctx, &cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	b.closers = append(b.closers, func() { p.close() }) //nolint:errcheck // the directory goes as a whole
	door, err := p.frontDoor(ctx)
	if err != nil {
		return "", err
	}
	b.closers = append(b.closers, door.Close)
	return b.serve(ctx, door.Handler())
}

func (b *bench) serve(ctx context.Context, h http.Handler) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go srv.Serve(l) //nolint:errcheck // close ends it
	b.closers = append(b.closers, func() { srv.Close() })
	return "http://" + l.Addr().String() + "/v1", nil
}

// load sends n requests from so many workers, each as soon as the one before it
// has its whole reply.
func (b *bench) load(ctx context.Context, base string, body []byte, workers, n int) benchResult {
	var left atomic.Int64
	left.Store(int64(n))
	var mu sync.Mutex
	var times []float64
	failures := 0
	var wg sync.WaitGroup
	begin := time.Now()
	for range workers {
		wg.Go(func() {
			for left.Add(-1) >= 0 && ctx.Err() == nil {
				start := time.Now()
				err := b.one(ctx, base, body)
				took := float64(time.Since(start).Microseconds())
				mu.Lock()
				if err != nil {
					failures++
				} else {
					times = append(times, took)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(begin).Seconds()
	if len(times) == 0 {
		return benchResult{errors: failures}
	}
	slices.Sort(times)
	return benchResult{
		p50: times[len(times)/2], p99: times[min(len(times)-1, len(times)*99/100)], rps: float64(len(times)) / elapsed, errors: failures,
	}
}

var errBadReply = errors.New("reply is not whole")

func (b *bench) one(ctx context.Context, base string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	whole := bytes.Contains(got, []byte("steady sentence")) || bytes.Contains(got, []byte("data: [DONE]"))
	if resp.StatusCode != http.StatusOK || !whole {
		return errBadReply
	}
	return nil
}
