package local

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
)

// CheckURL reports why base cannot be the address of a local server, or nil.
// Besides http and https it accepts a Unix socket, see [Socket]. A host must be
// localhost, a loopback address, or one of allowHosts; what a name in that list
// resolves to is checked when it is dialled.
func CheckURL(base string, allowHosts []string) error {
	if strings.HasPrefix(base, "unix:") {
		_, _, err := Socket(base)
		return err
	}
	u, err := url.Parse(base)
	if err != nil {
		// The parser's error quotes the URL, which may hold a password.
		return errors.New("not a valid URL")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the scheme must be http, https or unix")
	case u.User != nil:
		return errors.New("a URL must not hold a user name or password")
	case u.Hostname() == "":
		return errors.New("the URL names no host")
	}
	return checkHost(u.Hostname(), allowHosts)
}

// CheckAllowHost reports why host cannot stand in a list of trusted hosts, or
// nil.
func CheckAllowHost(host string) error {
	if a, err := netip.ParseAddr(canonical(host)); err == nil {
		if !permitted(a, true) {
			return fmt.Errorf("%s: %w", host, ErrNotLocal)
		}
		return nil
	}
	if host == "" || strings.ContainsAny(host, "*/:@ ") {
		return errors.New("must be one host name or address, without port, scheme or wildcard")
	}
	return nil
}

func checkHost(host string, allowHosts []string) error {
	trusted, name := listed(allowHosts, host), canonical(host)
	if a, err := netip.ParseAddr(name); err == nil {
		if !permitted(a, trusted) {
			return fmt.Errorf("%s: %w", host, ErrNotLocal)
		}
		return nil
	}
	// RFC 6761 section 6.3 keeps these names for loopback.
	if name == "localhost" || strings.HasSuffix(name, ".localhost") || trusted {
		return nil
	}
	return fmt.Errorf("%s: %w", host, ErrNotLocal)
}

// Socket splits the address of a server behind a Unix socket, written as in
// unix:/run/model.sock or, with the path under which the API lies,
// unix:/run/model.sock:/v1, which is the default path.
func Socket(base string) (path, prefix string, err error) {
	rest, ok := strings.CutPrefix(base, "unix:")
	if !ok {
		return "", "", errors.New("not the address of a Unix socket")
	}
	rest = strings.TrimPrefix(rest, "//")
	path, prefix, ok = strings.Cut(rest, ":")
	if !ok {
		prefix = "/v1"
	}
	switch {
	case !filepath.IsAbs(path):
		return "", "", errors.New("the path of a Unix socket must be absolute, as in unix:/run/model.sock")
	case prefix != "" && !strings.HasPrefix(prefix, "/"):
		return "", "", errors.New("the path after the socket must begin with a slash, as in unix:/run/model.sock:/v1")
	}
	return path, strings.TrimSuffix(prefix, "/"), nil
}
