// Package seal holds the one secret of an installation and what is made of it.
//
// Begin at [Open], which finds the root key by a reference (or makes it) and
// returns [Keys]. Keys seal values for the disk, derive the key of a task's
// placeholders, and compute the keyed digests that stand in the database in
// place of anything guessable.
//
// It promises that a key is never printed, whatever verb or logger meets it,
// that each use has its own subkey (HKDF-SHA256, RFC 5869), and that data
// sealed under another key is [ErrWrongKey] and never garbage. A root key is
// never taken from a command line. Where sealed bytes are kept is left to
// package store.
package seal

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// ErrWrongKey reports sealed bytes that do not open: they were sealed under
// another key or for another place, or they were altered. AES-GCM cannot tell
// these apart.
var ErrWrongKey = errors.New("sealed under another key, or altered")

// Size is the length of a root key in bytes.
const Size = 32

// version begins all sealed bytes, so that the format can change.
const version = 1

// Keys are the subkeys of one root key. Safe for concurrent use.
type Keys struct {
	prk  [sha256.Size]byte // the root key after HKDF-Extract
	mac  [sha256.Size]byte
	aead tink.AEAD
	id   string
}

// New derives the keys of root.
func New(root [Size]byte) (*Keys, error) {
	prk, err := hkdf.Extract(sha256.New, root[:], []byte("weir/root/1"))
	if err != nil {
		return nil, fmt.Errorf("derive keys: %w", err)
	}
	k := &Keys{prk: [sha256.Size]byte(prk)}
	k.mac = k.derive("mac")
	box := k.derive("vault/aes-256-gcm")
	if k.aead, err = subtle.NewAESGCM(box[:]); err != nil {
		return nil, fmt.Errorf("derive keys: %w", err)
	}
	id := k.derive("id")
	k.id = hex.EncodeToString(id[:8])
	return k, nil
}

// ID names the root key without telling anything of it: 16 hexadecimal digits
// that are the same for the same key. A store keeps it to know its key again.
func (k *Keys) ID() string { return k.id }

// Task returns the key under which the placeholders of a task are made.
func (k *Keys) Task(id string) [32]byte { return k.derive("task/" + id) }

// MAC returns HMAC-SHA256 of parts under a subkey, for purpose: equal input
// under two purposes gives unrelated results. Parts are framed by their length,
// so that no two lists of parts collide.
func (k *Keys) MAC(purpose string, parts ...[]byte) [32]byte {
	h := hmac.New(sha256.New, k.mac[:])
	frame(h.Write, []byte(purpose))
	for _, p := range parts {
		frame(h.Write, p)
	}
	return [32]byte(h.Sum(nil))
}

// Seal encrypts plain with AES-256-GCM under a random nonce. aad is what the
// value is bound to; the same bytes must be given to [Keys.Open]. One root key
// is good for 2^32 sealed values (NIST SP 800-38D, 8.3).
func (k *Keys) Seal(plain, aad []byte) ([]byte, error) {
	box, err := k.aead.Encrypt(plain, aad)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return append([]byte{version}, box...), nil
}

// Open decrypts what Seal made with the same aad. Any other input is
// [ErrWrongKey].
func (k *Keys) Open(sealed, aad []byte) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != version {
		return nil, ErrWrongKey
	}
	plain, err := k.aead.Decrypt(sealed[1:], aad)
	if err != nil {
		return nil, ErrWrongKey // the cause says nothing more
	}
	return plain, nil
}

// Bind joins parts into associated data, framed so that no two lists of parts
// give the same bytes.
func Bind(parts ...string) []byte {
	var out []byte
	for _, p := range parts {
		out = binary.BigEndian.AppendUint64(out, uint64(len(p)))
		out = append(out, p...)
	}
	return out
}

// Format prints no key, whatever the verb.
func (k *Keys) Format(s fmt.State, _ rune) { fmt.Fprint(s, "seal.Keys(hidden)") }

// LogValue prints no key.
func (k *Keys) LogValue() slog.Value { return slog.StringValue("seal.Keys(hidden)") }

func (k *Keys) derive(info string) [32]byte {
	out, err := hkdf.Expand(sha256.New, k.prk[:], "weir/1/"+info, 32)
	if err != nil {
		panic(err) // only a length over 255 hashes fails
	}
	return [32]byte(out)
}

func frame(write func([]byte) (int, error), p []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(p)))
	_, _ = write(n[:]) // a hash never returns an error
	_, _ = write(p)
}
