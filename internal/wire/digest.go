package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Digest identifies a message.
type Digest [sha256.Size]byte

// MessageDigest computes a [Digest] from the parts of a message as they come. A
// client sends an answer back in a later request; its digest there equals the
// one computed while the answer went out.
type MessageDigest struct {
	role    string
	content hash.Hash
	calls   []callDigest
	rest    hash.Hash
	any     bool
}

type callDigest struct{ name, arguments hash.Hash }

// NewMessageDigest begins a message of the given role.
func NewMessageDigest(role string) *MessageDigest {
	return &MessageDigest{role: role, content: sha256.New(), rest: sha256.New()}
}

// Content adds text to the message's content.
func (m *MessageDigest) Content(text string) {
	m.any = m.any || text != ""
	m.content.Write([]byte(text))
}

// maxCalls bounds the tool calls of one message that count; a hostile stream
// could name any index.
const maxCalls = 1 << 10

// Call adds text to the name and to the arguments of tool call i.
func (m *MessageDigest) Call(i int, name, arguments string) {
	if i < 0 || i >= maxCalls {
		return
	}
	for len(m.calls) <= i {
		m.calls = append(m.calls, callDigest{sha256.New(), sha256.New()})
	}
	m.any = true
	m.calls[i].name.Write([]byte(name))
	m.calls[i].arguments.Write([]byte(arguments))
}

// other adds a member of the message that is neither.
func (m *MessageDigest) other(key, text string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(text)))
	m.rest.Write([]byte(key + "\x00"))
	m.rest.Write(n[:])
	m.rest.Write([]byte(text))
}

// Empty says that the message has neither content nor calls.
func (m *MessageDigest) Empty() bool { return !m.any }

// Sum returns the digest.
func (m *MessageDigest) Sum() Digest {
	h := sha256.New()
	h.Write([]byte("weir message 1\x00" + m.role + "\x00"))
	h.Write(m.content.Sum(nil))
	h.Write(m.rest.Sum(nil))
	for _, c := range m.calls {
		h.Write(c.name.Sum(nil))
		h.Write(c.arguments.Sum(nil))
	}
	return Digest(h.Sum(nil))
}

// Chain returns the hash chain over the messages: entry i stands for the
// messages 0 to i. Equal prefixes of conversations have equal entries.
func (c *Chat) Chain() []Digest {
	out := make([]Digest, len(c.Messages))
	var prev Digest
	for i, m := range c.Messages {
		h := sha256.New()
		h.Write(prev[:])
		h.Write(m.Digest[:])
		prev = Digest(h.Sum(nil))
		out[i] = prev
	}
	return out
}

// digestMessages fills in the digests of the chat's messages.
func digestMessages(c *Chat) {
	sums := make([]*MessageDigest, len(c.Messages))
	for i, m := range c.Messages {
		sums[i] = NewMessageDigest(m.Role)
	}
	hosts := map[int32]bool{} // whether the string that holds a document counts
	c.digested = make([]bool, len(c.leaves))
	for i := range c.leaves {
		l := &c.leaves[i]
		msg := c.Places[i].Message
		if msg < 0 || msg >= len(sums) {
			continue
		}
		doc := int32(0)
		for l.doc != 0 { // the string that holds the document is the text
			doc = int32(l.doc)
			l = &c.inner[doc-1].host
		}
		if counts, seen := hosts[doc]; seen && doc != 0 {
			c.digested[i] = counts
			continue
		}
		c.digested[i] = l.Kind == String && digestLeaf(c, sums[msg], l)
		hosts[doc] = c.digested[i]
	}
	for i := range sums {
		c.Messages[i].Digest = sums[i].Sum()
	}
}

// InDigest says that leaf i counts in the digest of its message: the message
// would be another one if the leaf's text were. Ids, names, numbers, cache marks,
// the names of members and what servers add to answers do not count.
func (c *Chat) InDigest(i int) bool { return c.digested[i] }

// digestLeaf adds a leaf of the body itself, and says whether it counts.
func digestLeaf(c *Chat, sum *MessageDigest, l *Leaf) bool {
	k := c.containers[l.parent]
	switch {
	case l.Key == "role", l.Key == "id", l.Key == "tool_call_id", l.Key == "type", l.Key == "name" && k.name != "function" && k.name != "function_call":
		return false
	case k.name == "cache_control", l.Key == "reasoning_content", l.Key == "reasoning":
		return false
	case l.Key == "content" && k.index >= 0, l.Key == "refusal" && k.index >= 0,
		l.Key == "text" && k.index >= 0 && k.parent >= 0 && c.containers[k.parent].name == "content":
		sum.Content(l.Value)
	case k.name == "function_call" && l.Key == "name":
		sum.Call(0, l.Value, "")
	case k.name == "function_call" && l.Key == "arguments":
		sum.Call(0, "", l.Value)
	case k.name == "function" && k.parent >= 0 && l.Key == "name":
		sum.Call(int(c.containers[k.parent].index), l.Value, "")
	case k.name == "function" && k.parent >= 0 && l.Key == "arguments":
		sum.Call(int(c.containers[k.parent].index), "", l.Value)
	case sum.role == "assistant":
		// Servers add members of their own to answers and clients send some of
		// them back: an answer is known by what it says.
		return false
	default:
		sum.other(l.Key, l.Value)
	}
	return true
}
