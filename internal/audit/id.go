package audit

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"sync"
	"time"
)

// ids makes decision ids: milliseconds since 1970 in 48 bits, then 80 random
// bits, in base32hex, whose alphabet sorts like the bytes (RFC 4648, 7). Within
// one process they strictly increase: in the same millisecond, or when the clock
// steps back, the last id is counted up.
type ids struct {
	mu   sync.Mutex
	last [16]byte
}

func (g *ids) next(now time.Time) string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(max(now.UnixMilli(), 0))<<16)
	_, _ = rand.Read(id[6:]) // never fails since Go 1.24
	g.mu.Lock()
	defer g.mu.Unlock()
	if string(id[:6]) <= string(g.last[:6]) {
		id = g.last
		for i := len(id) - 1; i >= 0; i-- {
			if id[i]++; id[i] != 0 {
				break
			}
		}
	}
	g.last = id
	return "dec_" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(id[:]))
}
