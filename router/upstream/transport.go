package upstream

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	"weir/local"
)

// This file holds the one transport through which content leaves. What else can
// dial is listed, with its reason, by the repository's tests.

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

func newTransport(o Options, dial dialFunc) *http.Transport {
	return &http.Transport{
		Proxy:       proxy(o.Kind),
		DialContext: dial,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
		},
		TLSHandshakeTimeout: o.DialTimeout,
		// A dialer of our own turns HTTP/2 off unless it is asked for.
		ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{
			// One dead connection carries many requests: find it out early.
			SendPingTimeout: 15 * time.Second,
			PingTimeout:     15 * time.Second,
		},
		MaxIdleConns:        o.MaxIdle,
		MaxIdleConnsPerHost: o.MaxIdle,
		IdleConnTimeout:     90 * time.Second,
		// Compression is asked for by nobody (see requestHeader) and undone by
		// this package when it comes all the same.
		DisableCompression:     true,
		MaxResponseHeaderBytes: 256 << 10,
		// Requests are whole conversations: fewer, larger writes.
		WriteBufferSize: 32 << 10,
		ReadBufferSize:  16 << 10,
	}
}

// proxy honours HTTPS_PROXY and its kin for a cloud server only. A proxy is
// another machine, and local traffic stays on this one.
func proxy(k Kind) func(*http.Request) (*url.URL, error) {
	if k == Local {
		return nil
	}
	return http.ProxyFromEnvironment
}

func cloudDial(o Options) dialFunc {
	return (&net.Dialer{Timeout: o.DialTimeout, KeepAlive: 30 * time.Second}).DialContext
}

// socketDial ignores the address: the URL of a request to a socket is made up.
func socketDial(d *local.Dialer, path string) dialFunc {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialSocket(ctx, path)
	}
}
