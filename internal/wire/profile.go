package wire

import (
	"slices"
	"strings"
)

// Profile says what a server wants written differently. The zero value changes
// nothing.
type Profile struct {
	// DeveloperToSystem writes the role developer as system, and joins all such
	// messages into one in front, for chat templates that know no developer and
	// take instructions only there.
	DeveloperToSystem bool
	// MaxTokensField is the name under which the server takes the limit of
	// output tokens: "max_tokens" or "max_completion_tokens". Empty keeps the
	// client's.
	MaxTokensField string
	// FlattenText writes content that is an array of text parts as one string.
	FlattenText bool
	// Drop lists members of the top level that the server does not take.
	Drop []string
}

func (p Profile) zero() bool {
	return !p.DeveloperToSystem && p.MaxTokensField == "" && !p.FlattenText && len(p.Drop) == 0
}

// Adapt rewrites a chat request's body for the server. What the profile does not
// name stays byte for byte.
func (p Profile) Adapt(body []byte, lim Limits) ([]byte, error) {
	if p.zero() {
		return body, nil
	}
	c, err := ReadChat(body, lim)
	if err != nil {
		return nil, err
	}
	patches := c.Without(func(outer, name string) bool { return outer == "" && slices.Contains(p.Drop, name) })
	var edits []Edit
	for i, l := range c.leaves {
		switch {
		case l.doc != 0 || l.parent < 0:
		case l.Kind == Name && c.containers[l.parent].parent < 0 && p.renames(c, l.Value):
			edits = append(edits, Edit{Leaf: i, Start: 0, End: len(l.Value), New: p.MaxTokensField})
		}
	}
	var gone map[int]bool
	if p.DeveloperToSystem {
		var lead []Patch
		var renamed []Edit
		lead, renamed, gone = c.leadingSystem()
		patches, edits = append(patches, lead...), append(edits, renamed...)
	}
	if p.FlattenText {
		patches = append(patches, c.flatten(gone)...)
	}
	return c.Splice(edits, patches)
}

// leadingSystem returns the patches that make one leading system message of all
// system and developer messages, and the messages that went into it. If they are
// that already there are none. If one of them holds more than text, a name or a
// cache mark say, nothing is joined, so that nothing is lost: the role is renamed
// where it stands.
func (c *Chat) leadingSystem() ([]Patch, []Edit, map[int]bool) {
	gone := map[int]bool{}
	var texts []string
	for n, m := range c.Messages {
		if m.Role != "system" && m.Role != "developer" {
			continue
		}
		text, plain := c.plainText(n)
		if !plain {
			return nil, c.renameDeveloper(), nil
		}
		texts = append(texts, text)
		gone[n] = true
	}
	if len(gone) == 0 || len(gone) == 1 && c.Messages[0].Role == "system" {
		return nil, nil, nil
	}
	var drop []Patch
	for n, m := range c.Messages {
		if gone[n] {
			drop = append(drop, Patch{Start: m.Start, End: m.End})
		}
	}
	one := `{"role":"system","content":"` + escape(strings.Join(texts, "\n\n")) + `"}`
	if len(gone) < len(c.Messages) {
		one += ","
	}
	out := c.withCommas(drop)
	if out[0].Start == c.MessagesAt {
		out[0].New = one // an insertion here would touch the removal
		return out, nil, gone
	}
	return append(out, Patch{Start: c.MessagesAt, End: c.MessagesAt, New: one}), nil, gone
}

// renameDeveloper returns the edits that write the role developer as system.
func (c *Chat) renameDeveloper() []Edit {
	var out []Edit
	for i, l := range c.leaves {
		if p := c.Places[i]; p.Field == "role" && p.Message >= 0 && l.doc == 0 && l.Kind == String && l.Value == "developer" {
			out = append(out, Edit{Leaf: i, Start: 0, End: len(l.Value), New: "system"})
		}
	}
	return out
}

// plainText joins the text of a message's content, and says whether that is all
// there is to the message.
func (c *Chat) plainText(n int) (string, bool) {
	for _, o := range c.Opaque {
		if o.Message == n {
			return "", false
		}
	}
	var text []string
	for i, l := range c.leaves {
		start, _ := c.RootRange(i)
		if start < c.Messages[n].Start || start >= c.Messages[n].End {
			continue
		}
		if l.doc != 0 { // JSON in the text: taken as it stands
			host := &c.inner[l.doc-1].host
			for host.doc != 0 {
				host = &c.inner[host.doc-1].host
			}
			if len(text) == 0 || text[len(text)-1] != host.Value {
				text = append(text, host.Value)
			}
			continue
		}
		if l.Kind == Name && l.Value != "role" && l.Value != "content" && l.Value != "type" && l.Value != "text" {
			return "", false
		}
		if p := c.Places[i]; p.Field == "content" && l.Kind == String {
			text = append(text, l.Value)
		}
	}
	return strings.Join(text, "\n"), true
}

// renames says that the top-level member is the output limit under the other
// name. If the client sent both, neither is touched.
func (p Profile) renames(c *Chat, name string) bool {
	if p.MaxTokensField == "" || name == p.MaxTokensField || name != "max_tokens" && name != "max_completion_tokens" {
		return false
	}
	return !slices.Contains(p.Drop, name) && !slices.ContainsFunc(c.members, func(m member) bool {
		return m.path[1] == "" && m.path[0] == p.MaxTokensField
	})
}

// flatten returns the patches that write each array of text parts, and nothing
// but text parts, as one string, in messages that are not gone.
func (c *Chat) flatten(gone map[int]bool) []Patch {
	var out []Patch
	for n, m := range c.Messages {
		if gone[n] {
			continue
		}
		var text []string
		plain := true
		for _, o := range c.Opaque {
			plain = plain && o.Message != n
		}
		inArray := false
		for _, l := range c.leaves {
			if l.parent < 0 || l.Key != "text" || l.Kind != String || l.start < int32(m.Start) || l.end > int32(m.End) || l.doc != 0 {
				continue
			}
			if up := c.containers[l.parent]; up.index >= 0 && up.parent >= 0 && c.containers[up.parent].name == "content" {
				text, inArray = append(text, l.Value), true
			}
		}
		start, end, ok := c.contentArray(m)
		if plain && inArray && ok {
			out = append(out, Patch{Start: start, End: end, New: `"` + escape(strings.Join(text, "\n")) + `"`})
		}
	}
	return out
}

// contentArray finds the bytes of a message's content array.
func (c *Chat) contentArray(m Message) (start, end int, ok bool) {
	for _, a := range c.contents {
		if a.start >= m.Start && a.end <= m.End {
			return a.start, a.end, true
		}
	}
	return 0, 0, false
}

// RootRange returns the bytes of the body that hold leaf i, or the string
// that it stands in.
func (d *Doc) RootRange(i int) (start, end int) {
	l := &d.leaves[i]
	for l.doc != 0 {
		l = &d.inner[l.doc-1].host
	}
	return int(l.start), int(l.end)
}

// AtRoot says that leaf i is a token of the body itself and not of a document
// inside a string.
func (d *Doc) AtRoot(i int) bool { return d.leaves[i].doc == 0 }
