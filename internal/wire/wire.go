// Package wire reads and writes what clients and model servers send: JSON that
// is kept byte for byte, and server-sent events.
//
// Begin at [ReadChat], which turns a request body into a [Chat]: the original
// bytes, plus every piece of text in them as a [Leaf] that can be examined and
// replaced. [Doc.Splice] writes replacements into the original bytes, so that
// whatever is not replaced stays as the client wrote it: order, spacing,
// escapes, and members nobody here has heard of. [EventReader] does the same
// for streams.
//
// It promises strictness on the way in (duplicate member names, invalid UTF-8
// and excess depth are errors, since a gate that reads a body differently from
// the server behind it can be fooled) and losslessness on the way through. It
// knows nothing of labels, policy or transport, and imports nothing of ours.
package wire

import (
	"strconv"
	"strings"
)

// Elem is one step of a path into a JSON document: a member name, or an array
// index when Index is not negative.
type Elem struct {
	Name  string
	Index int
}

// LeafKind says what kind of token a leaf is.
type LeafKind uint8

// The kinds of leaves.
const (
	String LeafKind = iota // a string value
	Name                   // an object's member name
	Number                 // a number
)

// Leaf is one piece of text in a document: a string, a member name or a number.
// A string that is itself a JSON object or array is replaced by its own leaves,
// to any depth up to [Limits.Embedded].
type Leaf struct {
	// Value is the decoded text. Offsets into it are what [Edit] uses.
	Value string
	// Key is the name of the nearest enclosing object member; for a Name leaf,
	// of the one that encloses the object.
	Key  string
	Kind LeafKind

	parent     int32 // container index
	index      int32 // position within an array, or -1
	start, end int32 // the token within its document
	doc        int32 // 0 is the root document, else embedded[doc-1]
}

// container is an object or array on the way to a leaf.
type container struct {
	parent int32 // -1 at a document's root
	name   string
	index  int32
	doc    int32
}

// embedded is a JSON document that stands inside a string of another.
type embedded struct {
	host Leaf // the string that holds it, a leaf of the outer document
	text string
}

// Doc is a parsed JSON document: its bytes and its leaves. It is immutable.
type Doc struct {
	raw        string
	leaves     []Leaf
	containers []container
	inner      []embedded
	members    []member
}

// member is the place of an object member at the top level or one below, kept
// so that it can be taken out.
type member struct {
	path       [2]string // names from the root; the second is empty at top level
	start, end int32     // from the name's quote to the value's end
}

// Raw returns the document's bytes as they were read.
func (d *Doc) Raw() string { return d.raw }

// Leaves returns the document's leaves in document order. The slice is shared:
// do not modify it.
func (d *Doc) Leaves() []Leaf { return d.leaves }

// Pointer returns the JSON pointer (RFC 6901) of leaf i. A step into a JSON
// document inside a string is written as '#'. The pointer may hold member names
// chosen by the client, so it is content: do not log it.
func (d *Doc) Pointer(i int) string { return d.PointerWithout(i, nil) }

// PointerWithout is Pointer with a star in place of each member name that is in
// hidden: a name can be somebody's address.
func (d *Doc) PointerWithout(i int, hidden map[string]bool) string {
	path := d.Path(i)
	var b strings.Builder
	for _, e := range path {
		switch {
		case e.Name == embeddedStep:
			b.WriteByte('#')
		case e.Index >= 0:
			b.WriteByte('/')
			b.WriteString(strconv.Itoa(e.Index))
		case hidden[e.Name]:
			b.WriteString("/*")
		default:
			b.WriteByte('/')
			b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(e.Name))
		}
	}
	return b.String()
}

// embeddedStep marks in a path that what follows is inside a string. A member
// name cannot hold it: it is not valid UTF-8.
const embeddedStep = "\xff"

// Path returns the path of leaf i from the root. For a Name leaf the path ends
// with the object that holds the member.
func (d *Doc) Path(i int) []Elem {
	l := d.leaves[i]
	var rev []Elem
	if l.Kind != Name {
		switch {
		case l.index >= 0:
			rev = append(rev, Elem{Index: int(l.index)})
		case l.parent >= 0:
			rev = append(rev, Elem{Name: l.Key, Index: -1})
		}
	}
	rev = d.climb(rev, l.parent, l.doc)
	for a, b := 0, len(rev)-1; a < b; a, b = a+1, b-1 {
		rev[a], rev[b] = rev[b], rev[a]
	}
	return rev
}

// climb appends to rev the steps from container c up to the root document.
func (d *Doc) climb(rev []Elem, c, doc int32) []Elem {
	for {
		for c >= 0 {
			k := d.containers[c]
			switch {
			case k.index >= 0:
				rev = append(rev, Elem{Index: int(k.index)})
			case k.name != "" || k.parent >= 0:
				rev = append(rev, Elem{Name: k.name, Index: -1})
			}
			c = k.parent
		}
		if doc == 0 {
			return rev
		}
		host := d.inner[doc-1].host
		rev = append(rev, Elem{Name: embeddedStep, Index: -1})
		switch {
		case host.index >= 0:
			rev = append(rev, Elem{Index: int(host.index)})
		case host.parent >= 0:
			rev = append(rev, Elem{Name: host.Key, Index: -1})
		}
		c, doc = host.parent, host.doc
	}
}
