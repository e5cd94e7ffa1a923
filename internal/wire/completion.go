package wire

import (
	"strconv"
	"strings"
)

// Completion is a chat answer, or one chunk of a streamed one.
type Completion struct {
	*Doc
	// Texts are the texts that a model wrote, in document order.
	Texts []ReplyText
	// Choices are the entries of "choices".
	Choices []Choice
}

// ReplyText is one text of an answer.
type ReplyText struct {
	Leaf int
	// Choice is the index of the choice, or -1 outside of choices.
	Choice int
	// Call is the index of the tool call, or -1.
	Call int
	// Field is the member that holds it: content, refusal, reasoning_content
	// and the like, or arguments and name of a call. It is empty for texts
	// elsewhere.
	Field string
	// Path names the place of the text within its delta or message, as in
	// "tool_calls/[0]/function/arguments". Texts of one path continue each
	// other from chunk to chunk, so an element that has a member "index" is
	// named by that: a chunk holds only the elements that it adds to. It is
	// empty for texts outside of them.
	Path string

	element element
	rest    string // of Path, behind the element
}

// element is an entry of an array that stands directly in a delta or message.
type element struct {
	choice int // positions, not indices
	array  string
	at     int // -1 if the text is in none
}

// Choice is one entry of "choices".
type Choice struct {
	Index int
	// Finished says that it has a finish reason.
	Finished bool
	// Logprobs is the place of its log probabilities, if they are an object.
	LogprobsStart, LogprobsEnd int
}

// ReadCompletion reads an answer or a chunk. It is as lenient as can be: what it
// does not know is kept as it is.
func ReadCompletion(data []byte) (*Completion, error) {
	v := &completionVisitor{c: &Completion{}}
	doc, err := Parse(data, Limits{Embedded: -1}, v)
	if err != nil {
		return nil, err
	}
	v.c.Doc = doc
	v.resolve()
	return v.c, nil
}

// completionVisitor notes the texts by their position; members that give an
// index may come later.
type completionVisitor struct {
	c       *Completion
	leaves  int
	indices map[element]int
}

func (v *completionVisitor) Open(path []Elem, start int) {
	switch {
	case len(path) == 2 && path[0].Name == "choices" && path[1].Index >= 0:
		v.c.Choices = append(v.c.Choices, Choice{Index: path[1].Index})
	case isLogprobs(path) && len(v.c.Choices) > 0:
		v.c.Choices[len(v.c.Choices)-1].LogprobsStart = start
	}
}

func (v *completionVisitor) Close(path []Elem, end int) {
	if isLogprobs(path) && len(v.c.Choices) > 0 {
		v.c.Choices[len(v.c.Choices)-1].LogprobsEnd = end
	}
}

func isLogprobs(path []Elem) bool {
	return len(path) == 3 && path[0].Name == "choices" && path[2].Name == "logprobs"
}

func (v *completionVisitor) Scalar(path []Elem, leaf *Leaf, lit string) bool {
	if lit != "" || len(path) == 0 {
		return lit == ""
	}
	inChoice := len(path) > 2 && path[0].Name == "choices" && path[1].Index >= 0 && len(v.c.Choices) > 0
	if inChoice && leaf.Kind == Number {
		v.index(path, leaf.Value)
	}
	if inChoice && len(path) == 3 && path[2].Name == "finish_reason" {
		v.c.Choices[len(v.c.Choices)-1].Finished = true
	}
	if leaf.Kind == String {
		v.text(path, inChoice)
	}
	v.leaves++
	return true
}

// index notes the index members of choices and tool calls.
func (v *completionVisitor) index(path []Elem, value string) {
	n := 0
	for _, c := range []byte(value) {
		if c < '0' || c > '9' || n > 1<<20 {
			return
		}
		n = n*10 + int(c-'0')
	}
	switch {
	case len(path) == 3 && path[2].Name == "index":
		v.c.Choices[len(v.c.Choices)-1].Index = n
	case len(path) == 6 && path[4].Index >= 0 && path[5].Name == "index":
		if v.indices == nil {
			v.indices = map[element]int{}
		}
		v.indices[elementOf(path)] = n
	}
}

func elementOf(path []Elem) element {
	return element{path[1].Index, path[3].Name, path[4].Index}
}

func (v *completionVisitor) text(path []Elem, inChoice bool) {
	t := ReplyText{Leaf: -1, Choice: -1, Call: -1, element: element{at: -1}}
	name := path[len(path)-1].Name
	if protocolMember(name) {
		return
	}
	if inChoice {
		t.Choice = path[1].Index
		switch {
		case len(path) > 3 && (path[2].Name == "delta" || path[2].Name == "message"):
			t.locate(path)
		case path[2].Name == "logprobs", len(path) == 3:
			return
		}
	}
	t.Leaf = v.leaves
	v.c.Texts = append(v.c.Texts, t)
}

// locate fills in where in a delta or message a text stands.
func (t *ReplyText) locate(path []Elem) {
	name := path[len(path)-1].Name
	switch {
	case len(path) == 4, len(path) == 5 && path[3].Name == "function_call":
		t.Field = name
	case len(path) == 7 && path[3].Name == "tool_calls" && path[5].Name == "function":
		t.Call, t.Field = path[4].Index, name
	}
	if len(path) > 4 && path[4].Index >= 0 {
		t.element = elementOf(path)
		t.Path, t.rest = path[3].Name, joined(path[5:])
		return
	}
	t.Path = joined(path[3:])
}

func joined(path []Elem) string {
	if len(path) == 1 && path[0].Index < 0 {
		return path[0].Name
	}
	parts := make([]string, len(path))
	for i, e := range path {
		if parts[i] = e.Name; e.Index >= 0 {
			parts[i] = place(e.Index)
		}
	}
	return strings.Join(parts, "/")
}

func place(index int) string { return "[" + strconv.Itoa(index) + "]" }

// protocolMember says that a member of an answer holds a word of the protocol.
func protocolMember(name string) bool {
	switch name {
	case "id", "object", "model", "role", "type", "finish_reason", "system_fingerprint", "service_tier":
		return true
	}
	return false
}

// resolve puts leaf numbers and indices in place of positions. Member names are
// leaves too, so value leaves are counted along.
func (v *completionVisitor) resolve() {
	values := make([]int, 0, len(v.c.leaves))
	for i := range v.c.leaves {
		if v.c.leaves[i].Kind != Name {
			values = append(values, i)
		}
	}
	for i := range v.c.Texts {
		t := &v.c.Texts[i]
		t.Leaf = values[t.Leaf]
		if t.Choice < 0 {
			continue
		}
		if e := t.element; e.at >= 0 {
			n, ok := v.indices[e]
			if !ok {
				n = e.at
			}
			if t.Call >= 0 {
				t.Call = n
			}
			if t.Path += "/" + place(n); t.rest != "" {
				t.Path += "/" + t.rest
			}
		}
		if t.Choice < len(v.c.Choices) {
			t.Choice = v.c.Choices[t.Choice].Index
		}
	}
}

// Digests returns the digests of an answer's messages, as they will be when the
// client sends them back.
func (c *Completion) Digests() []Digest {
	sums := map[int]*MessageDigest{}
	var order []int
	for _, t := range c.Texts {
		if t.Choice < 0 {
			continue
		}
		if sums[t.Choice] == nil {
			sums[t.Choice] = NewMessageDigest("assistant")
			order = append(order, t.Choice)
		}
		t.AddTo(sums[t.Choice], c.leaves[t.Leaf].Value)
	}
	var out []Digest
	for _, i := range order {
		if !sums[i].Empty() {
			out = append(out, sums[i].Sum())
		}
	}
	return out
}

// AddTo adds the text, whose value is given, to its message's digest.
func (t ReplyText) AddTo(m *MessageDigest, value string) {
	switch {
	case t.Call >= 0 && t.Field == "name":
		m.Call(t.Call, value, "")
	case t.Call >= 0 && t.Field == "arguments":
		m.Call(t.Call, "", value)
	case t.Path == "function_call/name":
		m.Call(0, value, "")
	case t.Path == "function_call/arguments":
		m.Call(0, "", value)
	case t.Path == "content", t.Path == "refusal":
		m.Content(value)
	}
}
