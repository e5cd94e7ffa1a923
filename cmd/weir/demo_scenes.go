package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/sashabaranov/go-openai"

	"weir/internal/audit"
	"weir/internal/weirtest"
	"weir/internal/wire"
	"weir/router"
)

// scene is one request of the demo.
type scene struct {
	title, model, text string
	keep               bool // goes on in the same conversation
	tools              bool
	ask                bool           // a question to the user may come
	answer             string         // the demo's own answer to it
	lines              *bufio.Scanner // where the user's answer is read from, if not the demo's
}

type message = openai.ChatCompletionMessage

// script is what the demo plays. Names and numbers are invented; the card, phone
// and account numbers are those that vendors publish for examples.
func script() []scene {
	return []scene{
		{title: "nothing private", model: "cloud/assistant", text: "Why is the sky dark at night?"},
		{
			title: "private values are masked, and restored in the stream", model: "cloud/assistant", keep: true,
			text: "Write a reminder to my client Marta Lindqvist, marta.lindqvist@fjord.example, phone +44 20 7946 0958. Her IBAN is DE89 3704 0044 0532 0130 00.",
		},
		{
			title: "next turn: the same placeholders, and a tool call", model: "cloud/tools", keep: true, tools: true,
			text: "Now call the tool to send it to Marta Lindqvist.",
		},
		{
			title: "kept on this machine", model: "auto", keep: true,
			text: "Is my social security number 751-23-4908 written correctly?",
		},
		{
			title: "later, the cloud sees neither that number nor the local answer", model: "cloud/assistant", keep: true,
			text: "Thanks. Analyze the reminder from before and make it friendlier.",
		},
		{
			title: "refused", model: "auto",
			text: "My password is Tr0ub4dor&3-horse, is it strong?",
		},
		{
			title: "the user is asked", model: "cloud/assistant", ask: true, answer: "mask",
			text: "I was diagnosed with type 2 diabetes. What should I eat?",
		},
	}
}

// play sends a scene's request and shows what became of it.
func (d *demo) play(ctx context.Context, n int, s scene) error {
	d.say(fmt.Sprintf("\n%s", d.paint.bold(fmt.Sprintf("── %d. %s ", n, s.title)+strings.Repeat("─", max(1, 66-len(s.title))))))
	history := []message{}
	if s.keep {
		history = d.history
	}
	history = append(history, message{Role: "user", Content: s.text})
	req := openai.ChatCompletionRequest{Model: s.model, Messages: history, Stream: true}
	if s.tools {
		req.Tools = demoTools()
	}
	d.row("user sent", s.text)
	if err := d.showFindings(ctx, req); err != nil {
		return err
	}
	cloudBefore, localBefore := len(d.cloud.Calls()), len(d.local.Calls())
	reply, header, err := d.send(ctx, req, s)
	if err != nil {
		return err
	}
	d.showDecision(ctx, header)
	d.showReceived("cloud got", d.cloud.Calls()[cloudBefore:], true)
	d.showReceived("local got", d.local.Calls()[localBefore:], false)
	d.showReply(reply)
	if s.keep && reply.failed == "" {
		d.history = append(history, reply.message())
		if len(reply.calls) > 0 {
			d.history = append(d.history, message{Role: "tool", ToolCallID: reply.callID, Content: `{"status":"sent"}`},
				message{Role: "assistant", Content: "It is sent."})
		}
	}
	return nil
}

func demoTools() []openai.Tool {
	return []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
		Name: "send_mail", Description: "Send a mail.",
		Parameters: map[string]any{
			"type": "object", "required": []string{"to", "text"},
			"properties": map[string]any{"to": map[string]string{"type": "string"}, "text": map[string]string{"type": "string"}},
		},
	}}}
}

// showFindings asks the front door for a dry run. The values are the user's own,
// and shown on the user's own screen.
func (d *demo) showFindings(ctx context.Context, req openai.ChatCompletionRequest) error {
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	var res router.CheckResult
	if err := d.postJSON(ctx, "/weir/check", body, &res); err != nil {
		return err
	}
	last := fmt.Sprintf("/messages/%d/", len(req.Messages)-1)
	text := req.Messages[len(req.Messages)-1].Content
	shown := 0
	for _, f := range res.Findings {
		if !strings.HasPrefix(f.Pointer, last) || f.End > len(text) {
			continue
		}
		shown++
		d.row("found", fmt.Sprintf("%s %q by %s → %s", f.Label, text[f.Start:f.End], f.By, f.Action))
	}
	if shown == 0 {
		d.row("found", "nothing private in this message")
	}
	return nil
}

func (d *demo) postJSON(ctx context.Context, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask the front door: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the front door's answer: %w", err)
	}
	return json.Unmarshal(b, out)
}

// reply is what the client got.
type reply struct {
	text   string
	calls  []string
	callID string
	failed string
	chunks int
}

func (r reply) message() message {
	m := message{Role: "assistant", Content: r.text}
	for _, c := range r.calls {
		name, args, _ := strings.Cut(c, " ")
		m.ToolCalls = append(m.ToolCalls, openai.ToolCall{ID: r.callID, Type: openai.ToolTypeFunction, Function: openai.FunctionCall{Name: name, Arguments: args}})
	}
	return m
}

// send goes through the go-openai client, as a user's program would.
func (d *demo) send(ctx context.Context, req openai.ChatCompletionRequest, s scene) (reply, http.Header, error) {
	cfg := openai.DefaultConfig("no-key-needed")
	cfg.BaseURL = d.base
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.ask {
		go d.answerQuestions(ctx, s)
	}
	stream, err := openai.NewClientWithConfig(cfg).CreateChatCompletionStream(ctx, req)
	if err != nil {
		api, ok := errors.AsType[*openai.APIError](err)
		if !ok {
			return reply{}, nil, fmt.Errorf("send: %w", err)
		}
		return reply{failed: fmt.Sprintf("HTTP %d %v: %s", api.HTTPStatusCode, api.Code, api.Message)}, nil, nil
	}
	defer stream.Close()
	var r reply
	var args strings.Builder
	name := ""
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r, nil, fmt.Errorf("read stream: %w", err)
		}
		r.chunks++
		for _, c := range chunk.Choices {
			r.text += c.Delta.Content
			for _, t := range c.Delta.ToolCalls {
				name += t.Function.Name
				r.callID += t.ID
				args.WriteString(t.Function.Arguments)
			}
		}
	}
	if name != "" {
		r.calls = append(r.calls, name+" "+args.String())
	}
	return r, stream.Header(), nil
}

// answerQuestions plays the user at the approvals screen.
func (d *demo) answerQuestions(ctx context.Context, s scene) {
	for {
		changed := d.parts.approvals.Changed()
		for _, q := range d.parts.approvals.Pending(ctx) {
			choice := s.answer
			if choice == "" {
				choice = d.askHere(s.lines, q.Choices)
			} else {
				d.row("asked", "send this? choices "+strings.Join(q.Choices, ", ")+"; the demo answers: "+choice)
			}
			if err := d.parts.approvals.Answer(ctx, q.ID, choice, "once", "demo"); err != nil {
				d.row("asked", "the answer was not taken: "+err.Error())
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (d *demo) askHere(lines *bufio.Scanner, choices []string) string {
	fmt.Fprintf(d.io.out, "%-11s policy asks you: %s? ", "asked", strings.Join(choices, ", "))
	if lines != nil && lines.Scan() {
		if choice := strings.TrimSpace(lines.Text()); slices.Contains(choices, choice) {
			return choice
		}
		d.say("            that is none of the choices; taken as refuse")
		return "refuse"
	}
	fmt.Fprintln(d.io.out)
	return "refuse"
}

func (d *demo) showDecision(ctx context.Context, header http.Header) {
	id := header.Get("X-Weir-Decision")
	if id == "" {
		entries, err := d.parts.audit.List(ctx, audit.Filter{Limit: 1})
		if err != nil || len(entries) == 0 {
			return
		}
		id = entries[0].ID
	}
	e, err := d.parts.audit.Get(ctx, id)
	if err != nil {
		d.row("decided", "the decision log does not answer")
		return
	}
	place := e.Placement
	if place == "" {
		place = "goes nowhere"
	}
	d.row("decided", d.paint.bold(e.Action)+" → "+place+"  (rule "+e.Rule+": "+e.Reason+")")
}

// showReceived prints the last message that a stand-in really got.
func (d *demo) showReceived(name string, calls []*weirtest.Call, always bool) {
	shown := false
	for _, c := range calls {
		if !strings.HasSuffix(c.Target, "/chat/completions") {
			continue
		}
		chat, err := wire.ReadChat(c.Body, wire.Limits{})
		if err != nil {
			continue
		}
		shown = true
		d.showMessages(name, chat)
	}
	if !shown && always {
		d.row(name, d.paint.green("nothing"))
	}
}

// lastShown is how many of a request's messages are shown.
const lastShown = 3

func (d *demo) showMessages(name string, chat *wire.Chat) {
	from := max(0, len(chat.Messages)-lastShown)
	if from > 0 {
		d.row(name, d.paint.dim(fmt.Sprintf("(%d earlier messages, then)", from)))
	}
	for i, l := range chat.Leaves() {
		p := chat.Places[i]
		if l.Kind != wire.String || p.Message < from || chat.Messages[p.Message].Role == "system" {
			continue
		}
		switch p.Field {
		case "content":
			d.row(name, chat.Messages[p.Message].Role+": "+oneLine(l.Value))
		case "arguments":
			d.row(name, chat.Messages[p.Message].Role+" called "+p.Tool+": "+l.Key+" = "+oneLine(l.Value))
		}
	}
}

func (d *demo) showReply(r reply) {
	switch {
	case r.failed != "":
		d.row("user got", d.paint.red(r.failed))
	default:
		if r.text != "" {
			d.row("user got", oneLine(r.text)+d.paint.dim(fmt.Sprintf("  (%d chunks)", r.chunks)))
		}
		for _, c := range r.calls {
			d.row("user got", "tool call "+c)
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// row prints one line of a scene, wrapped.
func (d *demo) row(name, text string) {
	const width = 88
	label := d.paint.yellow(fmt.Sprintf("%-11s", name))
	for {
		line := text
		if len(line) > width && !strings.Contains(line[:width], "\x1b") {
			if cut := strings.LastIndexByte(line[:width], ' '); cut > 0 {
				line = line[:cut]
			}
		}
		fmt.Fprintf(d.io.out, "%s %s\n", label, line)
		text = strings.TrimPrefix(text[len(line):], " ")
		if text == "" {
			return
		}
		label = strings.Repeat(" ", 11)
	}
}
