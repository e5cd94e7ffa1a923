//lint:file-ignore ST1005 the errors of the chat template are in its words

package tokenizer

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// The errors of the chat template, in its words.
var (
	ErrNoMessages     = errors.New("No messages provided.")
	ErrNoUserQuery    = errors.New("No user query found in messages.")
	ErrSystemNotFirst = errors.New("System message must be at the beginning.")
	ErrRole           = errors.New("Unexpected message role.")
	ErrContentType    = errors.New("Unexpected content type.")
	ErrPartType       = errors.New("Unexpected item type in content.")
	ErrSystemImage    = errors.New("System message cannot contain images.")
	ErrSystemVideo    = errors.New("System message cannot contain videos.")
	ErrArguments      = errors.New("tool call arguments are not a JSON object")
	ErrTool           = errors.New("tool is not valid JSON, or has a member twice")
)

// Chat is a conversation and how it is to be rendered. The zero value of each
// switch is the template's default.
type Chat struct {
	Messages []Message
	// Tools are the JSON descriptions of tools that may be called.
	Tools []jsontext.Value

	// NoThinking has the reply begin after an empty thought.
	NoThinking bool
	// PreserveThinking keeps the thoughts of earlier turns in the prompt.
	PreserveThinking bool
	// KeepEmptyThoughts writes the empty thought of NoThinking into earlier
	// turns of the assistant as well. The template leaves it out, although the
	// turn was generated behind it; with it, a conversation's next prompt begins
	// with the last one, so that it can be continued without reading it again.
	KeepEmptyThoughts bool
	// NumberVision precedes pictures and films with their number.
	NumberVision bool
	// NoReply leaves out the beginning of the assistant's next turn.
	NoReply bool
}

// String prints counts only.
func (c Chat) String() string {
	return fmt.Sprintf("chat(%d messages, %d tools)", len(c.Messages), len(c.Tools))
}

// GoString is String.
func (c Chat) GoString() string { return c.String() }

// LogValue logs counts only.
func (c Chat) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Render writes the conversation as the model was trained to read it.
func (c Chat) Render() (Prompt, error) {
	r := renderer{Chat: c}
	if err := r.render(); err != nil {
		return Prompt{}, err
	}
	return r.out, nil
}

type renderer struct {
	Chat
	out            Prompt
	images, videos int
}

func (r *renderer) render() error {
	if len(r.Messages) == 0 {
		return ErrNoMessages
	}
	if err := r.opening(); err != nil {
		return err
	}
	query, err := r.lastQuery()
	if err != nil {
		return err
	}
	for i, m := range r.Messages {
		content, err := r.content(m, true)
		if err != nil {
			return err
		}
		switch m.Role {
		case System:
			if i > 0 {
				return ErrSystemNotFirst
			}
		case User:
			r.out.mark("<|im_start|>user\n")
			r.put(content)
			r.out.mark("<|im_end|>\n")
		case Assistant:
			if err := r.assistant(m, content, i > query); err != nil {
				return err
			}
		case Tool:
			r.toolResult(content, r.role(i-1), r.role(i+1))
		default:
			return ErrRole
		}
	}
	r.reply()
	return nil
}

// role returns the role of message i, or "" if there is none.
func (r *renderer) role(i int) string {
	if i < 0 || i >= len(r.Messages) {
		return ""
	}
	return r.Messages[i].Role
}

// opening writes the system's turn, which is also where tools are described.
func (r *renderer) opening() error {
	var system rendered
	first := r.Messages[0]
	if first.Role == System {
		var err error
		if system, err = r.content(first, false); err != nil {
			return err
		}
	}
	if len(r.Tools) == 0 {
		if first.Role == System {
			r.out.mark("<|im_start|>system\n")
			r.put(system)
			r.out.mark("<|im_end|>\n")
		}
		return nil
	}
	r.out.mark("<|im_start|>system\n" + toolsBefore)
	for _, tool := range r.Tools {
		text, err := pythonJSON(tool)
		if err != nil {
			return ErrTool
		}
		r.out.mark("\n")
		r.out.put(text)
	}
	r.out.mark(toolsAfter)
	if !system.empty() {
		r.out.mark("\n\n")
		r.put(system)
	}
	r.out.mark("<|im_end|>\n")
	return nil
}

// lastQuery returns the index of the last message in which a user asks
// something, rather than reporting what a tool said.
func (r *renderer) lastQuery() (int, error) {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role != User {
			continue
		}
		content, err := r.content(r.Messages[i], false)
		if err != nil {
			return 0, err
		}
		if s := content.text(); !strings.HasPrefix(s, "<tool_response>") || !strings.HasSuffix(s, "</tool_response>") {
			return i, nil
		}
	}
	return 0, ErrNoUserQuery
}

func (r *renderer) assistant(m Message, content rendered, current bool) error {
	var reasoning string
	if m.Reasoning != nil {
		reasoning = *m.Reasoning
	} else if text := content.text(); strings.Contains(text, "</think>") {
		reasoning, content = divideThought(text)
	}
	r.out.mark("<|im_start|>assistant\n")
	switch {
	case r.PreserveThinking || current:
		r.out.mark("<think>\n")
		r.out.put(trim(reasoning))
		r.out.mark("\n</think>\n\n")
	case r.KeepEmptyThoughts && r.NoThinking:
		r.out.mark(emptyThought)
	}
	r.put(content)
	for i, call := range m.Calls {
		if i > 0 {
			r.out.mark("\n")
		} else if trim(content.text()) != "" {
			r.out.mark("\n\n")
		}
		if err := r.call(call); err != nil {
			return err
		}
	}
	r.out.mark("<|im_end|>\n")
	return nil
}

// divideThought splits content that holds its own thought: from the last
// opening before the first closing to there; what follows the last closing is
// the answer.
func divideThought(text string) (reasoning string, answer rendered) {
	before, _, _ := strings.Cut(text, "</think>")
	before = strings.TrimRight(before, "\n")
	if i := strings.LastIndex(before, "<think>"); i >= 0 {
		before = before[i+len("<think>"):]
	}
	after := text[strings.LastIndex(text, "</think>")+len("</think>"):]
	return strings.TrimLeft(before, "\n"), rendered{{text: strings.TrimLeft(after, "\n")}}
}

func (r *renderer) call(c Call) error {
	r.out.mark("<tool_call>\n<function=")
	r.out.put(c.Name)
	r.out.mark(">\n")
	for _, a := range arguments(c.Arguments) {
		if a.err != nil {
			return ErrArguments
		}
		r.out.mark("<parameter=")
		r.out.put(a.name)
		r.out.mark(">\n")
		r.out.put(a.value)
		r.out.mark("\n</parameter>\n")
	}
	r.out.mark("</function>\n</tool_call>")
	return nil
}

// toolResult writes what a tool said. Results in a row share a user's turn.
func (r *renderer) toolResult(content rendered, before, after string) {
	if before != "" && before != Tool {
		r.out.mark("<|im_start|>user")
	}
	r.out.mark("\n<tool_response>\n")
	r.put(content)
	r.out.mark("\n</tool_response>")
	if after != Tool {
		r.out.mark("<|im_end|>\n")
	}
}

const emptyThought = "<think>\n\n</think>\n\n"

// reply begins the assistant's next turn.
func (r *renderer) reply() {
	switch {
	case r.NoReply:
	case r.NoThinking:
		r.out.mark("<|im_start|>assistant\n" + emptyThought)
	default:
		r.out.mark("<|im_start|>assistant\n<think>\n")
	}
}

// rendered is a message's content: text of others, and our marks for what is
// not text.
type rendered []piece

func (c rendered) text() string { return Prompt{c}.Text() }

func (c rendered) empty() bool { return c.text() == "" }

func (r *renderer) put(c rendered) {
	for _, p := range c {
		if p.text != "" {
			r.out.pieces = append(r.out.pieces, p)
		}
	}
}

// content renders and trims a message's content. With count set, pictures and
// films are counted; the template renders some contents twice.
func (r *renderer) content(m Message, count bool) (rendered, error) {
	if m.unreadable != nil {
		return nil, m.unreadable
	}
	if m.Parts == nil {
		return rendered{{text: trim(m.Content)}}, nil
	}
	var out rendered
	for _, p := range m.Parts {
		switch p.Kind {
		case TextPart:
			out = append(out, piece{text: p.Text})
		case ImagePart:
			if m.Role == System && !count {
				return nil, ErrSystemImage
			}
			out = append(out, r.vision("Picture ", "<|image_pad|>", &r.images, count)...)
		case VideoPart:
			if m.Role == System && !count {
				return nil, ErrSystemVideo
			}
			out = append(out, r.vision("Video ", "<|video_pad|>", &r.videos, count)...)
		default:
			return nil, ErrPartType
		}
	}
	return trimPieces(out), nil
}

// trim is Python's str.strip: Unicode white space, and the four separators
// that Go's does not count as such.
func trim(s string) string { return strings.TrimFunc(s, isPythonSpace) }

func isPythonSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
