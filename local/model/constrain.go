package model

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/engine/grammar"
	"weir/engine/tokenizer"
)

// responseFormat is what a request asks of the answer's form.
type responseFormat struct {
	Type   string `json:"type"`
	Schema *struct {
		Schema jsontext.Value `json:"schema"`
	} `json:"json_schema"`
}

// answer is the schema that the answer must satisfy, nil for any text. strict
// does not matter: what is asked for is what comes.
func (in *wireRequest) answer() (jsontext.Value, error) {
	f := in.ResponseFormat
	if f == nil {
		return nil, nil
	}
	switch f.Type {
	case "text":
		return nil, nil
	case "json_object":
		return grammar.AnyObject(), nil
	case "json_schema":
		if f.Schema == nil || f.Schema.Schema == nil {
			return nil, bad("/response_format/json_schema/schema", "a response_format of the type json_schema needs a schema")
		}
		return f.Schema.Schema, nil
	}
	return nil, bad("/response_format/type", "the type of response_format must be text, json_object or json_schema")
}

// constrain finds the grammar of a reply, if it must have one: that of the
// answer's schema, with calls beside it if the model may choose, or that of a
// call if there must be one.
func (m *Model) constrain(in *wireRequest, r *request, forced string) error {
	answer, err := in.answer()
	if err != nil {
		return err
	}
	s := grammar.Spec{Answer: answer, OneCall: r.oneCall, Thought: r.thinking}
	if answer == nil && forced == "" {
		return nil
	}
	if forced != "" {
		s.Answer = nil // a call is no answer
	}
	var places []int // of the calls among the tools
	for i, raw := range r.tools {
		f := functionOf(raw)
		if forced == "" || forced == anyTool || forced == f.Name {
			s.Calls, places = append(s.Calls, f), append(places, i)
		}
	}
	if r.grammar, err = m.grammars.get(m.vocab(), s); err != nil {
		return schemaError(err, places)
	}
	return nil
}

// functionOf reads a tool that [toolName] has taken.
func functionOf(raw jsontext.Value) grammar.Function {
	var t struct {
		Function struct {
			Name       string         `json:"name"`
			Parameters jsontext.Value `json:"parameters"`
			Strict     jsontext.Value `json:"strict"`
		} `json:"function"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return grammar.Function{} // toolName has read it
	}
	return grammar.Function{Name: t.Function.Name, Parameters: t.Function.Parameters, Strict: t.Function.Strict.Kind() == 't'}
}

// schemaError says where in the request a schema cannot be used.
func schemaError(err error, places []int) error {
	e, ok := errors.AsType[*grammar.Error](err)
	if !ok {
		return err
	}
	if c, ok := errors.AsType[*grammar.CallError](err); ok {
		return bad(fmt.Sprintf("/tools/%d/function/parameters%s", places[c.Function], e.Pointer), "the tool cannot be enforced: %s", e.Reason)
	}
	return bad("/response_format/json_schema/schema"+e.Pointer, "the schema cannot be enforced: %s", e.Reason)
}

// grammars are those used last. A client sends the same schema again and
// again, and a grammar learns about tokens.
type grammars struct {
	mu   sync.Mutex
	list []kept // the one used last is last
}

type kept struct {
	key [sha256.Size]byte
	g   *grammar.Grammar
}

// maxGrammars bounds them: one takes a megabyte, and more when it is used much.
const maxGrammars = 16

func (l *grammars) get(v *grammar.Vocab, s grammar.Spec) (*grammar.Grammar, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %v %v", s.Answer, s.OneCall, s.Thought)
	for _, f := range s.Calls {
		fmt.Fprintf(h, " %q %q %v", f.Name, f.Parameters, f.Strict)
	}
	key := [sha256.Size]byte(h.Sum(nil))
	l.mu.Lock()
	i := slices.IndexFunc(l.list, func(k kept) bool { return k.key == key })
	if i >= 0 {
		k := l.list[i]
		l.list = append(slices.Delete(l.list, i, i+1), k)
		l.mu.Unlock()
		return k.g, nil
	}
	l.mu.Unlock()
	g, err := grammar.Compile(v, s)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, kept{key, g})
	if len(l.list) > maxGrammars {
		l.list = slices.Delete(l.list, 0, 1)
	}
	return g, nil
}

// vocabulary is the tokens for grammars.
func vocabulary(t *tokenizer.Tokenizer, size int) *grammar.Vocab {
	tokens := make([]grammar.Token, t.Size())
	for i := range tokens {
		text := t.Token(int32(i))
		id, added := t.ID(text)
		tokens[i] = grammar.Token{Text: text, Markup: added && id == int32(i)}
	}
	return grammar.NewVocab(tokens, size)
}

// thoughtMask is the tokens that may come in a thought before a constrained
// answer: text, and the token that ends it.
func (m *Model) thoughtMask() []uint64 {
	mask := make([]uint64, (m.gen.Vocab()+63)/64)
	for i := range m.text.Size() {
		text := m.text.Token(int32(i))
		id, added := m.text.ID(text)
		if text != "" && (!added || id != int32(i)) || int32(i) == m.thought {
			mask[i/64] |= 1 << (i % 64)
		}
	}
	return mask
}

// guide says what may come in one constrained choice.
type guide struct {
	m        *Model
	matcher  *grammar.Matcher
	thinking bool
	seen     int // tokens of the reply that were taken
}

// newGuide begins a choice. Nil is for one that is free.
func (m *Model) newGuide(r *request) (*guide, error) {
	if r.grammar == nil {
		return nil, nil
	}
	g := &guide{m: m, matcher: r.grammar.Start(m.gen.Stop()), thinking: r.thinking}
	for _, id := range r.begun {
		if !g.matcher.Accept(id) {
			g.matcher.Close()
			return nil, bad("tools", "the name of this tool cannot be written by the model")
		}
	}
	return g, nil
}

// allowed is the hook of [engine.Request]; nil if the choice is free.
func (g *guide) allowed() func([]int32) []uint64 {
	if g == nil {
		return nil
	}
	return func(reply []int32) []uint64 {
		for _, id := range reply[g.seen:] {
			switch {
			case !g.thinking:
				if !g.matcher.Accept(id) {
					return nil // it was in no mask; nothing may follow
				}
			case id == g.m.thought:
				g.thinking = false
			}
		}
		g.seen = len(reply)
		if g.thinking {
			return g.m.inThought()
		}
		return g.matcher.Mask()
	}
}

func (g *guide) close() {
	if g != nil {
		g.matcher.Close()
	}
}
