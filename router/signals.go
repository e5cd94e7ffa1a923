package router

import (
	"context"
	"strings"

	"weir/internal/gate"
	"weir/internal/wire"
	"weir/policy"
)

// heuristics recognizes kinds of requests by their words. It is rough on
// purpose: it only chooses between two places that are both allowed.
type heuristics struct{ words map[string]hint }

// hint is what a word speaks for; a word may speak for several things.
type hint uint8

const (
	hintHard  hint = 1 << iota // work for a large model
	hintExact                  // the answer depends on the characters of a value
	hintTitle                  // a title, tags or a summary ...
	hintChat                   // ... of a conversation
)

func newHeuristics() *heuristics {
	h := &heuristics{words: map[string]hint{}}
	for kind, list := range map[hint]string{
		hintHard:  "prove proof derive design architect architecture debug refactor implement optimize optimise analyze analyse tradeoff tradeoffs algorithm complexity migrate migration strategy thorough thoroughly theorem",
		hintExact: "checksum validate validity valid spell spelled digits letters characters reverse reversed initials anagram sort sum compare capitalize uppercase lowercase rhyme rhymes",
		hintTitle: "title tags tag topic emoji summary summarize",
		hintChat:  "chat conversation session thread",
	} {
		for w := range strings.FieldsSeq(list) {
			h.words[w] |= kind
		}
	}
	return h
}

// read returns all that the words of a text speak for.
func (h *heuristics) read(text string) hint {
	var found hint
	var word [16]byte
	n := 0
	for i := 0; i <= len(text); i++ {
		c := byte(' ')
		if i < len(text) {
			c = text[i] | 0x20
		}
		if c >= 'a' && c <= 'z' {
			if n < len(word) {
				word[n] = c
			}
			n++
			continue
		}
		if n > 2 && n <= len(word) {
			found |= h.words[string(word[:n])]
		}
		n = 0
	}
	return found
}

// hardLength is the length in bytes of a prompt that counts as hard whatever it
// says.
const hardLength = 6000

// text joins the words of the last user message.
func lastUserText(c *wire.Chat) string {
	last := -1
	for i, m := range c.Messages {
		if m.Role == "user" {
			last = i
		}
	}
	var b strings.Builder
	for i, l := range c.Leaves() {
		if p := c.Places[i]; p.Message == last && p.Field == "content" && l.Kind == wire.String {
			b.WriteString(l.Value)
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// stepKind tells turns, tool loops and side requests apart.
func (h *heuristics) stepKind(c *wire.Chat, text string) string {
	switch role := c.Last().Role; {
	case role == "tool" || role == "function":
		return "loop"
	case !c.Tools && h.read(tail(text, sideTail))&(hintTitle|hintChat) == hintTitle|hintChat:
		return "side"
	}
	return "turn"
}

// sideTail is how much of a message's end is looked at for a request of the
// client's own: the conversation that it is about stands before.
const sideTail = 600

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// signals gathers what the place of a step depends on.
func (s *Server) signals(ctx context.Context, x *exchange, d *gate.Decided) Signals {
	c := d.Chat()
	sig := Signals{
		Mode: x.route.Mode, Action: d.Action(), Unexamined: d.Failed() != nil, Undecided: d.Err() != nil,
		Tools: c.Tools, Schema: c.Schema, Tokens: estimateTokens(c),
		SideRequest: x.kind == "side", Loop: x.kind == "loop",
		Cloud: x.route.cloudSide(x.downCloud), Local: x.route.localSide(x.downLocal),
	}
	for _, o := range c.Opaque {
		sig.Vision = sig.Vision || o.Kind == "image"
	}
	if sig.Loop {
		sig.Last = s.placed.last(d.Task().ID())
	}
	if d.Action() == policy.Mask {
		sig.MaskDamage = d.MaskDamage()
	}
	if sig.Mode != Auto {
		return sig // the words do not matter
	}
	if sig.Local.Configured && sig.Local.Context == 0 {
		sig.Local.Context = localContext(ctx, x)
	}
	words := s.heuristics.read(x.text)
	sig.AsksMasked = d.Action() == policy.Mask && words&hintExact != 0
	sig.Hard = len(x.text) > hardLength || words&hintHard != 0 || strings.Contains(x.text, "```")
	return sig
}

// localContext asks the local server how much its model reads; 0 if it does not
// say.
func localContext(ctx context.Context, x *exchange) int {
	models, err := x.route.local.Models(ctx, x.auth)
	if err != nil {
		return 0
	}
	for _, m := range models {
		if x.route.localModel == "" || m.ID == x.route.localModel {
			return m.Context
		}
	}
	return 0
}

// bytesPerToken is a cautious average over languages and code.
const bytesPerToken = 3

func estimateTokens(c *wire.Chat) int { return len(c.Raw())/bytesPerToken + 512 }
