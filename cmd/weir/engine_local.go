package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"weir/engine"
	"weir/internal/config"
	"weir/internal/gate"
	"weir/internal/wire"
	"weir/local/model"
	"weir/router"
)

// engineLocal fits a model within Weir to what the router wants of a local
// upstream.
type engineLocal struct {
	name  string
	model *model.Model
}

// openEngineLocal loads the model of an upstream that has one. panicked is
// called for each reply that a fault ended.
func openEngineLocal(u config.Upstream, log *slog.Logger, panicked func()) (engineLocal, error) {
	o := model.Options{Panicked: panicked}
	for _, name := range u.Models {
		if !strings.Contains(name, "*") {
			o.Name = name
			break
		}
	}
	m, err := model.Open(u.Engine.Checkpoint, engine.Options{
		Backend: u.Engine.Backend, Threads: u.Engine.Threads, CacheBytes: int64(u.Engine.Cache), MaxContext: u.ContextLength, AnySize: u.Engine.AnySize,
	}, o, log)
	if err != nil {
		return engineLocal{}, checkpointHint(u.Engine.Checkpoint, fmt.Errorf("load the model of upstream %s: %w", u.Name, err))
	}
	return engineLocal{u.Name, m}, nil
}

// Name is the upstream's name.
func (e engineLocal) Name() string { return e.name }

// Models lists the one model.
func (e engineLocal) Models(context.Context, string) ([]router.Model, error) {
	return []router.Model{{ID: e.model.Name(), OwnedBy: "weir", Created: e.model.Created(), Context: e.model.Context()}}, nil
}

// Healthy is false while a GPU that was lost is opened again.
func (e engineLocal) Healthy() bool { return e.model.Health() == nil }

// Probe tells why the model cannot compute now.
func (e engineLocal) Probe(context.Context) error { return e.model.Health() }

// Chat answers as a server would: what is wrong with a request is a reply too,
// so that the router may move it.
func (e engineLocal) Chat(ctx context.Context, out *gate.Kept, auth string) (*wire.Reply, error) {
	body, err := out.Bytes(e.name)
	if err != nil {
		return nil, err
	}
	reply, err := e.model.Chat(ctx, auth, body)
	if we, ok := errors.AsType[*wire.Error](err); ok {
		return model.ErrorReply(we), nil
	}
	return reply, err
}

// caps is what the model can do, whatever the configuration says of servers.
func (e engineLocal) caps() router.Caps {
	return router.Caps{NoVision: true, Context: e.model.Context(), Models: []string{e.model.Name()}}
}
