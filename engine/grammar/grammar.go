package grammar

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Spec is what a reply must be: an answer, or calls, or either.
type Spec struct {
	// Answer is the schema of the answer, which is JSON; nil if there may be
	// none. See [AnyObject].
	Answer jsontext.Value
	// Calls may be made instead of an answer, if there are any.
	Calls []Function
	// OneCall allows no second call.
	OneCall bool
	// Thought says that the reply comes behind a thought, after which the model
	// is used to writing up to two line ends.
	Thought bool
}

// AnyObject is the schema of every JSON object.
func AnyObject() jsontext.Value { return jsontext.Value(`{"type":"object"}`) }

// Grammar is a compiled spec. It is safe for concurrent use. It holds names
// and values of the schema, so it prints its size only.
type Grammar struct {
	vocab *Vocab
	nodes []node
	root  int32
	punctuation

	mu   sync.Mutex // guards idle
	idle []*machine
}

// Compile makes a grammar. The error is an [*Error] whose pointer is within
// the answer's schema, or within the parameters of the function that it names.
func Compile(v *Vocab, s Spec) (*Grammar, error) {
	c := newCompiler(v)
	var roots []int32
	if s.Answer != nil {
		n, err := c.schema(s.Answer, false)
		if err != nil {
			return nil, err
		}
		roots = append(roots, n)
	}
	if len(s.Calls) > 0 {
		n, err := c.calls(s.Calls, s.OneCall)
		if err != nil {
			return nil, err
		}
		roots = append(roots, n)
	}
	root, err := c.node(node{kind: kindAlt, kids: roots})
	if err != nil {
		return nil, err
	}
	if s.Thought {
		lead, err := c.node(node{kind: kindBytes, bytes: words([]string{"", "\n", "\n\n"})})
		if err != nil {
			return nil, err
		}
		if root, err = c.seq(lead, root); err != nil {
			return nil, err
		}
	}
	measure(c.nodes)
	if c.nodes[root].height > maxDepth {
		return nil, &Error{Reason: fmt.Sprintf("the schema allows no value, or none with at most %d brackets within one another", maxDepth)}
	}
	flatten(c.nodes)
	return &Grammar{vocab: v, nodes: c.nodes, root: root, punctuation: c.punctuation}, nil
}

// schema makes the node of a schema.
func (c *compiler) schema(raw jsontext.Value, plain bool) (int32, error) {
	v, bad := readValue(raw)
	if bad != nil {
		return 0, bad
	}
	c.root = v
	return c.conjoin([]part{{v: v}}, plain)
}

// LogValue prints the size alone.
func (g *Grammar) LogValue() slog.Value { return slog.StringValue(g.size()) }

// Format prints the size alone, whatever the verb.
func (g *Grammar) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, g.size()) }

func (g *Grammar) size() string { return fmt.Sprintf("grammar(%d nodes)", len(g.nodes)) }

// Matcher is a grammar on its way through one reply. It is for one goroutine.
type Matcher struct {
	m    *machine
	at   int32
	stop []int32
	mask []uint64
}

// Start begins a reply, which ends with one of the tokens of stop. Close gives
// the matcher's memory back.
func (g *Grammar) Start(stop []int32) *Matcher {
	g.mu.Lock()
	var m *machine
	if n := len(g.idle); n > 0 {
		m, g.idle = g.idle[n-1], g.idle[:n-1]
	}
	g.mu.Unlock()
	if m == nil {
		m = newMachine(g)
	}
	return &Matcher{m: m, at: m.begin(), stop: slices.Clone(stop), mask: make([]uint64, g.vocab.Words())}
}

// Close ends the matcher.
func (m *Matcher) Close() {
	if m.m == nil {
		return
	}
	g := m.m.g
	if m.m.large() {
		m.m.forget()
	}
	g.mu.Lock()
	g.idle = append(g.idle, m.m)
	g.mu.Unlock()
	m.m = nil
}

// Mask is the tokens that may come, a bit for each id: those that keep the
// reply the beginning of what the grammar allows, and the stop tokens exactly
// where it may end. It is the matcher's own and changes with the next call.
func (m *Matcher) Mask() []uint64 {
	clear(m.mask)
	if m.at == dead {
		return m.mask
	}
	m.m.mask(m.at, m.mask)
	for _, id := range m.stop {
		word, bit := int(id>>6), uint64(1)<<(id&63)
		if word >= len(m.mask) {
			continue
		}
		if m.mask[word] &^= bit; m.m.states[m.at].end {
			m.mask[word] |= bit
		}
	}
	return m.mask
}

// Accept takes the token that came, and reports whether it was allowed.
func (m *Matcher) Accept(id int32) bool {
	if m.at == dead {
		return false
	}
	if slices.Contains(m.stop, id) {
		return m.m.states[m.at].end
	}
	v := m.m.g.vocab
	if id < 0 || int(id) >= len(v.tokens) || v.tokens[id] == "" {
		return false
	}
	return m.text(v.tokens[id])
}

// text takes bytes.
func (m *Matcher) text(s string) bool {
	at := m.at
	for i := range len(s) {
		if at = m.m.next(at, s[i]); at == dead {
			return false
		}
	}
	m.at = m.m.bound(at)
	return true
}

// Done reports whether the reply may end.
func (m *Matcher) Done() bool { return m.at != dead && m.m.states[m.at].end }
