package tokenizer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// What stands before and after the descriptions of tools.
const (
	toolsBefore = "# Tools\n\nYou have access to the following functions:\n\n<tools>"
	toolsAfter  = "\n</tools>\n\nIf you choose to call a function ONLY reply in the following format with NO suffix:\n\n" +
		"<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n" +
		"<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n" +
		"</parameter>\n</function>\n</tool_call>\n\n<IMPORTANT>\nReminder:\n" +
		"- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within " +
		"<tool_call></tool_call> XML tags\n- Required parameters MUST be specified\n" +
		"- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after\n" +
		"- If there is no function call available, answer the question like normal with your current knowledge and do not " +
		"tell the user about function calls\n</IMPORTANT>"
)

// vision writes the place of a picture or a film.
func (r *renderer) vision(name, pad string, n *int, count bool) rendered {
	if count {
		*n++
	}
	var out rendered
	if r.NumberVision {
		out = append(out, piece{text: fmt.Sprintf("%s%d: ", name, *n), markup: true})
	}
	return append(out, piece{text: "<|vision_start|>" + pad + "<|vision_end|>", markup: true})
}

// trimPieces trims a content of several pieces as if it were one text.
func trimPieces(c rendered) rendered {
	for len(c) > 0 {
		last := &c[len(c)-1]
		if last.text = strings.TrimRightFunc(last.text, isPythonSpace); last.text != "" {
			break
		}
		c = c[:len(c)-1]
	}
	for len(c) > 0 {
		if c[0].text = strings.TrimLeftFunc(c[0].text, isPythonSpace); c[0].text != "" {
			break
		}
		c = c[1:]
	}
	return c
}

// argument is a member of a call's arguments, as the prompt writes it.
type argument struct {
	name, value string
	err         error
}

// arguments lists the members of a JSON object in order: strings as they are,
// everything else as JSON.
func arguments(object jsontext.Value) []argument {
	if len(object) == 0 {
		return nil
	}
	var list []argument
	err := eachMember(object, func(name string, v jsontext.Value) error {
		if v.Kind() == '"' {
			s, err := jsontext.AppendUnquote(nil, v)
			list = append(list, argument{name: name, value: string(s)})
			return err
		}
		s, err := pythonJSON(v)
		list = append(list, argument{name: name, value: s})
		return err
	})
	if err != nil {
		return []argument{{err: err}}
	}
	return list
}

var errNotObject = errors.New("not a JSON object")

// eachMember calls do for the members of an object in order.
func eachMember(object jsontext.Value, do func(name string, v jsontext.Value) error) error {
	if !object.IsValid() || object.Kind() != '{' {
		return errNotObject
	}
	d := jsontext.NewDecoder(strings.NewReader(string(object)))
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		v, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := do(key, v); err != nil {
			return err
		}
	}
	return nil
}

// pythonJSON writes a JSON value as Python's json.dumps with ensure_ascii off:
// a blank after commas and colons, members in order, characters unescaped.
// Numbers keep their spelling.
func pythonJSON(v jsontext.Value) (string, error) {
	if !v.IsValid() {
		return "", errors.New("not valid JSON")
	}
	v = v.Clone()
	err := v.Format(jsontext.Multiline(false), jsontext.SpaceAfterComma(true), jsontext.SpaceAfterColon(true),
		jsontext.PreserveRawStrings(false), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false))
	return string(v), err
}
