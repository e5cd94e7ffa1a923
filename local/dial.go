// Package local holds what must never leave the machine.
//
// Begin at [Dialer]: it opens the connections of a local model server and
// refuses every address that is not on this machine, unless the configuration
// names a host that the user trusts. [CheckURL] says the same of a configured
// URL before anything is dialled, so that a mistake shows at start.
//
// It promises that the address checked is the address connected to: names are
// resolved here, each address is judged after resolving, and the kernel is
// handed the address and never the name. A DNS answer that changes between
// check and use (rebinding) therefore gains nothing. A host that the user named
// may be on the private network (RFC 1918, RFC 4193) and nowhere else.
//
// HTTP, retries and timeouts of a reply are left to weir/router/upstream.
package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrNotLocal reports an address that a local connection may not go to.
var ErrNotLocal = errors.New("address is not on this machine or a trusted private host")

// DialTimeout bounds all attempts of one [Dialer.DialContext] when the dialer
// sets no other limit. A machine that does not answer within it is down: these
// are hosts in the same house.
const DialTimeout = 10 * time.Second

// Resolver turns a host name into addresses. [net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Dialer opens connections that stay on this machine. The zero value reaches
// loopback only. It is safe for concurrent use as long as its fields are not
// changed.
type Dialer struct {
	// AllowHosts are host names or addresses, in any case and without port,
	// that may also have a private address. They are trusted with clear text.
	AllowHosts []string
	// Resolver is [net.DefaultResolver] if nil.
	Resolver Resolver
	// Timeout bounds one call of DialContext, all its attempts together; 0 is
	// [DialTimeout].
	Timeout time.Duration
}

// DialContext connects to address, a host and a port, over TCP. An address that
// is not permitted gives an error wrapping [ErrNotLocal], and no packet is sent
// to it.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, fmt.Errorf("dial network %q: %w", network, ErrNotLocal)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial local server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	trusted := listed(d.AllowHosts, host)
	addrs, err := d.resolve(ctx, network, host)
	if err != nil {
		return nil, fmt.Errorf("resolve local server: %w", err)
	}
	addrs = slices.DeleteFunc(addrs, func(a netip.Addr) bool { return !permitted(a, trusted) })
	if len(addrs) == 0 {
		return nil, fmt.Errorf("dial %s: %w", host, ErrNotLocal)
	}
	return d.dialAny(ctx, network, addrs, port, trusted)
}

// DialSocket connects to the Unix socket at path.
func (d *Dialer) DialSocket(ctx context.Context, path string) (net.Conn, error) {
	nd := net.Dialer{Timeout: d.timeout()}
	conn, err := nd.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("dial local socket: %w", err)
	}
	return conn, nil
}

func (d *Dialer) timeout() time.Duration {
	if d.Timeout > 0 {
		return d.Timeout
	}
	return DialTimeout
}

func (d *Dialer) resolve(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(strings.TrimSuffix(host, ".")); err == nil {
		return []netip.Addr{a}, nil
	}
	var r Resolver = net.DefaultResolver
	if d.Resolver != nil {
		r = d.Resolver
	}
	return r.LookupNetIP(ctx, "ip"+strings.TrimPrefix(network, "tcp"), host)
}

// dialAny tries the addresses in turn, each with its share of the time left.
func (d *Dialer) dialAny(ctx context.Context, network string, addrs []netip.Addr, port string, trusted bool) (net.Conn, error) {
	nd := net.Dialer{
		Timeout: d.timeout() / time.Duration(len(addrs)),
		// The last word is had where the kernel's address is known, whatever
		// the code above may one day do with names.
		Control: func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || !permitted(ap.Addr(), trusted) {
				return ErrNotLocal
			}
			return nil
		},
	}
	var errs []error
	for _, a := range addrs {
		conn, err := nd.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("dial local server: %w", errors.Join(errs...))
}

// permitted says whether a connection to a may be opened. Only addresses that
// cannot be routed off the machine, or for a trusted host off the private
// network, are. Everything that is not known to be so is not: link-local (the
// metadata address of cloud machines is one), carrier-grade NAT, addresses that
// embed another as NAT64 does, and the unspecified address.
func permitted(a netip.Addr, trusted bool) bool {
	a = a.Unmap()
	if a.IsLoopback() {
		return true
	}
	return trusted && a.IsPrivate()
}

func listed(hosts []string, host string) bool {
	host = canonical(host)
	return slices.ContainsFunc(hosts, func(h string) bool { return canonical(h) == host })
}

// canonical folds what may differ between two spellings of one host.
func canonical(host string) string {
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return strings.ToLower(host)
}
