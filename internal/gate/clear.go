package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"weir/internal/audit"
	"weir/internal/task"
	"weir/internal/wire"
	"weir/pii"
	"weir/pii/mask"
	"weir/policy"
)

var (
	errWrongUpstream = errors.New("request was not cleared for this upstream")
	errNoReceipt     = errors.New("decision was not recorded")
	errNotAllowed    = errors.New("decision does not let the request leave")
)

// Target is where a decided request goes.
type Target struct {
	Upstream string
	// Model is the model's name as the upstream knows it.
	Model string
	// Header goes along. It must hold nothing that a client chose freely.
	Header http.Header
	// Profile adapts the body to the upstream.
	Profile wire.Profile
}

// note is what the system text says of placeholders. It never changes within a
// version, so that the provider's prompt cache keeps its prefix.
const note = "Words like PERSON_Q7K2M or EMAIL_3ZWBA (upper-case letters, an underscore, and letters or digits) stand for private values. Use them exactly as written wherever the value belongs, and never guess what they stand for."

// withheld replaces text that a cloud upstream must not see.
const withheld = "[withheld: answered on the user's device]"

// Clear makes the request that leaves the machine. The receipt shows that the
// decision was recorded. What it mints is in the task's vault before it returns.
func (g *Gate) Clear(ctx context.Context, d *Decided, r audit.Receipt, to Target) (Cleared, error) {
	if r.ID() == "" {
		return Cleared{}, errNoReceipt
	}
	if a := d.Action(); d.failed != nil || a != policy.Allow && a != policy.Mask {
		return Cleared{}, errNotAllowed
	}
	body, label, used, err := g.masked(d, to, mask.NewBook([32]byte{}, nil))
	if wide := d.widened(used); err == nil && label != "" && len(wide) > 0 {
		body, label, _, err = g.masked(d, to, mask.NewBook([32]byte{}, wide))
	}
	if err != nil {
		return Cleared{}, err
	}
	if label != "" {
		return Cleared{}, wire.Errorf(wire.CodeLeakPrevented, "a masked value of type %s was about to leave; nothing was sent (decision %s)", label, r.ID())
	}
	if err := d.commit(ctx, "cloud"); err != nil {
		return Cleared{}, err
	}
	return Cleared{outbound{body: body, header: to.Header, upstream: to.Upstream, book: d.task.Book(), made: true}}, nil
}

// masked writes the request with its masks, and the label of a value that stands
// in it all the same. The values in also are masked wherever they stand.
func (g *Gate) masked(d *Decided, to Target, also *mask.Book) (body []byte, leak pii.Label, used []mask.Entry, err error) {
	edits, masked, err := d.maskEdits(also)
	if err != nil {
		return nil, "", nil, fmt.Errorf("mask request: %w", err)
	}
	patches := d.withheldPatches()
	edits = outside(d.chat, edits, patches)
	body, err = g.finish(d.chat, edits, patches, to, len(masked) > 0 && !g.opts.NoNote && needsNote(masked))
	if err != nil {
		return nil, "", nil, err
	}
	label, leaks := mask.Leaks(body, masked)
	if leaks {
		// People are called what a model is called, or what the note says.
		// Those words are not the client's text: without them it must pass.
		bare, err := g.finish(d.chat, edits, patches, Target{Upstream: to.Upstream, Profile: to.Profile}, false)
		if err != nil {
			return nil, "", nil, err
		}
		label, leaks = mask.Leaks(bare, masked)
	}
	if !leaks {
		label = ""
	}
	return body, label, masked, nil
}

// widened returns the entries for values that are none of the findings: they were
// widened, so that the token stands free. As such they were not looked for
// elsewhere.
func (d *Decided) widened(used []mask.Entry) []mask.Entry {
	found := map[string]bool{}
	for _, f := range d.findings {
		found[d.chat.Leaves()[f.Leaf].Value[f.Start:f.End]] = true
	}
	return slices.DeleteFunc(slices.Clone(used), func(e mask.Entry) bool { return found[e.Value] })
}

// Keep makes the request for an upstream on this machine, with all values in it.
func (g *Gate) Keep(ctx context.Context, d *Decided, r audit.Receipt, to Target) (Kept, error) {
	if r.ID() == "" {
		return Kept{}, errNoReceipt
	}
	if d.Action() == policy.Refuse {
		return Kept{}, errNotAllowed
	}
	body, err := g.finish(d.chat, nil, nil, to, false)
	if err != nil {
		return Kept{}, err
	}
	if err := d.commit(ctx, "local"); err != nil {
		return Kept{}, err
	}
	return Kept{outbound{body: body, header: to.Header, upstream: to.Upstream, book: d.task.Book(), made: true}}, nil
}

// finish applies the edits, adds the note, names the model, takes out what is
// for Weir alone and adapts the body to the upstream.
func (g *Gate) finish(c *wire.Chat, edits []wire.Edit, patches []wire.Patch, to Target, withNote bool) ([]byte, error) {
	edits, patches = slices.Clone(edits), slices.Clone(patches)
	if withNote {
		e, p := noteAt(c)
		edits, patches = append(edits, e...), append(patches, p...)
	}
	if to.Model != c.Model {
		edits = append(edits, wire.Edit{Leaf: c.ModelLeaf, Start: 0, End: len(c.Model), New: to.Model})
	}
	if c.Weir != nil {
		drop := c.Without(func(outer, name string) bool { return outer == "metadata" && strings.HasPrefix(name, "weir_") })
		edits = outside(c, edits, drop)
		patches = append(patches, drop...)
	}
	body, err := c.Splice(edits, patches)
	if err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	body, err = to.Profile.Adapt(body, g.opts.Limits)
	if err != nil {
		return nil, fmt.Errorf("adapt request to %s: %w", to.Upstream, err)
	}
	return body, nil
}

// outside drops the edits of leaves that a patch removes.
func outside(c *wire.Chat, edits []wire.Edit, drop []wire.Patch) []wire.Edit {
	var out []wire.Edit
	for _, e := range edits {
		start, end := c.RootRange(e.Leaf)
		inside := false
		for _, p := range drop {
			inside = inside || start >= p.Start && end <= p.End
		}
		if !inside {
			out = append(out, e)
		}
	}
	return out
}

// maskEdits returns the edits that replace what is masked or withheld, and the
// entries they use. Text that looks like one of the task's own placeholders is
// masked as well: it must come back as the text that it is.
func (d *Decided) maskEdits(also *mask.Book) ([]wire.Edit, []mask.Entry, error) {
	book, leaves := d.task.Book(), d.chat.Leaves()
	spans, styles := d.masked()
	withheldLeaf := map[int]bool{}
	var edits []wire.Edit
	for _, i := range d.Examined.withheld {
		withheldLeaf[i] = true
		edits = append(edits, wire.Edit{Leaf: i, Start: 0, End: len(leaves[i].Value), New: withheld})
	}
	taken := mask.Taken(d.chat.Raw())
	style := func(l pii.Label) mask.Style { return cmp.Or(styles[l], mask.StylePlaceholder) } // a literal has no verdict
	var used []mask.Entry
	for i, l := range leaves {
		if withheldLeaf[i] || len(spans[i]) == 0 && (book.Len() == 0 || !d.chat.Places[i].Maskable || protocolWord(l.Value)) {
			continue
		}
		if p := d.chat.Places[i]; also.Len() > 0 && p.Maskable && p.Field != "model" && p.Field != "role" {
			spans[i] = append(spans[i], also.Find(l.Value)...)
		}
		es, entries, err := book.Edits(l.Value, spans[i], style, taken)
		if err != nil {
			return nil, nil, err
		}
		used = append(used, entries...)
		for _, e := range es {
			edits = append(edits, wire.Edit{Leaf: i, Start: e.Start, End: e.End, New: e.Text})
		}
	}
	return edits, used, nil
}

// masked returns the spans to mask by leaf, and the style of each label.
func (d *Decided) masked() (map[int][]pii.Span, map[pii.Label]mask.Style) {
	spans, styles := map[int][]pii.Span{}, map[pii.Label]mask.Style{}
	for _, v := range d.verdicts {
		if v.Action == policy.Mask {
			spans[v.Leaf] = append(spans[v.Leaf], v.Span)
			styles[v.Label] = mask.Style(v.Style)
		}
	}
	return spans, styles
}

func needsNote(masked []mask.Entry) bool {
	return slices.ContainsFunc(masked, mask.Entry.Placeholder)
}

// noteAt puts the note at the end of the first system message's text, or in a
// system message of its own in front.
func noteAt(c *wire.Chat) ([]wire.Edit, []wire.Patch) {
	if m := c.Messages[0]; m.Role == "system" || m.Role == "developer" {
		for i, l := range c.Leaves() {
			if p := c.Places[i]; p.Message == 0 && p.Field == "content" && l.Kind == wire.String && l.Key == "content" && c.AtRoot(i) {
				return []wire.Edit{{Leaf: i, Start: len(l.Value), End: len(l.Value), New: "\n\n" + note}}, nil
			}
		}
	}
	return nil, []wire.Patch{{Start: c.MessagesAt, End: c.MessagesAt, New: `{"role":"system","content":"` + note + `"},`}}
}

// withheldPatches replaces parts of earlier turns that were kept here because
// they could not be read.
func (d *Decided) withheldPatches() []wire.Patch {
	var out []wire.Patch
	for _, o := range d.withheldParts {
		if o.Leaf < 0 {
			out = append(out, wire.Patch{Start: o.Start, End: o.End, New: `{"type":"text","text":"[` + o.Kind + ` withheld: kept on the user's device]"}`})
		}
	}
	return out
}

// commit stores what the step taught the task: minted placeholders, and what was
// decided about each message that held something.
func (d *Decided) commit(ctx context.Context, placement string) error {
	up := task.Update{Settled: map[task.Digest]task.Settled{}}
	for i, m := range d.chat.Messages {
		if s, ok := d.settled(i, placement); ok {
			up.Settled[task.Digest(m.Digest)] = s
		}
	}
	for _, c := range d.chat.Chain() {
		up.Chain = append(up.Chain, task.Digest(c))
	}
	if err := d.task.Commit(ctx, up); err != nil {
		return &wire.Error{Code: wire.CodeStoreUnavailable, Message: "the task could not be stored, so nothing was sent", Err: err}
	}
	return nil
}

// settled sums up what was decided about message i, if it held anything: what
// of it was kept here, and what the user answered.
func (d *Decided) settled(i int, placement string) (task.Settled, bool) {
	if d.cloud != nil {
		return d.cloud.settled(i, placement)
	}
	s := task.Settled{Placement: placement, Actions: map[string]string{}}
	held := false
	note := func(name string, action policy.Action) {
		held = true
		s.Tainted = s.Tainted || action == policy.KeepLocal
		if chosen, ok := d.step.Answers[name]; ok {
			s.Actions[name] = string(chosen)
		}
	}
	for n, f := range d.findings {
		if f.Place.Message == i && !f.Settled {
			note(string(f.Label), d.actionOf(n))
		}
	}
	for n, o := range d.Examined.opaque {
		if o.Message == i && !o.settled {
			action := policy.KeepLocal
			if d.failed == nil {
				action = d.opaque[n].Action
			}
			note("opaque."+o.Kind, action)
		}
	}
	return s, held
}

// actionOf returns the action for finding n; without a valid decision it stays
// here.
func (d *Decided) actionOf(n int) policy.Action {
	if d.failed != nil {
		return policy.KeepLocal
	}
	return d.verdicts[n].Action
}

// TaintsReply says that an answer to this step, written on this machine, may
// hold what was kept here.
func (d *Decided) TaintsReply() bool {
	if d.cloud != nil {
		return d.cloud.TaintsReply()
	}
	return d.tainted || d.Action() == policy.KeepLocal || d.failed != nil
}
