package tokenizer

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ParseMessages reads a JSON array of messages in the form that the chat
// template and OpenAI's wire share. Arguments of tool calls may be an object,
// or the string of one, as the wire has them. Members that the template does
// not read are passed over.
func ParseMessages(raw []byte) ([]Message, error) {
	var list []struct {
		Role      string         `json:"role"`
		Content   jsontext.Value `json:"content"`
		Reasoning jsontext.Value `json:"reasoning_content"`
		Calls     jsontext.Value `json:"tool_calls"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("messages are not an array of objects with roles: %w", where(err))
	}
	messages := make([]Message, len(list))
	for i, in := range list {
		m := &messages[i]
		m.Role = in.Role
		m.unreadable = m.parseContent(in.Content)
		if in.Reasoning.Kind() == '"' {
			s, err := unquote(in.Reasoning)
			if err != nil {
				return nil, err
			}
			m.Reasoning = &s
		}
		if in.Calls.Kind() == '[' {
			if err := m.parseCalls(in.Calls); err != nil {
				return nil, err
			}
		}
	}
	return messages, nil
}

func unquote(v jsontext.Value) (string, error) {
	s, err := jsontext.AppendUnquote(nil, v)
	return string(s), err
}

func (m *Message) parseContent(v jsontext.Value) (err error) {
	switch v.Kind() {
	case 'n', 0: // null, or absent
		return nil
	case '"':
		m.Content, err = unquote(v)
		return err
	case '[':
		var items []jsontext.Value
		if err := json.Unmarshal(v, &items); err != nil {
			return ErrContentType
		}
		m.Parts = make([]Part, len(items))
		for i, item := range items {
			if m.Parts[i], err = parsePart(item); err != nil {
				return err
			}
		}
		return nil
	}
	return ErrContentType
}

// parsePart tells a part's kind as the template does: by its members first,
// and by its type only for what has none of them.
func parsePart(v jsontext.Value) (Part, error) {
	has := map[string]jsontext.Value{}
	err := eachMember(v, func(name string, v jsontext.Value) error { has[name] = v.Clone(); return nil })
	if err != nil {
		return Part{}, ErrPartType
	}
	is := func(kind string) bool { return string(has["type"]) == `"`+kind+`"` }
	_, image := has["image"]
	_, url := has["image_url"]
	_, video := has["video"]
	switch {
	case image || url || is("image"):
		return Part{Kind: ImagePart}, nil
	case video || is("video"):
		return Part{Kind: VideoPart}, nil
	case has["text"].Kind() == '"':
		s, err := unquote(has["text"])
		return Part{Text: s}, err
	}
	return Part{}, ErrPartType
}

func (m *Message) parseCalls(v jsontext.Value) error {
	type call struct {
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
	}
	var list []struct {
		call     `json:",embed"`
		Function *call `json:"function"`
	}
	if err := json.Unmarshal(v, &list); err != nil {
		return fmt.Errorf("tool_calls are not objects with a name: %w", where(err))
	}
	for _, in := range list {
		c := in.call
		if in.Function != nil {
			c = *in.Function
		}
		args := c.Arguments
		if args.Kind() == '"' {
			s, err := unquote(args)
			if err != nil {
				return err
			}
			args = jsontext.Value(s)
		}
		if args != nil && (!args.IsValid() || args.Kind() != '{') {
			return ErrArguments
		}
		m.Calls = append(m.Calls, Call{Name: c.Name, Arguments: args})
	}
	return nil
}

// ParseTools reads a JSON array of tools. It takes each for what it is; the
// template writes it as it stands.
func ParseTools(raw []byte) ([]jsontext.Value, error) {
	var list []jsontext.Value
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.Join(ErrTool, where(err))
	}
	return list, nil
}
