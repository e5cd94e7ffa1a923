package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/internal/config"
	"weir/internal/weirtest"
	"weir/router"
)

type demoCommand struct {
	Plain bool `help:"No colours."`
}

// Run shows the main job on real input: one front door, as serve runs it, between
// a client and two stand-ins.
func (c demoCommand) Run(ctx context.Context, io streams) error {
	d, err := newDemo(ctx, io, !c.Plain && isTerminal(io.out))
	if err != nil {
		return err
	}
	defer d.close()
	d.introduce()
	for i, scene := range script() {
		if err := d.play(ctx, i+1, scene); err != nil {
			return err
		}
	}
	return d.converse(ctx)
}

// demo is a front door between stand-ins, and what the client said to it.
type demo struct {
	io           streams
	paint        painter
	dir          string
	parts        *parts
	cloud, local *weirtest.StandIn
	door         *router.Server
	server       *http.Server
	base         string
	history      []message
}

func newDemo(ctx context.Context, io streams, colours bool) (d *demo, err error) {
	d = &demo{io: io, paint: painter(colours)}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.dir, err = os.MkdirTemp("", "weir-demo-"); err != nil {
		return d, fmt.Errorf("make a place for the store: %w", err)
	}
	if d.cloud, err = weirtest.Start(weirtest.Options{Kind: "cloud"}); err != nil {
		return d, err
	}
	if d.local, err = weirtest.Start(weirtest.Options{Kind: "local"}); err != nil {
		return d, err
	}
	if d.parts, err = open(ctx, d.config(), slog.New(slog.DiscardHandler)); err != nil {
		return d, err
	}
	if d.door, err = d.parts.frontDoor(ctx); err != nil {
		return d, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return d, fmt.Errorf("listen: %w", err)
	}
	d.base = "http://" + l.Addr().String() + "/v1"
	d.server = &http.Server{Handler: d.door.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go d.server.Serve(l) //nolint:errcheck // close ends it
	return d, nil
}

// config is what a user would write, with the stand-ins as upstreams.
func (d *demo) config() *config.Config {
	cfg := config.Default()
	cfg.DataDir = d.dir
	cfg.Store.Path = filepath.Join(d.dir, "weir.db")
	if err := cfg.Store.Key.UnmarshalText([]byte("file:" + filepath.Join(d.dir, "key"))); err != nil {
		panic(err) // the reference above is well formed
	}
	cfg.Upstreams = []config.Upstream{
		{Name: "cloud-stand-in", Kind: config.KindCloud, BaseURL: d.cloud.URL(), Models: []string{"assistant"}, Capabilities: []string{"tools", "schema", "vision"}},
		{Name: "local-stand-in", Kind: config.KindLocal, BaseURL: d.local.URL(), Models: []string{"assistant"}, Capabilities: []string{"tools"}},
	}
	return &cfg
}

func (d *demo) close() {
	if d.server != nil {
		d.server.Close()
	}
	if d.door != nil {
		d.door.Close()
	}
	if d.parts != nil {
		d.parts.close() //nolint:errcheck // the directory goes as a whole
	}
	for _, s := range []*weirtest.StandIn{d.cloud, d.local} {
		if s != nil {
			s.Close()
		}
	}
	if d.dir != "" {
		os.RemoveAll(d.dir)
	}
}

func (d *demo) introduce() {
	d.say(d.paint.bold("Weir demo") + ": one front door at " + d.base + ", as `weir serve` runs it.\n" +
		"Behind it stand two " + d.paint.bold("stand-ins") + " on loopback, servers without a model:\n" +
		"  cloud  " + d.cloud.URL() + "  (in place of a vendor)\n" +
		"  local  " + d.local.URL() + "  (in place of a model on this machine)\n" +
		"Client, classifier, policy, vault, proxy and decision log are the real ones.")
}

func (d *demo) say(text string) { fmt.Fprintln(d.io.out, text) }

// converse lets the user type lines of their own.
func (d *demo) converse(ctx context.Context) error {
	d.say("\n" + d.paint.bold("Your turn.") + " Type a line to send it (an empty line ends the demo).")
	lines := bufio.NewScanner(d.io.in)
	lines.Buffer(make([]byte, 0, 64<<10), 1<<20)
	for n := len(script()) + 1; ; n++ {
		fmt.Fprint(d.io.out, "> ")
		if !lines.Scan() || strings.TrimSpace(lines.Text()) == "" {
			fmt.Fprintln(d.io.out)
			return lines.Err()
		}
		err := d.play(ctx, n, scene{title: "your line", model: "cloud/assistant", text: lines.Text(), ask: true, lines: lines})
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// isTerminal says that w is a screen.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// painter puts colours on text, or none if it is false.
type painter bool

func (p painter) code(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p painter) bold(s string) string   { return p.code("1", s) }
func (p painter) dim(s string) string    { return p.code("2", s) }
func (p painter) red(s string) string    { return p.code("31", s) }
func (p painter) green(s string) string  { return p.code("32", s) }
func (p painter) yellow(s string) string { return p.code("33", s) }
