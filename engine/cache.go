package engine

import (
	"errors"
	"slices"
	"sync"

	"weir/engine/device"
)

// cache keeps memories at the ends of prefixes that may come again: of prompts,
// of their messages, of replies. The recurrent part of a memory cannot be
// rolled back, so a prefix is of use only where one was kept; parts that
// memories have in common count once.
type cache struct {
	budget int64
	each   int64 // bytes of an entry's logits

	mu    sync.Mutex
	kept  []kept // least recently used first
	parts map[any]int
	bytes int64
}

// kept is a memory of tokens and the logits of what follows them, so that a
// prompt that comes again needs no computing at all.
type kept struct {
	tokens []int32
	memory memory
	logits []float32
}

func newCache(each, budget int64) *cache {
	return &cache{budget: budget, each: each, parts: map[any]int{}}
}

// longest returns a copy of the entry with the longest prefix of tokens, or
// nil. An entry that there is no memory to copy is given away itself, and one
// that cannot be copied at all is dropped: its device was lost.
func (c *cache) longest(tokens []int32) *kept {
	for {
		k := c.take(tokens)
		if k == nil {
			return nil
		}
		m, err := k.memory.clone()
		switch {
		case err == nil:
			c.putBack(*k)
			return &kept{slices.Clone(k.tokens), m, slices.Clone(k.logits)}
		case errors.Is(err, device.ErrMemory):
			c.forget(*k)
			return k
		}
		c.forget(*k)
		k.memory.free()
	}
}

// take takes the entry with the longest prefix of tokens out, so that nobody
// drops it meanwhile. It still counts.
func (c *cache) take(tokens []int32) *kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	best := -1
	for i, k := range c.kept {
		if n := len(k.tokens); n <= len(tokens) && slices.Equal(k.tokens, tokens[:n]) &&
			(best < 0 || n > len(c.kept[best].tokens)) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	k := c.kept[best]
	c.kept = slices.Delete(c.kept, best, best+1)
	return &k
}

// putBack makes what was taken out the most recently used entry.
func (c *cache) putBack(k kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, k)
	c.trim()
}

// touch makes entry i the most recently used.
func (c *cache) touch(i int) kept {
	k := c.kept[i]
	c.kept = append(slices.Delete(c.kept, i, i+1), k)
	return k
}

// wants says whether keeping the memory of tokens would be of use: it fits the
// budget and they are not kept yet.
func (c *cache) wants(tokens []int32, m memory) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := c.each
	m.parts(func(_ any, bytes int64) { size += bytes })
	if len(tokens) == 0 || size > c.budget {
		return false
	}
	for i, k := range c.kept {
		if slices.Equal(k.tokens, tokens) {
			c.touch(i)
			return false
		}
	}
	return true
}

// keep takes k, which is the cache's from then on, and drops the least
// recently used entries to make room.
func (c *cache) keep(k kept) {
	k.memory.rest()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, k)
	c.bytes += c.each
	k.memory.parts(func(part any, bytes int64) {
		if c.parts[part]++; c.parts[part] == 1 {
			c.bytes += bytes
		}
	})
	c.trim()
}

// trim drops the least recently used entries that the budget has no room for.
func (c *cache) trim() {
	for c.bytes > c.budget && len(c.kept) > 0 {
		c.drop()
	}
}

// evict drops the least recently used entry, if there is one.
func (c *cache) evict() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) == 0 {
		return false
	}
	c.drop()
	return true
}

func (c *cache) drop() {
	k := c.kept[0]
	c.kept = slices.Delete(c.kept, 0, 1)
	c.discount(k)
	k.memory.free()
}

// forget no longer counts an entry that was taken out.
func (c *cache) forget(k kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.discount(k)
}

func (c *cache) discount(k kept) {
	c.bytes -= c.each
	k.memory.parts(func(part any, bytes int64) {
		if c.parts[part]--; c.parts[part] == 0 {
			delete(c.parts, part)
			c.bytes -= bytes
		}
	})
}

// clear drops everything.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.kept) > 0 {
		c.drop()
	}
}

// CacheStats is how full the prefix cache is.
type CacheStats struct {
	States        int
	Bytes, Budget int64
}

// Cache tells how full the prefix cache is.
func (e *Engine) Cache() CacheStats {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	return CacheStats{len(e.cache.kept), e.cache.bytes, e.cache.budget}
}
