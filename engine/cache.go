package engine

import (
	"slices"
	"sync"
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
// nil.
func (c *cache) longest(tokens []int32) (*kept, error) {
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
		return nil, nil
	}
	k := c.touch(best)
	m, err := k.memory.clone()
	if err != nil {
		return nil, err
	}
	return &kept{slices.Clone(k.tokens), m, slices.Clone(k.logits)}, nil
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
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, k)
	c.bytes += c.each
	k.memory.parts(func(part any, bytes int64) {
		if c.parts[part]++; c.parts[part] == 1 {
			c.bytes += bytes
		}
	})
	for c.bytes > c.budget {
		c.drop(0)
	}
}

func (c *cache) drop(i int) {
	k := c.kept[i]
	c.kept = slices.Delete(c.kept, i, i+1)
	c.bytes -= c.each
	k.memory.parts(func(part any, bytes int64) {
		if c.parts[part]--; c.parts[part] == 0 {
			delete(c.parts, part)
			c.bytes -= bytes
		}
	})
	k.memory.free()
}

// clear drops everything.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.kept) > 0 {
		c.drop(0)
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
