package router

import (
	"regexp"
	"strings"

	"weir/internal/gate"
	"weir/internal/wire"
	"weir/policy"
)

// heuristics recognizes kinds of requests by their text.
type heuristics struct {
	side, asks, hard *regexp.Regexp
}

func newHeuristics() *heuristics {
	return &heuristics{
		// Clients ask for titles and tags of a chat in their own words.
		side: regexp.MustCompile(`(?i)\b(title|tags?|topic|emoji|summary)\b[^.]{0,60}\b(for|of|this|the)\b[^.]{0,40}\b(chat|conversation|session|thread|message)`),
		// Questions whose answer depends on the characters of a value.
		asks: regexp.MustCompile(`(?i)\b(add up|sum of|check digit|checksum|valid(ate|ity)?|spell(ed|ing)?|how many (digits|letters|characters)|(first|last) (letter|digit|four)|reverse|initials|anagram|sort (them|these|by)|compare|capitali[sz]e|uppercase|lowercase|rhymes?)\b`),
		hard: regexp.MustCompile(`(?i)\b(prove|proof|derive|design|architect(ure)?|debug|refactor|implement|optimi[sz]e|analy[sz]e|trade-?offs?|step by step|algorithm|complexity|migrat(e|ion)|strategy|in depth|thorough)\b`),
	}
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
	case !c.Tools && len(text) < 20000 && h.side.MatchString(tail(text, 600)):
		return "side"
	}
	return "turn"
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// signals gathers what the place of a step depends on.
func (s *Server) signals(x *exchange, d *gate.Decided) Signals {
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
		sig.AsksMasked = s.heuristics.asks.MatchString(x.text)
	}
	sig.Hard = len(x.text) > hardLength || strings.Contains(x.text, "```") || s.heuristics.hard.MatchString(x.text)
	return sig
}

// bytesPerToken is a cautious average over languages and code.
const bytesPerToken = 3

func estimateTokens(c *wire.Chat) int { return len(c.Raw())/bytesPerToken + 512 }
