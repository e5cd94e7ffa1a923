package task

import (
	"fmt"
	"sync"

	"github.com/maypok86/otter/v2"
)

// memory keeps decisions that were read from the store, the absence of any
// included. What is read while another request writes is not kept: it may be old
// by the time it gets here.
type memory struct {
	mu    sync.Mutex // guards epoch, and orders keep with drop and clear
	epoch uint64     // counts the writes
	cache *otter.Cache[known, []decided]
}

func newMemory(size int) *memory {
	return &memory{cache: newCache[known, []decided](size)}
}

// newCache returns a cache of at most size entries.
func newCache[K comparable, V any](size int) *otter.Cache[K, V] {
	c, err := otter.New(&otter.Options[K, V]{MaximumSize: size})
	if err != nil {
		panic(fmt.Sprintf("cache of %d entries: %v", size, err)) // only a negative size fails
	}
	return c
}

func (m *memory) get(k known) ([]decided, bool) { return m.cache.GetIfPresent(k) }

// now is taken before reading the store and given to keep.
func (m *memory) now() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.epoch
}

func (m *memory) keep(epoch uint64, k known, all []decided) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epoch == epoch {
		m.cache.Set(k, all)
	}
}

// drop forgets a message whose decision was written.
func (m *memory) drop(k known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	m.cache.Invalidate(k)
}

// clear forgets all, when tasks were deleted.
func (m *memory) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	m.cache.InvalidateAll()
}
