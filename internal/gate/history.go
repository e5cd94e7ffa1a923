package gate

import (
	"weir/internal/task"
	"weir/internal/wire"
	"weir/pii"
	"weir/policy"
)

// turn is what is known of one message of a request.
type turn struct {
	task.Settled
	role string
	// settled says that the message belongs to an earlier turn which an
	// earlier step decided.
	settled bool
}

// history finds out which messages belong to turns that are over and decided. A
// message does when the store knows it, an answer follows it, and after that
// answer the user spoke again. So a retry, a regenerated answer and every step
// of a running tool loop are decided like the first time: what kept a turn on
// this machine keeps all of that turn here.
func history(c *wire.Chat, t *task.Task) []turn {
	past := make([]turn, len(c.Messages))
	over := lastTurnOver(c)
	for i, m := range c.Messages {
		past[i].role = m.Role
		if s, ok := t.Settled(task.Digest(m.Digest)); ok {
			past[i].Settled = s
			past[i].settled = i < over
		}
	}
	return past
}

// lastTurnOver returns the index of the first message of the running turn: the
// last user message that follows an answer, with no answer of words after it.
// All messages before the last answer before it are over.
func lastTurnOver(c *wire.Chat) int {
	user := -1
	for i := len(c.Messages) - 1; i >= 0; i-- {
		switch c.Messages[i].Role {
		case "user":
			user = i
		case "assistant":
			if user > i {
				return i + 1
			}
		}
	}
	return 0
}

func at(past []turn, message int) turn {
	if message < 0 || message >= len(past) {
		return turn{}
	}
	return past[message]
}

// withheld says that a cloud upstream does not see the text at place: it stands
// in an answer that was written on this machine from content that was kept here.
func (t turn) withheld(place wire.Place) bool {
	return t.Tainted && t.role == "assistant" && (place.Field == "content" || place.Field == "arguments" || place.Field == "other" || place.Field == "number" && place.Maskable)
}

// finding is a span in a leaf of the turn. Settled is only what the message is
// known by: elsewhere in it a value may be new.
func (t turn) finding(c *wire.Chat, leaf int, sp pii.Span, place wire.Place) Finding {
	f := Finding{Leaf: leaf, Span: sp, Place: place, Settled: t.settled && c.InDigest(leaf)}
	if f.Settled {
		f.Before = policy.Action(t.Actions[string(sp.Label)])
	}
	return f
}
