package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"strings"

	"golang.org/x/crypto/sha3"

	"weir/pii"
)

// wallets finds addresses of cryptocurrencies by their check sums.
func (s *Set) wallets(t *text, out *findings) {
	for _, w := range t.words {
		n := w.len()
		if n < 26 || n > 90 || !w.is(hasDigit) || !w.ascii() {
			continue
		}
		start, end := int(w.start), int(w.end)
		v := t.s[start:end]
		switch {
		case v[0] == '0' && n == 42 && v[1]|0x20 == 'x':
			switch {
			case !hexWord(v[2:]):
			case eip55(v[2:]):
				out.add(t, start, end, s.own["wallet"], 0.97, pii.RankChecksum)
			case t.context(start, end, 60, 40).has(s.c.wallet):
				out.add(t, start, end, s.own["wallet"], 0.8, pii.RankContext)
			}
		case strings.HasPrefix(v, "bc1") || strings.HasPrefix(v, "tb1") || strings.HasPrefix(v, "ltc1") || strings.HasPrefix(v, "BC1"):
			if bech32(v) {
				out.add(t, start, end, s.own["wallet"], 0.98, pii.RankChecksum)
			}
		case n <= 35 && strings.IndexByte("13LMDAXtr", v[0]) >= 0:
			if base58check(v) {
				out.add(t, start, end, s.own["wallet"], 0.98, pii.RankChecksum)
			}
		case (n == 51 || n == 52) && strings.IndexByte("5KLc", v[0]) >= 0:
			if base58check(v) {
				out.add(t, start, end, s.own["wallet-key"], 0.98, pii.RankChecksum)
			}
		}
	}
}

// eip55 tests the capitals of an Ethereum address. One without any capitals has
// no check sum.
func eip55(v string) bool {
	low := strings.ToLower(v)
	if low == v {
		return false
	}
	h := sha3.NewLegacyKeccak256()
	h.Write([]byte(low))
	sum := hex.EncodeToString(h.Sum(nil))
	for i := range len(v) {
		if low[i] >= 'a' && (sum[i] >= '8') != (v[i] < 'a') {
			return false
		}
	}
	return true
}

// bech32 tests the check sum of BIP 173 and BIP 350.
func bech32(v string) bool {
	const alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	low := strings.ToLower(v)
	if low != v && strings.ToUpper(v) != v {
		return false
	}
	sep := strings.LastIndexByte(low, '1')
	if sep < 1 || len(low)-sep < 7 {
		return false
	}
	c := uint32(1)
	step := func(d uint32) {
		top := c >> 25
		c = (c&0x1ffffff)<<5 ^ d
		for i, g := range [...]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 == 1 {
				c ^= g
			}
		}
	}
	for i := range sep {
		step(uint32(low[i]) >> 5)
	}
	step(0)
	for i := range sep {
		step(uint32(low[i]) & 31)
	}
	for i := sep + 1; i < len(low); i++ {
		d := strings.IndexByte(alphabet, low[i])
		if d < 0 {
			return false
		}
		step(uint32(d))
	}
	return c == 1 || c == 0x2bc830a3
}

// base58check tests the four bytes of a double hash at the end.
func base58check(v string) bool {
	alphabet := "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	if v[0] == 'r' { // Ripple orders the digits otherwise
		alphabet = "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz"
	}
	n := new(big.Int)
	for i := range len(v) {
		d := strings.IndexByte(alphabet, v[i])
		if d < 0 {
			return false
		}
		n.Mul(n, big.NewInt(58))
		n.Add(n, big.NewInt(int64(d)))
	}
	raw := n.Bytes()
	for i := 0; i < len(v) && v[i] == alphabet[0]; i++ {
		raw = append([]byte{0}, raw...)
	}
	if len(raw) < 25 || len(raw) > 38 {
		return false
	}
	body := raw[:len(raw)-4]
	first := sha256.Sum256(body)
	second := sha256.Sum256(first[:])
	return string(second[:4]) == string(raw[len(raw)-4:])
}
