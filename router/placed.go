package router

import (
	"github.com/maypok86/otter/v2"
)

// placed remembers where the last step of each task ran, so that a tool loop
// stays where it began. It is bounded, and forgetting costs a loop nothing but
// its stickiness.
type placed struct{ cache *otter.Cache[string, Where] }

const placedTasks = 10_000

func newPlaced() (*placed, error) {
	c, err := otter.New(&otter.Options[string, Where]{MaximumSize: placedTasks})
	if err != nil {
		return nil, err
	}
	return &placed{c}, nil
}

func (p *placed) last(task string) Where {
	w, _ := p.cache.GetIfPresent(task)
	return w
}

func (p *placed) note(task string, w Where) { p.cache.Set(task, w) }
