package local_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"

	"weir/local"
)

// fixed answers every name with the same addresses.
type fixed []string

func (f fixed) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, s := range f {
		out = append(out, netip.MustParseAddr(s))
	}
	return out, nil
}

// rebinding answers loopback first and a public address ever after, as a
// hostile name server does once a check has passed.
type rebinding struct{ calls atomic.Int32 }

func (r *rebinding) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	if r.calls.Add(1) == 1 {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestDialRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		host  string
		addrs fixed
		allow []string
	}{
		{"public address", "203.0.113.7", nil, nil},
		{"public address that is listed", "203.0.113.7", nil, []string{"203.0.113.7"}},
		{"name of a public address", "model.example", fixed{"203.0.113.7"}, nil},
		{"listed name of a public address", "model.example", fixed{"203.0.113.7"}, []string{"model.example"}},
		{"private address that is not listed", "192.168.7.9", nil, nil},
		{"name of a private address that is not listed", "nas.example", fixed{"10.0.0.9"}, []string{"other.example"}},
		{"localhost answered with a public address", "localhost", fixed{"203.0.113.7"}, nil},
		{"v4 in v6", "model.example", fixed{"::ffff:203.0.113.7"}, []string{"model.example"}},
		{"NAT64 of a private address", "model.example", fixed{"64:ff9b::a00:9"}, []string{"model.example"}},
		{"cloud metadata", "model.example", fixed{"169.254.169.254"}, []string{"model.example"}},
		{"carrier-grade NAT", "model.example", fixed{"100.64.0.1"}, []string{"model.example"}},
		{"unspecified, which Linux takes for loopback", "0.0.0.0", nil, []string{"0.0.0.0"}},
		{"unspecified v6", "::", nil, []string{"::"}},
		{"multicast", "224.0.0.1", nil, []string{"224.0.0.1"}},
		{"global v6", "model.example", fixed{"2001:db8::1"}, []string{"model.example"}},
		{"v4-compatible loopback, which is not loopback", "model.example", fixed{"::127.0.0.1"}, nil},
		{"suffix of a listed name", "evil-nas.example", fixed{"10.0.0.9"}, []string{"nas.example"}},
		{"no address at all", "model.example", fixed{}, []string{"model.example"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := local.Dialer{AllowHosts: tt.allow, Resolver: tt.addrs}
			conn, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(tt.host, "9"))
			if conn != nil {
				conn.Close()
			}
			if !errors.Is(err, local.ErrNotLocal) {
				t.Errorf("DialContext(%s) = %v, want ErrNotLocal", tt.host, err)
			}
		})
	}
}

func TestDialReaches(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(listen(t, "tcp4", "127.0.0.1:0").Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		host  string
		addrs fixed
	}{
		{"loopback", "127.0.0.1", nil},
		{"v4 in v6 loopback", "::ffff:127.0.0.1", nil},
		{"a name of this machine", "model.example", fixed{"127.0.0.1"}},
		{"the public address of two is passed over", "model.example", fixed{"203.0.113.7", "127.0.0.1"}},
		{"an address that refuses is passed over", "localhost", fixed{"::1", "127.0.0.1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := local.Dialer{Resolver: tt.addrs}
			conn, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(tt.host, port))
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		})
	}
}

// A listed host may have a private address. There is none to connect to in a
// test, so the context is ended first: the dial must come as far as that.
func TestDialTrustedPrivate(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"10.1.2.3", "172.16.0.1", "192.168.1.5", "fd00::1", "::ffff:10.1.2.3"} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d := local.Dialer{AllowHosts: []string{"NAS.example."}, Resolver: fixed{addr}}
		_, err := d.DialContext(ctx, "tcp", "nas.example:9")
		if err == nil || errors.Is(err, local.ErrNotLocal) {
			t.Errorf("%s: error %v, want one of the network", addr, err)
		}
	}
}

func TestDialRebinding(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(listen(t, "tcp4", "127.0.0.1:0").Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d := local.Dialer{Resolver: &rebinding{}}
	conn, err := d.DialContext(t.Context(), "tcp", "model.example:"+port)
	if err != nil {
		t.Fatalf("first dial: %v", err)
	}
	defer conn.Close()
	if got := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(); !got.IsLoopback() {
		t.Errorf("connected to %v", got)
	}
	if _, err := d.DialContext(t.Context(), "tcp", "model.example:"+port); !errors.Is(err, local.ErrNotLocal) {
		t.Errorf("second dial: %v, want ErrNotLocal", err)
	}
}

func TestDialNetworks(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"udp", "unix", "ip4:icmp", ""} {
		if _, err := (&local.Dialer{}).DialContext(t.Context(), network, "127.0.0.1:9"); !errors.Is(err, local.ErrNotLocal) {
			t.Errorf("network %q: %v, want ErrNotLocal", network, err)
		}
	}
}

func TestDialSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.sock")
	listen(t, "unix", path)
	conn, err := (&local.Dialer{}).DialSocket(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := (&local.Dialer{}).DialSocket(t.Context(), path+".gone"); err == nil {
		t.Error("a socket that does not exist was dialled")
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	tests := []struct {
		base  string
		allow []string
		ok    bool
	}{
		{"http://127.0.0.1:11434/v1", nil, true},
		{"http://localhost:11434/v1", nil, true},
		{"http://model.localhost/v1", nil, true},
		{"https://[::1]:8443/v1", nil, true},
		{"http://127.9.9.9/v1", nil, true},
		{"unix:/run/model.sock", nil, true},
		{"unix:/run/model.sock:/v1", nil, true},
		{"http://ollama:11434/v1", []string{"ollama"}, true},
		{"http://OLLAMA.:11434/v1", []string{"ollama"}, true},
		{"http://192.168.1.5/v1", []string{"192.168.1.5"}, true},
		{"http://[fd00::5]/v1", []string{"fd00::5"}, true},
		{"http://ollama:11434/v1", nil, false},
		{"http://192.168.1.5/v1", nil, false},
		{"http://203.0.113.7/v1", []string{"203.0.113.7"}, false},
		{"http://localhost.example/v1", nil, false},
		{"http://notlocalhost/v1", nil, false},
		{"http://user:secret@127.0.0.1/v1", nil, false},
		{"ftp://127.0.0.1/", nil, false},
		{"127.0.0.1:11434", nil, false},
		{"http:///v1", nil, false},
		{"", nil, false},
		{"unix:model.sock", nil, false},
		{"unix:", nil, false},
		{"unix:/run/model.sock:v1", nil, false},
		{"http://127.0.0.1:port/v1", nil, false},
	}
	for _, tt := range tests {
		if err := local.CheckURL(tt.base, tt.allow); (err == nil) != tt.ok {
			t.Errorf("CheckURL(%q, %q) = %v, want ok %v", tt.base, tt.allow, err, tt.ok)
		}
	}
}

func TestSocket(t *testing.T) {
	t.Parallel()
	tests := []struct{ base, path, prefix string }{
		{"unix:/run/m.sock", "/run/m.sock", "/v1"},
		{"unix:///run/m.sock", "/run/m.sock", "/v1"},
		{"unix:/run/m.sock:/api/v1/", "/run/m.sock", "/api/v1"},
		{"unix:/run/m.sock:", "/run/m.sock", ""},
	}
	for _, tt := range tests {
		path, prefix, err := local.Socket(tt.base)
		if err != nil || path != tt.path || prefix != tt.prefix {
			t.Errorf("Socket(%q) = %q, %q, %v, want %q, %q", tt.base, path, prefix, err, tt.path, tt.prefix)
		}
	}
}

func TestCheckAllowHost(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"ollama": true, "nas.example": true, "10.0.0.9": true, "fd00::9": true, "[fd00::9]": true,
		"": false, "*": false, "*.example": false, "nas:80": false, "http://nas": false, "10.0.0.0/8": false,
		"203.0.113.7": false, "0.0.0.0": false,
	}
	for host, ok := range tests {
		if err := local.CheckAllowHost(host); (err == nil) != ok {
			t.Errorf("CheckAllowHost(%q) = %v, want ok %v", host, err, ok)
		}
	}
}

// Whatever is asked for, a connection ends on this machine.
func FuzzDial(f *testing.F) {
	f.Add("203.0.113.7:1", "203.0.113.7")
	f.Add("[::ffff:203.0.113.7]:1", "::ffff:203.0.113.7")
	f.Add("0.0.0.0:1", "0.0.0.0")
	f.Add("[fe80::1%25lo]:1", "fe80::1")
	f.Fuzz(func(t *testing.T, address, answer string) {
		a, err := netip.ParseAddr(answer)
		if err != nil {
			t.Skip()
		}
		d := local.Dialer{Resolver: fixed{a.String()}}
		conn, err := d.DialContext(t.Context(), "tcp", address)
		if err != nil {
			return
		}
		defer conn.Close()
		if got := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(); !got.IsLoopback() {
			t.Errorf("connected to %v", got)
		}
	})
}
