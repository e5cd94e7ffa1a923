package gate

import (
	"fmt"
	"net/http"

	"weir/pii/mask"
)

// outbound is a request body on its way, with what its reply needs.
type outbound struct {
	body     []byte
	header   http.Header
	upstream string
	book     *mask.Book
	made     bool
}

// Upstream names the upstream that the request was decided for.
func (o *outbound) Upstream() string { return o.upstream }

// Header returns the headers that go along.
func (o *outbound) Header() http.Header { return o.header }

// Size is the length of the body in bytes.
func (o *outbound) Size() int { return len(o.body) }

// Cleared is a request that may leave this machine, for one named cloud
// upstream: examined, decided, recorded, and masked as decided. Only
// [Gate.Clear] makes one.
type Cleared struct{ outbound }

// Kept is a request with its private values in it, for one named upstream on
// this machine. Only [Gate.Keep] makes one.
type Kept struct{ outbound }

// Bytes returns the body for an upstream of the given name. It fails for any
// other upstream, and for a Cleared that no gate made.
func (c *Cleared) Bytes(upstream string) ([]byte, error) { return c.bytes(upstream) }

// Bytes returns the body for a local upstream of the given name. It fails for
// any other upstream, and for a Kept that no gate made.
func (k *Kept) Bytes(upstream string) ([]byte, error) { return k.bytes(upstream) }

func (o *outbound) bytes(upstream string) ([]byte, error) {
	if !o.made || o.upstream != upstream {
		return nil, errWrongUpstream
	}
	return o.body, nil
}

// Restorer puts values back into the reply.
func (c *Cleared) Restorer() *mask.Restorer { return c.book.Restorer() }

// Format prints the size only.
func (o outbound) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "outbound(%d bytes)", len(o.body)) }
