package main

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/config"
	"weir/internal/telemetry"
)

type serveCommand struct {
	Grace time.Duration `default:"30s" help:"How long to wait for streams when shutting down."`
}

// Run serves until the context ends, then finishes what is under way.
func (c serveCommand) Run(ctx context.Context, io streams, root *cli) error {
	cfg, err := loadConfig(root.Config)
	if err != nil {
		return err
	}
	log, err := telemetry.NewLogger(io.err, cfg.Log.Level, cfg.Log.Format)
	if err != nil {
		return err
	}
	stdlog.SetOutput(telemetry.Quiet(log))
	p, err := open(ctx, cfg, log)
	if err != nil {
		return err
	}
	err = c.serve(ctx, p, log)
	return errors.Join(err, p.close())
}

func (c serveCommand) serve(ctx context.Context, p *parts, log *slog.Logger) error {
	if err := p.trustLog(ctx); err != nil {
		return err
	}
	door, err := p.frontDoor(ctx)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.cfg.Listen)
	if err != nil {
		return hinted{fmt.Errorf("listen: %w", err), "is another Weir running? set listen to a free address"}
	}
	srv := &http.Server{
		Handler: door.Handler(), ReadHeaderTimeout: p.cfg.Limits.HeaderTimeout, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: stdlog.New(telemetry.Quiet(log), "", 0),
	}
	log.Info("listening", "listen", "http://"+l.Addr().String(), "file", p.cfg.File)
	if len(p.routes.Clouds)+len(p.routes.Locals) == 0 {
		log.Warn("no upstream is configured; weir init writes a configuration to start from")
	}
	defer door.Close() // after the HTTP server has finished its requests
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	g.Go(func() error { p.purge(ctx); return nil })
	g.Go(func() error {
		<-ctx.Done()
		log.Info("shutting down: open streams are finished; interrupt again to end now", "wait", c.Grace)
		door.Drain()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Grace)
		defer cancel()
		if err := srv.Shutdown(grace); err != nil {
			return errors.Join(fmt.Errorf("shut down: %w", err), srv.Close())
		}
		return nil
	})
	return g.Wait()
}

// trustLog refuses to go on from a log that was changed from outside: what comes
// after it would look as if it were whole.
func (p *parts) trustLog(ctx context.Context) error {
	rep, err := p.audit.Verify(ctx)
	if err != nil {
		return fmt.Errorf("verify the decision log: %w", err)
	}
	if !rep.OK() {
		return hinted{
			fmt.Errorf("the decision log was changed from outside: %d faults", rep.Count),
			"weir audit verify shows where; keep " + p.cfg.Store.Path + " as evidence by moving it away, and a new store is begun",
		}
	}
	return nil
}

// purge removes tasks that were idle for longer than the retention, now and
// every quarter of it.
func (p *parts) purge(ctx context.Context) {
	tick := time.NewTicker(max(p.cfg.Store.Retention/4, time.Minute))
	defer tick.Stop()
	for {
		n, err := p.tasks.Purge(ctx, 0)
		if err != nil && ctx.Err() == nil {
			p.log.Error("purge tasks", "error", err)
		}
		if n > 0 {
			p.log.Info("purged idle tasks", "count", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// loadConfig reads the configuration file that the command line names, or the
// first that is found, and the environment.
func loadConfig(path string) (*config.Config, error) {
	src, err := config.FromProcess(path)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(src)
	if err == nil {
		return cfg, nil
	}
	var b strings.Builder
	b.WriteString("the configuration has faults\n")
	problems := config.Problems(err)
	for _, p := range problems {
		b.WriteString("  " + p.Error() + "\n")
		if p.Excerpt != "" {
			b.WriteString("  " + strings.ReplaceAll(p.Excerpt, "\n", "\n  ") + "\n")
		}
		if p.Hint != "" {
			b.WriteString("    " + p.Hint + "\n")
		}
	}
	if len(problems) == 0 {
		return nil, hinted{err, "check --config and WEIR_CONFIG; weir init writes a configuration to start from"}
	}
	return nil, hinted{errors.New(strings.TrimRight(b.String(), "\n")), "docs/configuration.md and examples/weir.yaml have every key"}
}

// ensureDir makes a directory that only the user can enter.
func ensureDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	return nil
}
