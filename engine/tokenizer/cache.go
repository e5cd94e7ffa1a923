package tokenizer

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

const (
	cacheSlots = 1 << 14
	cacheWord  = 32 // longest word that is kept, in bytes
	cacheIDs   = 8  // most ids of one
)

// cache remembers the tokens of recent words. Each word has one slot, which
// the next word with the same hash takes over: bounded, and without locks.
// It holds words of the texts, in memory only.
type cache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[cached]
}

type cached struct {
	word string
	ids  [cacheIDs]int32
	n    int
}

func newCache() cache {
	return cache{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[cached], cacheSlots)}
}

// append appends the ids of a word, from the cache or from make.
func (c *cache) append(dst []int32, word string, make func([]int32, string) []int32) []int32 {
	if len(word) > cacheWord || len(word) == 1 {
		return make(dst, word)
	}
	slot := &c.slots[maphash.String(c.seed, word)%cacheSlots]
	if e := slot.Load(); e != nil && e.word == word {
		return append(dst, e.ids[:e.n]...)
	}
	before := len(dst)
	dst = make(dst, word)
	if ids := dst[before:]; len(ids) <= cacheIDs {
		e := &cached{word: strings.Clone(word), n: len(ids)} // not a part of the whole text
		copy(e.ids[:], ids)
		slot.Store(e)
	}
	return dst
}
