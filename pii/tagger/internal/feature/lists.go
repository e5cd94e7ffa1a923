package feature

import (
	"encoding/binary"
	"errors"
	"slices"
	"unicode"
	"unicode/utf8"
)

// What the lists say of a word.
const (
	ListForename = 1 << iota
	ListSurname
	ListCommon
	ListPlace
)

// Lists is a set of words with flags, kept as hashes: 28 bits of hash, four of
// flags. A word that is in no list has one chance in thousands to be taken for
// one that is.
type Lists struct {
	slots []uint32 // open addressing; 0 is free
	mask  uint32
}

// hashWord is the hash under which the extractor looks a word up.
func hashWord(w string) uint32 {
	h := uint32(hWord)
	n := 0
	total := 0
	for _, r := range w {
		total++
		if n == maxRunes {
			continue
		}
		n++
		if r < utf8.RuneSelf {
			r |= 0x20
		} else {
			r = unicode.ToLower(r)
		}
		h = mix(h, uint32(r))
	}
	return mix(h, uint32(min(total, maxRunes)))
}

// PackLists writes words with their flags in the form that [ReadLists] reads.
func PackLists(words map[string]uint8) []byte {
	entries := map[uint32]uint8{}
	for w, flags := range words {
		entries[hashWord(w)>>4] |= flags & 15
	}
	keys := make([]uint32, 0, len(entries))
	for h := range entries {
		keys = append(keys, h)
	}
	slices.Sort(keys)
	var out []byte
	for _, h := range keys {
		out = binary.LittleEndian.AppendUint32(out, h<<4|uint32(entries[h]))
	}
	return out
}

// ReadLists reads what [PackLists] wrote.
func ReadLists(b []byte) (*Lists, error) {
	if len(b)%4 != 0 {
		return nil, errors.New("word lists are cut off")
	}
	size := 16
	for size < len(b)/2 {
		size *= 2
	}
	l := &Lists{slots: make([]uint32, size), mask: uint32(size - 1)}
	for ; len(b) > 0; b = b[4:] {
		e := binary.LittleEndian.Uint32(b)
		at := l.home(e >> 4)
		for l.slots[at] != 0 {
			at = (at + 1) & l.mask
		}
		l.slots[at] = e
	}
	return l, nil
}

func (l *Lists) home(h uint32) uint32 { return (h * 0x9E3779B1 >> 4) & l.mask }

// Lookup returns the flags of the word with a hash, 0 if it is in no list.
func (l *Lists) Lookup(h uint32) uint8 {
	h >>= 4
	for at := l.home(h); l.slots[at] != 0; at = (at + 1) & l.mask {
		if l.slots[at]>>4 == h {
			return uint8(l.slots[at] & 15)
		}
	}
	return 0
}
