package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// transient is an error after which it is worth to ask again.
type transient struct {
	err   error
	after time.Duration // how long the hub asked to wait, or 0
}

func (t *transient) Error() string { return t.err.Error() }
func (t *transient) Unwrap() error { return t.err }

var (
	errStalled = errors.New("no byte arrived for too long")
	// errNoRanges is the answer of a hub that sends whole files only.
	errNoRanges = errors.New("the hub does not send parts of files")
	errRedirect = errors.New("the hub redirects where it must not")
)

// fetcher asks a hub for the bytes of files.
type fetcher struct {
	client *http.Client
	base   *url.URL
	token  string
	m      Manifest
	stall  time.Duration
}

// newFetcher checks the endpoint. A token goes over TLS or not at all, except
// to this machine.
func newFetcher(h Hub, m Manifest) (*fetcher, error) {
	base, err := url.Parse(strings.TrimSuffix(orDefault(h.Endpoint, defaultEndpoint), "/"))
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") {
		return nil, errors.New("the hub's endpoint is not an http or https address")
	}
	if h.Token != "" && base.Scheme != "https" && !isLoopback(base.Hostname()) {
		return nil, errors.New("a token is not sent over plain http: use an https endpoint, or no token")
	}
	f := &fetcher{base: base, token: h.Token, m: m, stall: orDefault(h.Stall, defaultStall)}
	transport := h.Transport
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = orDefault(h.Connections, defaultConnections)
		transport = t
	}
	f.client = &http.Client{Transport: transport, CheckRedirect: f.redirect}
	return f, nil
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// redirect follows a hub to its storage: never from TLS to plain text, and
// with the token only while the host stays the same. Storage has signatures in
// its addresses, and no business with the token; that it is often a subdomain
// of the hub would make net/http send it.
func (f *fetcher) redirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return fmt.Errorf("%w: without end", errRedirect)
	}
	if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("%w: to plain http", errRedirect)
	}
	if req.URL.Host != f.base.Host || req.URL.Scheme != f.base.Scheme {
		req.Header.Del("Authorization")
	}
	req.Header.Del("Referer") // may carry a signature to the next host
	return nil
}

// get writes bytes from (inclusive) to to (exclusive) of a file to w, and
// returns how many were written. With whole set, the file is asked for without
// a range, for hubs that know none.
func (f *fetcher) get(ctx context.Context, file PinnedFile, from, to int64, whole bool, w io.Writer) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(f.stall, func() { cancel(errStalled) })
	defer watch.Stop()

	resp, err := f.ask(ctx, file, from, to, whole)
	if err != nil {
		return 0, cleanError(ctx, err)
	}
	defer resp.Body.Close()
	n, err := f.length(resp, file, from, to, whole)
	if err != nil {
		return 0, err
	}
	body := &watched{r: resp.Body, watch: watch, stall: f.stall}
	got, err := io.Copy(w, io.LimitReader(body, n))
	switch {
	case body.err != nil && body.err != io.EOF:
		return got, &transient{err: cleanError(ctx, body.err)}
	case err != nil:
		return got, err // of the disk
	case got < n:
		return got, &transient{err: fmt.Errorf("the connection ended after %d of %d bytes", got, n)}
	}
	return got, nil
}

func (f *fetcher) ask(ctx context.Context, file PinnedFile, from, to int64, whole bool) (*http.Response, error) {
	u := f.base.JoinPath(f.m.Repo, "resolve", f.m.Revision, file.Name)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity") // a range of compressed bytes is of no use
	req.Header.Set("User-Agent", "weir")
	if f.token != "" {
		req.Header.Set("Authorization", "Bearer "+f.token)
	}
	if !whole {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, to-1))
	}
	return f.client.Do(req)
}

// length judges an answer and returns how many bytes of it are wanted.
func (f *fetcher) length(resp *http.Response, file PinnedFile, from, to int64, whole bool) (int64, error) {
	switch {
	case resp.StatusCode == http.StatusOK:
		if resp.ContentLength >= 0 && resp.ContentLength != file.Size {
			return 0, fmt.Errorf("the hub has %d bytes, the pinned file has %d", resp.ContentLength, file.Size)
		}
		if !whole && (from != 0 || to != file.Size) {
			return 0, errNoRanges
		}
		return file.Size, nil
	case resp.StatusCode == http.StatusPartialContent && !whole:
		return contentRange(resp.Header.Get("Content-Range"), file.Size, from, to)
	}
	return 0, f.refusal(resp, file)
}

// contentRange checks that the hub sent what was asked for. It may send less.
func contentRange(s string, size, from, to int64) (int64, error) {
	var first, last int64
	var total string
	if n, _ := fmt.Sscanf(s, "bytes %d-%d/%s", &first, &last, &total); n != 3 || first != from || last < first || last >= to {
		return 0, fmt.Errorf("the hub sent another range than bytes %d-%d", from, to-1)
	}
	if have, err := strconv.ParseInt(total, 10, 64); total != "*" && (err != nil || have != size) {
		return 0, fmt.Errorf("the hub's file has not the %d bytes of the pinned one", size)
	}
	return last - first + 1, nil
}

// refusal turns a status into words a user can act on.
func (f *fetcher) refusal(resp *http.Response, file PinnedFile) error {
	stored := resp.Request.URL.Host != f.base.Host // an answer of the hub's storage
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden && !stored:
		if f.token == "" {
			return fmt.Errorf("the hub refuses access (HTTP %d): it wants a token", code)
		}
		return fmt.Errorf("the hub refuses access (HTTP %d): the token is not accepted for %s", code, f.m.Repo)
	case code == http.StatusNotFound:
		return fmt.Errorf("the hub has no %s in revision %s of %s (HTTP 404)", file.Name, f.m.Revision, f.m.Repo)
	case code == http.StatusRequestedRangeNotSatisfiable:
		return fmt.Errorf("the hub's file is shorter than the %d bytes of the pinned one (HTTP 416)", file.Size)
	// A storage address that expired is answered with 403; the next try gets a
	// new one.
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code == http.StatusForbidden:
		return &transient{err: fmt.Errorf("the hub answers HTTP %d", code), after: retryAfter(resp.Header.Get("Retry-After"))}
	default:
		return fmt.Errorf("the hub answers HTTP %d", code)
	}
}

// retryAfter reads the seconds form, which hubs use. What is absent, unclear
// or unreasonably long is answered with our own patience.
func retryAfter(s string) time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, maxWait)
}

// cleanError drops the address from an error: it may be signed. A failed
// connection is worth another try, a forbidden redirect is not.
func cleanError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if cause == errStalled {
			return &transient{err: cause}
		}
		return cause
	}
	var u *url.Error
	if !errors.As(err, &u) {
		return &transient{err: err}
	}
	if errors.Is(u.Err, errRedirect) {
		return u.Err
	}
	return &transient{err: u.Err}
}

// watched reads a body, putting off the stall with each step, and remembers
// the body's own error, to tell it from one of the disk.
type watched struct {
	r     io.Reader
	watch *time.Timer
	stall time.Duration
	err   error
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	w.watch.Reset(w.stall)
	w.err = err
	return n, err
}
