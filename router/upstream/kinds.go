package upstream

import (
	"context"
	"net/http"

	"weir/internal/gate"
	"weir/internal/wire"
)

const chatPath = "/chat/completions"

// CloudServer is a server on another machine. It takes only what the gate has
// cleared for it.
type CloudServer struct{ *Server }

// LocalServer is a server on this machine. It takes only what the gate lets a
// model on this machine see.
type LocalServer struct{ *Server }

// Chat sends a chat request. auth is used only by a server that passes the
// client's key on.
func (c CloudServer) Chat(ctx context.Context, out *gate.Cleared, auth string) (*wire.Reply, error) {
	body, err := out.Bytes(c.Name())
	if err != nil {
		return nil, err
	}
	return c.send(ctx, body, out.Header(), auth)
}

// Chat sends a chat request.
func (l LocalServer) Chat(ctx context.Context, out *gate.Kept, auth string) (*wire.Reply, error) {
	body, err := out.Bytes(l.Name())
	if err != nil {
		return nil, err
	}
	return l.send(ctx, body, out.Header(), auth)
}

func (s *Server) send(ctx context.Context, body []byte, header http.Header, auth string) (*wire.Reply, error) {
	r, err := s.Do(ctx, Request{Path: chatPath, Body: body, Header: header, ClientAuth: auth})
	if err != nil {
		return nil, err
	}
	return &wire.Reply{Status: r.Status, Header: r.Header, Body: r.Body}, nil
}
