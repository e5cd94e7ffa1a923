package model

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/engine/tokenizer"
)

// render makes the prompt of a request.
func (m *Model) render(in *wireRequest, r *request) (err error) {
	chat := tokenizer.Chat{NoThinking: !m.thinks(in), PreserveThinking: in.Template.PreserveThinking}
	if chat.Messages, err = messagesOf(in.Messages); err != nil {
		return err
	}
	forced := ""
	if r.tools, forced, err = in.toolsToUse(); err != nil {
		return err
	}
	if forced != "" {
		chat.NoThinking = true // the reply begins with the call
	}
	// So that a conversation's next prompt begins with this one and its reply.
	chat.KeepEmptyThoughts = chat.NoThinking
	chat.Tools, r.thinking = r.tools, !chat.NoThinking
	if err := m.constrain(in, r, forced); err != nil {
		return err
	}
	if err := m.encode(chat, r); err != nil {
		return err
	}
	if forced != "" {
		r.begun = m.text.AppendMarkup(nil, "<tool_call>\n<function=")
		if forced != anyTool {
			r.begun = m.text.Append(r.begun, forced)
			r.begun = m.text.AppendMarkup(r.begun, ">\n")
		}
		r.prompt = append(r.prompt, r.begun...)
	}
	if room := m.gen.MaxContext(); len(r.prompt) >= room {
		return tooLong("the messages have %d tokens and the model's context %d", len(r.prompt), room)
	}
	return nil
}

func (m *Model) thinks(in *wireRequest) bool {
	switch {
	case in.Template.EnableThinking != nil:
		return *in.Template.EnableThinking
	case in.Effort != "":
		return in.Effort != "none" && in.Effort != "minimal"
	}
	return !m.opts.NoThinking
}

// encode renders and tokenizes, and finds where prompts to come may part from
// this one: behind the system's message, and at the last messages.
func (m *Model) encode(chat tokenizer.Chat, r *request) error {
	p, err := chat.Render()
	if err != nil {
		return templateError(err)
	}
	r.prompt = m.text.AppendPrompt(nil, p)
	var turns []int
	for i, id := range r.prompt {
		if id == m.turn && i > 0 {
			turns = append(turns, i)
		}
	}
	const last = 3 // an edited turn, a new one, and the reply's own beginning
	if len(turns) > last+1 {
		turns = append(turns[:1], turns[len(turns)-last:]...)
	}
	r.boundaries = turns
	return nil
}

// templateError is the template's refusal: in its words where they hold no
// content, which all of its sentinels do.
func templateError(err error) error {
	for _, known := range []error{
		tokenizer.ErrNoMessages, tokenizer.ErrNoUserQuery, tokenizer.ErrSystemNotFirst, tokenizer.ErrRole,
		tokenizer.ErrContentType, tokenizer.ErrPartType, tokenizer.ErrSystemImage, tokenizer.ErrSystemVideo, tokenizer.ErrArguments,
	} {
		if errors.Is(err, known) {
			return bad("messages", "%s", known)
		}
	}
	if errors.Is(err, tokenizer.ErrTool) {
		return bad("tools", "%s", tokenizer.ErrTool)
	}
	return bad("messages", "the chat template does not take these messages")
}

// anyTool forces a call, of whatever tool.
const anyTool = "\x00"

// toolsToUse returns the tools to describe, and the name of one that must be
// called, or [anyTool].
func (in *wireRequest) toolsToUse() (tools []jsontext.Value, forced string, err error) {
	if k := in.Tools.Kind(); k != 0 && k != 'n' {
		if tools, err = tokenizer.ParseTools(in.Tools); err != nil {
			return nil, "", bad("tools", "tools must be an array of objects")
		}
	}
	names := map[string]bool{}
	for _, t := range tools {
		name, ok := toolName(t)
		if !ok {
			return nil, "", bad("tools", "a tool must have the type function and a name")
		}
		names[name] = true
	}
	choice, err := in.choice()
	switch {
	case err != nil:
		return nil, "", err
	case choice == "none":
		return nil, "", nil
	case choice == "auto":
		return tools, "", nil
	case len(tools) == 0:
		return nil, "", bad("tool_choice", "tool_choice asks for a call and there are no tools")
	case choice == "required":
		return tools, anyTool, nil
	case !names[choice[1:]]:
		return nil, "", bad("tool_choice", "tool_choice names a function that is not among the tools")
	}
	return tools, choice[1:], nil
}

func toolName(raw jsontext.Value) (string, bool) {
	var t struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	err := json.Unmarshal(raw, &t)
	return t.Function.Name, err == nil && t.Function.Name != "" && (t.Type == "function" || t.Type == "")
}

// choice is none, auto, required, or = and a function's name.
func (in *wireRequest) choice() (string, error) {
	wrong := bad("tool_choice", "tool_choice must be none, auto, required or a function")
	switch in.ToolChoice.Kind() {
	case 0, 'n':
		return "auto", nil
	case '"':
		var word string
		if err := json.Unmarshal(in.ToolChoice, &word); err != nil || word != "none" && word != "auto" && word != "required" {
			return "", wrong
		}
		return word, nil
	}
	name, ok := toolName(in.ToolChoice)
	if !ok {
		return "", wrong
	}
	return "=" + name, nil
}
