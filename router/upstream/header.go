package upstream

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// userAgent says who asks, and not which version on which system.
const userAgent = "weir"

// neverForwarded are request headers that a caller's allow-list cannot let
// through: those of one connection (RFC 9110 section 7.6.1), those this package
// sets, and those that say who or where the user is.
var neverForwarded = set(
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
	"Authorization", "X-Api-Key", "Api-Key", "Cookie", "Host", "Content-Length", "Accept-Encoding", "User-Agent",
	"Content-Type", "Content-Encoding",
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via",
	"Origin", "Referer",
)

// kept are the reply headers a client may need. All others are dropped: cookies,
// headers of one connection, and names with which a server could pose as Weir.
var kept = set(
	"Content-Type", "Retry-After", "Retry-After-Ms", "X-Should-Retry",
	"X-Request-Id", "Request-Id", "Cache-Control", "Date",
)

var keptPrefixes = []string{"Openai-", "X-Ratelimit-", "Anthropic-Ratelimit-"}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// fixedHeader is what every request to a server carries.
func fixedHeader(o Options) http.Header {
	h := http.Header{
		"Accept-Encoding": {"identity"},
		"User-Agent":      {userAgent},
	}
	if !o.Key.Empty() {
		h.Set("Authorization", "Bearer "+o.Key.Reveal())
	}
	for name, value := range o.Headers {
		h.Set(name, value.Reveal())
	}
	return h
}

// requestHeader is the header of one request: the client's, as far as the
// caller and neverForwarded let it through, under the server's own.
func (s *Server) requestHeader(r Request) http.Header {
	h := make(http.Header, len(r.Header)+len(s.header)+2)
	for name, values := range r.Header {
		if name = http.CanonicalHeaderKey(name); !neverForwarded[name] {
			h[name] = values
		}
	}
	if len(r.Body) > 0 {
		h.Set("Content-Type", "application/json")
	}
	if s.opts.PassClientKey && r.ClientAuth != "" {
		h.Set("Authorization", r.ClientAuth)
	}
	for name, values := range s.header {
		h[name] = values
	}
	return h
}

func replyHeader(in http.Header) http.Header {
	out := make(http.Header, len(kept))
	for name, values := range in {
		if kept[name] || hasPrefix(name, keptPrefixes) {
			out[name] = values
		}
	}
	return out
}

func hasPrefix(name string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// validHeaders finds a key pasted with its line break before a request does.
func validHeaders(o Options) bool {
	if !httpguts.ValidHeaderFieldValue(o.Key.Reveal()) {
		return false
	}
	for name, value := range o.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value.Reveal()) {
			return false
		}
	}
	return true
}
