package task

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/maypok86/otter/v2"

	"weir/internal/seal"
	"weir/internal/store"
)

// Options of [New]. The zero value is for one process with its own store.
type Options struct {
	// Retention is how long an unused task is kept; 24 h if zero.
	Retention time.Duration
	// Shared says that other processes write to the same store. Then nothing
	// read from it is kept between requests.
	Shared bool
}

const (
	// maxRecent is how many tasks stay in memory while no request holds them.
	// Their values are in the clear there, so it is no larger than useful.
	maxRecent = 256
	// maxLinks is how many prefixes of conversations are remembered: some
	// hundred conversations, at about 150 bytes each.
	maxLinks = 1 << 16
)

// Tasks finds tasks. Safe for concurrent use.
type Tasks struct {
	st   store.Tasks
	keys *seal.Keys
	opts Options

	mu   sync.Mutex
	live map[string]weak.Pointer[state] // by task id, all that any request holds

	recent  *otter.Cache[string, *state] // keeps some of live alive
	links   *otter.Cache[known, string]  // prefix of a conversation to task id
	memory  *memory
	callers sync.Map // name of caller to bool: has tasks in the store
}

// New returns the tasks that st keeps, their values sealed under keys.
func New(st store.Tasks, keys *seal.Keys, opts Options) *Tasks {
	if opts.Retention == 0 {
		opts.Retention = 24 * time.Hour
	}
	return &Tasks{
		st: st, keys: keys, opts: opts,
		live:   make(map[string]weak.Pointer[state]),
		recent: newCache[string, *state](maxRecent),
		links:  newCache[known, string](maxLinks),
		memory: newMemory(maxLinks),
	}
}

// Open returns the task of a request. An error means that what is known of the
// task could not be read, and that nothing may leave.
func (ts *Tasks) Open(ctx context.Context, ref Ref) (*Task, error) {
	t, err := ts.open(ctx, ref)
	if errors.Is(err, ErrGone) {
		// Deleted since another request loaded it: a fresh one takes over.
		t, err = ts.open(ctx, ref)
	}
	if err != nil {
		return nil, fmt.Errorf("open task: %w", err)
	}
	return t, nil
}

func (ts *Tasks) open(ctx context.Context, ref Ref) (*Task, error) {
	if ref.Caller == "" {
		return nil, errors.New("no caller")
	}
	lead := min(max(ref.Lead, 0), max(len(ref.Chain)-1, 0))
	id, err := ts.identify(ctx, &ref, lead)
	if err != nil {
		return nil, err
	}
	s := ts.hold(id, ref.Caller)
	book, err := s.open(ctx, ts)
	if err != nil {
		if errors.Is(err, ErrGone) {
			ts.forget(s)
		}
		return nil, err
	}
	t := &Task{ts: ts, s: s, book: book, lead: lead}
	t.view.chain = ref.Chain
	if err := ts.loadView(ctx, id, &ref, &t.view); err != nil {
		return nil, err
	}
	ts.noteChain(s, ref.Chain, lead)
	return t, nil
}

// identify finds the id of the task that ref belongs to.
func (ts *Tasks) identify(ctx context.Context, ref *Ref, lead int) (string, error) {
	switch {
	case ref.Explicit != "" && ts.issued(ref.Caller, ref.Explicit):
		return ref.Explicit, nil
	case ref.Explicit != "":
		return ts.newID(ref.Caller, "explicit", []byte(ref.Explicit)), nil
	case len(ref.Chain) == 0:
		return ts.newID(ref.Caller, "alone", []byte(rand.Text())), nil
	}
	id, length := ts.linked(ref, lead)
	some, err := ts.knows(ctx, ref.Caller)
	if err != nil {
		return "", err
	}
	// The store is asked for what is longer than what memory knows: after a
	// restart that may be another task, which shares only the beginning.
	if longer := ref.Chain[max(length, lead):]; some && len(longer) > 0 {
		row, _, err := ts.st.FindTask(ctx, ref.Caller, ts.prefixes(ref.Caller, longer))
		if err == nil {
			return row.ID, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return "", err
		}
	}
	if length > 0 {
		return id, nil
	}
	// The first prefix that is the conversation's own names it: after a
	// restart the same conversation has the same id, though nothing was kept.
	return ts.newID(ref.Caller, "chain", ref.Chain[lead][:]), nil
}

// linked returns the task of the longest prefix that is in memory, and that
// prefix's length; 0 if there is none.
func (ts *Tasks) linked(ref *Ref, lead int) (id string, length int) {
	for i := len(ref.Chain) - 1; i >= lead; i-- {
		if id, ok := ts.links.GetIfPresent(known{ref.Caller, ref.Chain[i]}); ok {
			return id, i + 1
		}
	}
	return "", 0
}

// prefixes returns the keyed digests of chain, longest first.
func (ts *Tasks) prefixes(caller string, chain []Digest) []store.Digest {
	out := make([]store.Digest, len(chain))
	for i, d := range chain {
		out[len(chain)-1-i] = ts.digest("prefix", caller, d)
	}
	return out
}

// digest is how a caller's digest stands in the store.
func (ts *Tasks) digest(what, caller string, d Digest) store.Digest {
	return ts.keys.MAC("task "+what, []byte(caller), d[:])
}

// knows says whether caller has any task in the store. For a caller who never
// had a finding, the answer no is kept, and the store is not asked again.
func (ts *Tasks) knows(ctx context.Context, caller string) (bool, error) {
	if v, ok := ts.callers.Load(caller); ok {
		return v.(bool), nil
	}
	some, err := ts.st.KnowsCaller(ctx, caller)
	if err != nil || ts.opts.Shared && !some {
		return some, err
	}
	// A commit that came in between has set it to true, and that stays.
	v, _ := ts.callers.LoadOrStore(caller, some)
	return v.(bool), nil
}

// noteChain remembers the conversation's prefixes. From the end: where one is
// known already, all before it are.
func (ts *Tasks) noteChain(s *state, chain []Digest, lead int) {
	for i := len(chain) - 1; i >= lead; i-- {
		k := known{s.caller, chain[i]}
		if id, ok := ts.links.GetIfPresent(k); ok && id == s.id {
			return
		}
		ts.links.Set(k, s.id)
	}
}

// hold returns the one state of a task that this process has.
func (ts *Tasks) hold(id, caller string) *state {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if s := ts.live[id].Value(); s != nil {
		ts.remember(s)
		return s
	}
	s := &state{id: id, caller: caller}
	w := weak.Make(s)
	ts.live[id] = w
	runtime.AddCleanup(s, func(id string) {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		if ts.live[id] == w {
			delete(ts.live, id)
		}
	}, id)
	ts.remember(s)
	return s
}

// remember keeps s while nobody holds it. A state that other processes may make
// stale is not kept: the next request reads it anew.
func (ts *Tasks) remember(s *state) {
	if !ts.opts.Shared {
		ts.recent.Set(s.id, s)
	}
}

// peek returns the state of a task if it is in memory.
func (ts *Tasks) peek(id string) *state {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.live[id].Value()
}

// forget takes s out of memory, so that the next request makes a new one.
func (ts *Tasks) forget(s *state) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.live[s.id].Value() == s {
		delete(ts.live, s.id)
		ts.recent.Invalidate(s.id)
	}
}
