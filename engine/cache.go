package engine

import (
	"slices"
	"sync"
)

// cache keeps states at the ends of prefixes that may come again: of prompts,
// of their messages, of replies. The recurrent part of a state cannot be rolled
// back, so a prefix is of use only where a state was kept; pages of keys and
// values are shared by all the states that hold them.
type cache struct {
	budget int64
	d      *dims

	mu    sync.Mutex
	kept  []kept // least recently used first
	pages map[*page]int
	bytes int64
}

// kept is a state and the logits of what follows it, so that a prompt that
// comes again needs no computing at all.
type kept struct {
	*state
	logits []float32
}

func newCache(d *dims, budget int64) *cache {
	return &cache{budget: budget, d: d, pages: map[*page]int{}}
}

// longest returns copies of the kept state with the longest prefix of tokens
// and of its logits, or nil.
func (c *cache) longest(tokens []int32) (*state, []float32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	best := -1
	for i, k := range c.kept {
		if k.length <= len(tokens) && slices.Equal(k.tokens, tokens[:k.length]) &&
			(best < 0 || k.length > c.kept[best].length) {
			best = i
		}
	}
	if best < 0 {
		return nil, nil
	}
	k := c.touch(best)
	return k.clone(), slices.Clone(k.logits)
}

// touch makes entry i the most recently used.
func (c *cache) touch(i int) kept {
	k := c.kept[i]
	c.kept = append(slices.Delete(c.kept, i, i+1), k)
	return k
}

// wants says whether keeping s would be of use: it fits the budget and its
// tokens are not kept yet.
func (c *cache) wants(s *state) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.length == 0 || c.fixed()+int64(len(s.pages))*c.d.pageBytes() > c.budget {
		return false
	}
	for i, k := range c.kept {
		if slices.Equal(k.tokens, s.tokens) {
			c.touch(i)
			return false
		}
	}
	return true
}

// keep takes s and its logits, which are the cache's from then on, and drops
// the least recently used states to make room.
func (c *cache) keep(s *state, logits []float32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, kept{s, logits})
	c.bytes += c.fixed()
	for _, p := range s.pages {
		if c.pages[p]++; c.pages[p] == 1 {
			c.bytes += c.d.pageBytes()
		}
	}
	for c.bytes > c.budget {
		c.drop(0)
	}
}

// fixed is what an entry takes without its pages.
func (c *cache) fixed() int64 { return c.d.fixedBytes() + int64(4*c.d.vocab) }

func (c *cache) drop(i int) {
	s := c.kept[i]
	c.kept = slices.Delete(c.kept, i, i+1)
	c.bytes -= c.fixed()
	for _, p := range s.pages {
		if c.pages[p]--; c.pages[p] == 0 {
			delete(c.pages, p)
			c.bytes -= c.d.pageBytes()
		}
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
