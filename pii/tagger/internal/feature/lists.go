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
	ListName // a name of a person, unknown which
	ListOrg

	listFlags = 64
)

// hashBits is how much of a word's hash is kept: a word that is in no list has
// less than one chance in a hundred to be taken for one that is.
const hashBits = 26

// Lists is a set of words with flags, kept as hashes.
type Lists struct {
	slots []uint32 // open addressing: hash, then flags; 0 is free
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
		h = mix(h, lower(r))
	}
	return mix(h, uint32(min(total, maxRunes)))
}

func lower(r rune) uint32 {
	if r < utf8.RuneSelf {
		return uint32(r | 0x20)
	}
	return uint32(unicode.ToLower(r))
}

// PackLists writes words with their flags in the form that [ReadLists] reads:
// for each value of the flags the number of its words, and their hashes in order
// as differences, all as varints.
func PackLists(words map[string]uint8) []byte {
	entries := map[uint32]uint8{}
	for w, flags := range words {
		entries[hashWord(w)>>(32-hashBits)] |= flags % listFlags
	}
	var by [listFlags][]uint32
	for h, flags := range entries {
		by[flags] = append(by[flags], h)
	}
	var out []byte
	for _, hashes := range by[1:] {
		out = binary.AppendUvarint(out, uint64(len(hashes)))
		slices.Sort(hashes)
		last := uint32(0)
		for _, h := range hashes {
			out = binary.AppendUvarint(out, uint64(h-last))
			last = h
		}
	}
	return out
}

// ReadLists reads what [PackLists] wrote. Nothing at all is an empty list.
func ReadLists(b []byte) (*Lists, error) {
	size := 16
	for size < len(b) {
		size *= 2
	}
	l := &Lists{slots: make([]uint32, size), mask: uint32(size - 1)}
	if len(b) == 0 {
		return l, nil
	}
	short := false
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			short = true
			return 0
		}
		b = b[n:]
		return v
	}
	room := size / 4 * 3 // a word has at least one byte, most have two
	for flags := uint32(1); flags < listFlags; flags++ {
		h := uint64(0)
		for n := next(); n > 0 && !short; n-- {
			h += next()
			if room--; room < 0 || h >= 1<<hashBits {
				return nil, errors.New("word lists are damaged")
			}
			l.put(uint32(h)<<(32-hashBits) | flags)
		}
	}
	if short || len(b) > 0 {
		return nil, errors.New("word lists are cut off")
	}
	return l, nil
}

// Common reports whether a word is in the lists as one that is not only a name.
func (l *Lists) Common(word string) bool { return l.Lookup(hashWord(word))&ListCommon != 0 }

func (l *Lists) put(e uint32) {
	at := l.home(e >> (32 - hashBits))
	for l.slots[at] != 0 {
		at = (at + 1) & l.mask
	}
	l.slots[at] = e
}

func (l *Lists) home(h uint32) uint32 { return (h * 0x9E3779B1 >> 4) & l.mask }

// Lookup returns the flags of the word with a hash, 0 if it is in no list.
func (l *Lists) Lookup(h uint32) uint8 {
	h >>= 32 - hashBits
	for at := l.home(h); l.slots[at] != 0; at = (at + 1) & l.mask {
		if l.slots[at]>>(32-hashBits) == h {
			return uint8(l.slots[at] % listFlags)
		}
	}
	return 0
}
