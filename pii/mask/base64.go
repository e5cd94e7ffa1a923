package mask

import "weir/pii"

// sextets is the value of each letter of both Base64 alphabets of RFC 4648,
// 0xFF for others.
func sextet(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c - 'A'
	case 'a' <= c && c <= 'z':
		return c - 'a' + 26
	case '0' <= c && c <= '9':
		return c - '0' + 52
	case c == '+' || c == '-':
		return 62
	case c == '/' || c == '_':
		return 63
	}
	return 0xFF
}

// needles looks for values in Base64. A value may begin at each of the three
// bytes of a group, and its first and last letter there depend on its
// neighbours; the four letters in between that do not are its key, and what
// follows is decoded and compared.
type needles struct {
	byKey map[uint32][]needle
	sieve [1 << 10]uint64 // one bit for each hash of a key: most letters stop here
}

type needle struct {
	value string
	label pii.Label
	lead  int // bytes of the group before the value
}

// skipped is the letters of a group before the first that only the value
// decides, by lead.
var skipped = [3]int{0, 2, 3}

// add looks for the value of e, which must have four bytes or more.
func (n *needles) add(e Entry) {
	if len(e.Value) < 4 {
		return
	}
	if n.byKey == nil {
		n.byKey = map[uint32][]needle{}
	}
	for lead, skip := range skipped {
		bits := uint64(0)
		for i := range 6 { // bytes of the stream from the group's beginning
			bits <<= 8
			if at := i - lead; at >= 0 && at < len(e.Value) {
				bits |= uint64(e.Value[at])
			}
		}
		key := uint32(bits >> (48 - 6*(skip+4)) & 0xFFFFFF)
		n.byKey[key] = append(n.byKey[key], needle{e.Value, e.Label, lead})
		h := hashKey(key)
		n.sieve[h>>6] |= 1 << (h & 63)
	}
}

func hashKey(key uint32) uint32 { return key * 0x9E3779B1 >> 16 }

// find returns the label of the first value in text.
func (n *needles) find(text string) (pii.Label, bool) {
	if n.byKey == nil {
		return "", false
	}
	key, run := uint32(0), 0
	for i := range len(text) {
		s := sextet(text[i])
		if s == 0xFF {
			run = 0
			continue
		}
		key = (key<<6 | uint32(s)) & 0xFFFFFF
		if run++; run < 4 {
			continue
		}
		if h := hashKey(key); n.sieve[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		for _, d := range n.byKey[key] {
			if group := i - 3 - skipped[d.lead]; group >= 0 && d.at(text[group:]) {
				return d.label, true
			}
		}
	}
	return "", false
}

// at reports whether the group that text begins with holds the value.
func (d *needle) at(text string) bool {
	acc, bits, from := uint32(0), 0, -d.lead
	for i := 0; i < len(text) && from < len(d.value); i++ {
		s := sextet(text[i])
		if s == 0xFF {
			return false
		}
		acc = acc<<6 | uint32(s)
		if bits += 6; bits < 8 {
			continue
		}
		bits -= 8
		if from >= 0 && byte(acc>>bits) != d.value[from] {
			return false
		}
		from++
	}
	return from == len(d.value)
}
