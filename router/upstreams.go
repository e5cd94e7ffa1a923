package router

import (
	"context"

	"weir/internal/gate"
	"weir/internal/wire"
)

// Cloud is a model server on another machine. It takes only what the gate has
// cleared.
type Cloud interface {
	Upstream
	// Chat sends a chat request. auth is the client's Authorization header, for
	// servers that are configured to get it.
	Chat(ctx context.Context, out *gate.Cleared, auth string) (*wire.Reply, error)
}

// Local is a model server on this machine. It takes only what the gate has
// decided may be seen by it.
type Local interface {
	Upstream
	Chat(ctx context.Context, out *gate.Kept, auth string) (*wire.Reply, error)
}

// Upstream is what both kinds have in common. Implementations are safe for
// concurrent use.
type Upstream interface {
	Name() string
	// Models lists the models of the server, from memory if it was asked
	// lately.
	Models(ctx context.Context, auth string) ([]Model, error)
	// Healthy says that the last calls went well enough to try another.
	Healthy() bool
	// Probe asks the server whether it is there.
	Probe(ctx context.Context) error
}

// Model is a model of an upstream.
type Model struct {
	ID      string
	OwnedBy string
	Created int64
	// Context is the context length in tokens, or 0 if unknown.
	Context int
}

// Caps is what an upstream can do, as far as the configuration says.
type Caps struct {
	NoTools, NoSchema, NoVision bool
	// Context is the context length in tokens; 0 means unknown.
	Context int
	// Models are names of models that are known without asking. The first is
	// the one for requests that name none.
	Models  []string
	Profile wire.Profile
}

// CloudUpstream is a cloud upstream and what it can do.
type CloudUpstream struct {
	Cloud
	Caps Caps
}

// LocalUpstream is a local upstream and what it can do.
type LocalUpstream struct {
	Local
	Caps Caps
}
