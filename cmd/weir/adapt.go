package main

import (
	"context"
	"time"

	"weir/internal/telemetry"
	"weir/pii"
	"weir/router"
	"weir/router/upstream"
)

// cloud and local fit the upstreams to what the router wants of them.
type (
	cloud struct{ upstream.CloudServer }
	local struct{ upstream.LocalServer }
)

// Models lists the server's models.
func (c cloud) Models(ctx context.Context, auth string) ([]router.Model, error) {
	return models(ctx, c.Server, auth)
}

// Models lists the server's models.
func (l local) Models(ctx context.Context, auth string) ([]router.Model, error) {
	return models(ctx, l.Server, auth)
}

func models(ctx context.Context, s *upstream.Server, auth string) ([]router.Model, error) {
	ms, err := s.Models(ctx, auth)
	if err != nil {
		return nil, err
	}
	out := make([]router.Model, len(ms))
	for i, m := range ms {
		out[i] = router.Model{ID: m.ID, OwnedBy: m.OwnedBy, Created: m.Created, Context: m.ContextLength}
	}
	return out, nil
}

// doorMetrics fits the metrics to what the router tells.
type doorMetrics struct{ m *telemetry.Metrics }

func (d doorMetrics) Request(mode, placement string, status int, took time.Duration) {
	d.m.Request(mode, placement, status, took)
}

func (d doorMetrics) Examined(bytes int, took time.Duration, failed bool) {
	d.m.Examined(bytes, took, failed)
}

func (d doorMetrics) Finding(label, action string, n int) { d.m.Findings(label, action, n) }

func (d doorMetrics) Restored(byLabel map[pii.Label]int, unknown int) {
	for l, n := range byLabel {
		d.m.Restored(string(l), n)
	}
	d.m.PlaceholderUnknown(unknown)
}
func (d doorMetrics) Asked()        { d.m.Asked() }
func (d doorMetrics) StreamBroken() { d.m.StreamBroken() }
func (d doorMetrics) Panic()        { d.m.Panic() }
