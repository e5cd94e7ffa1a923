package gate

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"weir/internal/task"
	"weir/internal/wire"
	"weir/pii"
	"weir/pii/mask"
	"weir/policy"
)

// Finding is a span in one leaf of a request.
type Finding struct {
	Leaf int
	pii.Span
	Place wire.Place
	// Settled says that it stands in a turn that an earlier step decided.
	Settled bool
	// Before is the action that was taken then, or empty.
	Before policy.Action
}

// opaque is content of a request that cannot be examined.
type opaque struct {
	wire.Opaque
	settled bool
	before  policy.Action
}

// Examined is a request whose every text was looked at. Only [Gate.Examine]
// makes one.
type Examined struct {
	chat     *wire.Chat
	task     *task.Task
	findings []Finding // by leaf, then offset
	opaque   []opaque
	// withheld holds the leaves that a cloud upstream never sees: answers that
	// a model on this machine wrote from content that was kept here.
	withheld []int
	// withheldParts are the parts of earlier turns that were kept here because
	// they cannot be read.
	withheldParts []wire.Opaque
	tainted       bool
	failed        error
	bytes         int
	sensitivity   pii.Sensitivity
}

// Chat returns the request.
func (e *Examined) Chat() *wire.Chat { return e.chat }

// Task returns the task it belongs to.
func (e *Examined) Task() *task.Task { return e.task }

// Findings returns what was found, by leaf and offset. The slice is shared.
func (e *Examined) Findings() []Finding { return e.findings }

// Failed returns why some text could not be examined, or nil.
func (e *Examined) Failed() error { return e.failed }

// Tainted says that an earlier turn of the task was kept on this machine.
func (e *Examined) Tainted() bool { return e.tainted }

// Sensitivity is that of all findings together.
func (e *Examined) Sensitivity() pii.Sensitivity { return e.sensitivity }

// Bytes is how much text was examined.
func (e *Examined) Bytes() int { return e.bytes }

// LogValue shows sizes only.
func (e *Examined) LogValue() slog.Value { return slog.StringValue(e.String()) }

// String shows sizes only.
func (e *Examined) String() string {
	return "examined(" + strconv.Itoa(e.bytes) + " bytes, " + strconv.Itoa(len(e.findings)) + " findings)"
}

// Format makes every verb print what String does.
func (e *Examined) Format(f fmt.State, _ rune) { fmt.Fprint(f, e.String()) }

// Examine looks at every text of a request. It never fails: text that could not
// be examined is itself something for the policy, and by default stays here.
func (g *Gate) Examine(ctx context.Context, c *wire.Chat, t *task.Task) *Examined {
	ctx, cancel := context.WithTimeout(ctx, g.opts.ScanBudget)
	defer cancel()
	e := &Examined{chat: c, task: t}
	past := history(c, t)
	e.note(past)
	for i := range c.Leaves() {
		e.scan(ctx, g.scanner, i, past)
	}
	e.propagate(past)
	e.sensitivity = e.assess()
	return e
}

// assess counts the different values of each label.
func (e *Examined) assess() pii.Sensitivity {
	values := pii.Values{}
	for _, f := range e.findings {
		values.Add(f.Label, e.chat.Leaves()[f.Leaf].Value[f.Start:f.End])
	}
	return pii.Assess(values.Counts())
}

// note lists the opaque content and sorts out what is withheld.
func (e *Examined) note(past []turn) {
	for _, o := range e.chat.Opaque {
		t := at(past, o.Message)
		if t.Tainted && (t.settled || t.role == "assistant") {
			e.withheldParts = append(e.withheldParts, o)
			continue
		}
		e.opaque = append(e.opaque, opaque{o, t.settled, policy.Action(t.Actions["opaque."+o.Kind])})
	}
	for _, t := range past {
		e.tainted = e.tainted || t.Tainted && (t.settled || t.role == "assistant")
	}
}

func (e *Examined) scan(ctx context.Context, s Scanner, i int, past []turn) {
	l, place := e.chat.Leaves()[i], e.chat.Places[i]
	t := at(past, place.Message)
	switch {
	case place.Payload, protocolWord(l.Value), l.Kind == wire.Number && len(l.Value) < shortestNumber:
		return
	case t.withheld(place):
		e.withheld = append(e.withheld, i)
		return
	}
	e.bytes += len(l.Value)
	spans, err := s.Scan(ctx, pii.Text{Value: l.Value, Key: contextOf(l, place)})
	if err != nil {
		e.failed = cmp.Or(e.failed, err)
		e.opaque = append(e.opaque, opaque{Opaque: wire.Opaque{Kind: "unexamined", Source: place.Source, Message: place.Message, Leaf: i}})
		return
	}
	for _, sp := range spans {
		if l.Kind == wire.Number { // a number is replaced whole
			sp.Start, sp.End = 0, len(l.Value)
		}
		e.findings = append(e.findings, t.finding(e.chat, i, sp, place))
	}
}

// contextOf returns the member name that says what a text is. A member name is
// not the value of the member around it ("password" in a schema holds "type"),
// and the protocol's own ids are ids whatever they are called.
func contextOf(l wire.Leaf, place wire.Place) string {
	if place.Field == "id" {
		return ""
	}
	return Context(l)
}

// Context is the same for a leaf of any JSON document.
func Context(l wire.Leaf) string {
	if l.Kind == wire.Name {
		return ""
	}
	switch l.Key {
	case "prompt_cache_key", "safety_identifier", "previous_response_id":
		return ""
	}
	return l.Key
}

// shortestNumber is the length of the shortest number that could identify
// somebody.
const shortestNumber = 6

// propagate marks every occurrence of a value that was found anywhere in the
// request, or earlier in the task.
func (e *Examined) propagate(past []turn) {
	book := e.task.Book()
	if book.Len() == 0 && len(e.findings) == 0 {
		return
	}
	known := mask.NewBook([32]byte{}, book.Entries())
	for _, f := range e.findings {
		value := e.chat.Leaves()[f.Leaf].Value[f.Start:f.End]
		if _, err := known.Issue(value, f.Label, mask.StylePlaceholder, nil); err != nil {
			e.failed = cmp.Or(e.failed, err)
		}
	}
	at0 := 0
	var all []Finding
	for i, l := range e.chat.Leaves() {
		own := at0
		for at0 < len(e.findings) && e.findings[at0].Leaf == i {
			at0++
		}
		have := e.findings[own:at0]
		place := e.chat.Places[i]
		t := at(past, place.Message)
		if place.Payload || protocolWord(l.Value) || t.withheld(place) {
			continue
		}
		all = append(all, have...)
		if place.Field == "model" || place.Field == "role" {
			continue // Claude the friend is not claude the model
		}
		for _, sp := range known.Find(l.Value) {
			if !covered(have, sp) {
				f := t.finding(e.chat, i, sp, place)
				all, have = append(all, f), append(slices.Clone(have), f)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Leaf, b.Leaf), cmp.Compare(a.Start, b.Start))
	})
	e.findings = all
}

// covered says that sp lies in a finding. One that only overlaps it leaves some
// of the value in clear.
func covered(have []Finding, sp pii.Span) bool {
	for _, f := range have {
		if f.Start <= sp.Start && sp.End <= f.End {
			return true
		}
	}
	return false
}
