package main

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/telemetry"
	"weir/local/model"
)

type engineServeCommand struct {
	engineFlags `embed:""`

	Listen     string        `default:"127.0.0.1:8643" help:"Address of this machine to listen on."`
	Name       string        `help:"The model's id; Qwen3.6-35B-A3B unless given."`
	MaxContext int           `help:"Most tokens of a conversation; 0 for the model's limit, or 4096 with --strict."`
	Waiting    int           `default:"64" help:"How many requests may wait."`
	NoThinking bool          `help:"Answer without a thought unless a request asks for one."`
	Strict     bool          `help:"Accept and refuse exactly what Lily does: greedy, no streams, no tools."`
	Grace      time.Duration `default:"30s" help:"How long to wait for replies when shutting down."`
}

// lilyContext is the limit of the server that --strict stands in for.
const lilyContext = 4096

// Run serves until the context ends.
func (c engineServeCommand) Run(ctx context.Context, io streams, root *cli) error {
	host, err := loopbackHost(c.Listen)
	if err != nil {
		return err
	}
	log, err := telemetry.NewLogger(io.err, "info", "text")
	if err != nil {
		return err
	}
	stdlog.SetOutput(telemetry.Quiet(log))
	dir, err := c.dir(root)
	if err != nil {
		return err
	}
	o := c.options()
	if o.MaxContext = c.MaxContext; c.Strict && o.MaxContext == 0 {
		o.MaxContext = lilyContext
	}
	var m *model.Model
	loading(io, &o, func() {
		m, err = model.Open(dir, o, model.Options{Name: c.Name, Waiting: c.Waiting, NoThinking: c.NoThinking}, log)
	})
	if err != nil {
		return checkpointHint(dir, err)
	}
	handler := m.StrictHandler()
	if !c.Strict {
		handler = m.Handler([]string{"localhost", "127.0.0.1", "::1", host})
	}
	return errors.Join(c.serve(ctx, handler, log), m.Close())
}

// loopbackHost refuses addresses that other machines reach: this server asks
// nobody for a key.
func loopbackHost(listen string) (string, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return "", hinted{errors.New("--listen is not an address"), "write it as 127.0.0.1:8643"}
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.Unmap().IsLoopback()) {
		return "", hinted{errors.New("--listen is not an address of this machine alone"), "other machines reach the engine through weir serve, which has keys"}
	}
	return host, nil
}

func (c engineServeCommand) serve(ctx context.Context, handler http.Handler, log *slog.Logger) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return hinted{fmt.Errorf("listen: %w", err), "set --listen to a free address"}
	}
	fail := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "internal error", http.StatusInternalServerError)
	}
	srv := &http.Server{
		Handler: telemetry.Recover(log, handler, fail), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: stdlog.New(telemetry.Quiet(log), "", 0),
	}
	log.Info("listening", "listen", "http://"+l.Addr().String(), "component", "engine")
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Grace)
		defer cancel()
		if err := srv.Shutdown(grace); err != nil {
			return errors.Join(fmt.Errorf("shut down: %w", err), srv.Close())
		}
		return nil
	})
	return g.Wait()
}
