package task

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/go-json-experiment/json"

	"weir/internal/seal"
	"weir/internal/store"
)

// trivial says that v holds nothing that a request would not find by itself.
func (v *Settled) trivial() bool {
	return !v.Tainted && len(v.Actions) == 0 && (v.Placement == "" || v.Placement == "cloud")
}

func (v *Settled) equal(w *Settled) bool {
	return v.Placement == w.Placement && v.Tainted == w.Tainted && maps.Equal(v.Actions, w.Actions)
}

// merge makes v the strictest of v and w, part by part.
func (v *Settled) merge(w Settled) {
	v.Tainted = v.Tainted || w.Tainted
	if rank(w.Placement) > rank(v.Placement) {
		v.Placement = w.Placement
	}
	for label, action := range w.Actions {
		if had, ok := v.Actions[label]; !ok || rank(action) > rank(had) {
			if v.Actions == nil {
				v.Actions = make(map[string]string)
			}
			v.Actions[label] = action
		}
	}
}

// rank orders placements, and orders actions. A word it does not know is the
// strictest: a later version may have written it.
func rank(word string) int {
	switch word {
	case "":
		return 0
	case "cloud", "allow":
		return 1
	case "cloud-masked", "mask":
		return 2
	case "ask_user":
		return 3
	case "keep_local":
		return 4
	case "local", "refuse":
		return 5
	}
	return 6
}

// decided is what one task has settled about a message.
type decided struct {
	task string
	v    Settled
}

// resolve gives what holds in the task: its own decision, else the strictest of
// the others.
func resolve(all []decided, task string) (v Settled, own, ok bool) {
	for i := range all {
		if all[i].task == task {
			return all[i].v.clone(), true, true
		}
	}
	for i := range all {
		v.merge(all[i].v)
	}
	return v, false, len(all) > 0
}

// view is what a request sees of earlier decisions.
type view struct {
	chain []Digest

	mu  sync.Mutex
	by  map[Digest]Settled
	own map[Digest]bool // by[d] was decided in this very task
}

func (w *view) get(d Digest) (Settled, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, ok := w.by[d]
	return v.clone(), ok
}

func (w *view) put(d Digest, v Settled, own bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by, w.own = make(map[Digest]Settled), make(map[Digest]bool)
	}
	w.by[d] = v.clone()
	w.own[d] = own
}

// news returns those of in that must be written: all that say something new.
func (w *view) news(in map[Digest]Settled) map[Digest]Settled {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[Digest]Settled)
	for d, v := range in {
		had, ok := w.by[d]
		switch {
		case !ok && v.trivial():
		case ok && w.own[d] && had.equal(&v):
		default:
			out[d] = v
		}
	}
	return out
}

// known is a message of a caller.
type known struct {
	caller string
	d      Digest
}

// loadView asks for the decisions about the messages of ref. In a conversation
// that grows by a turn, all but the last are remembered.
func (ts *Tasks) loadView(ctx context.Context, task string, ref *Ref, w *view) error {
	some, err := ts.knows(ctx, ref.Caller)
	if err != nil || !some {
		return err
	}
	var ask []Digest
	var digests []store.Digest
	for _, list := range [][]Digest{ref.Chain, ref.Messages} {
		for _, d := range list {
			if all, ok := ts.memory.get(known{ref.Caller, d}); ok {
				if v, own, ok := resolve(all, task); ok {
					w.put(d, v, own)
				}
				continue
			}
			ask = append(ask, d)
			digests = append(digests, ts.digest("message", ref.Caller, d))
		}
	}
	if len(ask) == 0 {
		return nil
	}
	epoch := ts.memory.now()
	rows, err := ts.st.Settled(ctx, ref.Caller, digests)
	if err != nil {
		return err
	}
	found := make(map[store.Digest][]decided, len(rows))
	for i := range rows {
		v, err := ts.openSettled(ref.Caller, &rows[i])
		if err != nil {
			return err
		}
		found[rows[i].Message] = append(found[rows[i].Message], decided{rows[i].Task, v})
	}
	for i, d := range ask {
		all := found[digests[i]]
		if v, own, ok := resolve(all, task); ok {
			w.put(d, v, own)
		}
		if !ts.opts.Shared {
			ts.memory.keep(epoch, known{ref.Caller, d}, all)
		}
	}
	return nil
}

func (ts *Tasks) sealSettled(caller, task string, d Digest, v Settled) (store.SettledRow, error) {
	row := store.SettledRow{Task: task, Message: ts.digest("message", caller, d)}
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return row, fmt.Errorf("encode settled message: %w", err)
	}
	row.Body, err = ts.keys.Seal(body, settledBinding(caller, &row))
	return row, err
}

func (ts *Tasks) openSettled(caller string, row *store.SettledRow) (Settled, error) {
	var v Settled
	body, err := ts.keys.Open(row.Body, settledBinding(caller, row))
	if err == nil {
		err = json.Unmarshal(body, &v)
	}
	if err != nil {
		return v, fmt.Errorf("open settled message: %w", err)
	}
	return v, nil
}

func settledBinding(caller string, row *store.SettledRow) []byte {
	return seal.Bind("settled", caller, row.Task, string(row.Message[:]))
}
