package tokenizer

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// kindSet is which kinds of JSON values a parameter may have.
type kindSet uint8

const (
	stringKind kindSet = 1 << iota
	numberKind
	boolKind
	nullKind
	objectKind
	arrayKind

	anyKind = stringKind | numberKind | boolKind | nullKind | objectKind | arrayKind
)

var kindNames = map[string]kindSet{
	"string": stringKind, "number": numberKind, "integer": numberKind, "boolean": boolKind,
	"null": nullKind, "object": objectKind, "array": arrayKind,
}

// parameters are the kinds of a tool's parameters.
type parameters map[string]kindSet

// of returns the kinds of a parameter. One that was not described is a string:
// that is what the model wrote, and nothing of it is lost.
func (p parameters) of(key string) kindSet {
	if k, ok := p[key]; ok {
		return k
	}
	return stringKind
}

// schemas reads the parameters of tools, by the tools' names. What cannot be
// read is taken for not described.
func schemas(tools []jsontext.Value) map[string]parameters {
	type function struct {
		Name       string `json:"name"`
		Parameters struct {
			Properties map[string]jsontext.Value `json:"properties"`
		} `json:"parameters"`
	}
	byName := map[string]parameters{}
	for _, raw := range tools {
		var tool struct {
			function `json:",embed"`
			Function *function `json:"function"`
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			continue
		}
		f := &tool.function
		if tool.Function != nil {
			f = tool.Function
		}
		p := parameters{}
		for key, schema := range f.Parameters.Properties {
			p[key] = schemaKinds(schema, 8)
		}
		byName[f.Name] = p
	}
	return byName
}

// schemaKinds returns the kinds that a JSON schema allows, as far as its type,
// enum, const, anyOf and oneOf say; depth bounds how far it is followed.
func schemaKinds(schema jsontext.Value, depth int) kindSet {
	var s struct {
		Type  jsontext.Value   `json:"type"`
		Enum  []jsontext.Value `json:"enum"`
		Const jsontext.Value   `json:"const"`
		AnyOf []jsontext.Value `json:"anyOf"`
		OneOf []jsontext.Value `json:"oneOf"`
	}
	if err := json.Unmarshal(schema, &s); err != nil || depth == 0 {
		return anyKind
	}
	var kinds kindSet
	var names []string
	if s.Type.Kind() == '"' {
		names = make([]string, 1)
		_ = json.Unmarshal(s.Type, &names[0]) // it is a string
	} else if s.Type != nil && json.Unmarshal(s.Type, &names) != nil {
		return anyKind
	}
	for _, n := range names {
		kinds |= kindNames[n]
	}
	if kinds != 0 {
		return kinds
	}
	if s.Const != nil {
		s.Enum = append(s.Enum, s.Const)
	}
	for _, v := range s.Enum {
		kinds |= kindOf(v)
	}
	for _, sub := range append(s.AnyOf, s.OneOf...) {
		kinds |= schemaKinds(sub, depth-1)
	}
	if kinds == 0 {
		return anyKind
	}
	return kinds
}

func kindOf(v jsontext.Value) kindSet {
	switch v.Kind() {
	case '"':
		return stringKind
	case '0':
		return numberKind
	case 't', 'f':
		return boolKind
	case 'n':
		return nullKind
	case '{':
		return objectKind
	case '[':
		return arrayKind
	}
	return 0
}

// json writes a value that the model wrote as plain text. It is taken for
// another kind than a string only if it is one, and as a string if it is
// nothing that is allowed: losing it would be worse.
func (k kindSet) json(text string) string {
	s := strings.TrimFunc(text, isPythonSpace)
	switch strings.ToLower(s) { // True and None are Python's spellings
	case "true", "false":
		if k&boolKind != 0 {
			return strings.ToLower(s)
		}
	case "null", "none":
		if k&nullKind != 0 {
			return "null"
		}
	}
	v := jsontext.Value(s)
	if v.IsValid() && kindOf(v)&k&(numberKind|objectKind|arrayKind) != 0 {
		return s
	}
	return quote(text)
}
