package wire

import (
	"slices"
	"strings"
)

// Profile says what a server wants written differently. The zero value changes
// nothing.
type Profile struct {
	// DeveloperToSystem writes the role developer as system, for chat templates
	// that know no developer.
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
		case p.DeveloperToSystem && c.Places[i].Field == "role" && l.Value == "developer":
			edits = append(edits, Edit{Leaf: i, Start: 0, End: len(l.Value), New: "system"})
		case l.Kind == Name && c.containers[l.parent].parent < 0 && p.renames(c, l.Value):
			edits = append(edits, Edit{Leaf: i, Start: 0, End: len(l.Value), New: p.MaxTokensField})
		}
	}
	if p.FlattenText {
		patches = append(patches, c.flatten()...)
	}
	return c.Splice(edits, patches)
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
// but text parts, as one string.
func (c *Chat) flatten() []Patch {
	var out []Patch
	for n, m := range c.Messages {
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
