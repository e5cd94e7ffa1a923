package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"weir/engine/checkpoint"
	"weir/internal/config"
)

type enginePullCommand struct {
	Dir         string `arg:"" optional:"" type:"path" help:"Folder to fetch into; one in the data directory unless given."`
	Connections int    `default:"8" help:"Parts to fetch at a time."`
}

// Run fetches the pinned revision. HF_ENDPOINT and HF_TOKEN are honoured.
func (c enginePullCommand) Run(ctx context.Context, io streams, root *cli) error {
	dir := c.Dir
	if dir == "" {
		var err error
		if dir, err = modelDir(root); err != nil {
			return err
		}
	}
	hub := config.HubFromProcess()
	return c.pull(ctx, io, dir, checkpoint.Pinned(), checkpoint.Hub{Endpoint: hub.Endpoint, Token: hub.Token()})
}

func (c enginePullCommand) pull(ctx context.Context, io streams, dir string, m checkpoint.Manifest, hub checkpoint.Hub) error {
	bar := progress{w: io.err, start: time.Now()}
	hub.Connections, hub.Progress = c.Connections, bar.files
	err := checkpoint.Pull(ctx, dir, m, hub)
	bar.end()
	if err != nil {
		return hinted{fmt.Errorf("fetch %s: %w", m.Repo, err), "what has arrived is kept: the same command goes on from there"}
	}
	_, err = fmt.Fprintf(io.out, "%s at revision %.12s is whole in %s\n", m.Repo, m.Revision, dir)
	return err
}

// progress shows on one line how far something is.
type progress struct {
	w     io.Writer
	start time.Time
	last  time.Time
	shown bool
}

func (p *progress) files(at checkpoint.Progress) { p.show(at.Done, at.Total) }

// show prints four times a second.
func (p *progress) show(done, total int64) {
	now := time.Now()
	if total <= 0 || now.Sub(p.last) < 250*time.Millisecond && done < total {
		return
	}
	p.last, p.shown = now, true
	rate := float64(done) / max(now.Sub(p.start).Seconds(), 1e-3) / 1e6
	fmt.Fprintf(p.w, "\r%5.1f%%  %.2f of %.2f GB  %.0f MB/s ", 100*float64(done)/float64(total), float64(done)/1e9, float64(total)/1e9, rate)
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprintln(p.w)
	}
}
