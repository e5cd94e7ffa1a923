package main

import (
	"context"

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
