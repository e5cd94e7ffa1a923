package router_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/pii"
)

// says is a cloud that answers chats with the bytes that say makes of the
// request's body, and ends the reply in good order.
func says(contentType string, say func(body string) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush() //nolint:errcheck // the client may be gone
		io.WriteString(w, say(string(body)))  //nolint:errcheck // as above
	}
}

// streams is a cloud that answers with events; @EMAIL@ and the like in them are
// replaced by the request's placeholder of that stem.
func streams(raw string) http.HandlerFunc {
	return says("text/event-stream", func(body string) string { return fill(raw, body) })
}

var (
	wanted = regexp.MustCompile(`@[A-Z]+@`)
	minted = regexp.MustCompile(`\b[A-Z]+_[A-Z2-7]{5,}\b`)
)

// fill replaces @STEM@ by the first placeholder of that stem in body that is not
// an example of the note.
func fill(raw, body string) string {
	return wanted.ReplaceAllStringFunc(raw, func(w string) string {
		stem := strings.Trim(w, "@") + "_"
		for _, p := range minted.FindAllString(body, -1) {
			if strings.HasPrefix(p, stem) && p != "PERSON_Q7K2M" && p != "EMAIL_3ZWBA" {
				return p
			}
		}
		return "no-such-placeholder"
	})
}

// delta is one event of a chat stream with one choice.
func delta(fields string) string {
	return `data: {"id":"c-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":` + fields + `,"finish_reason":null}]}` + "\n\n"
}

const (
	finished = `data: {"id":"c-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	done     = "data: [DONE]\n\n"
)

// said is what a client puts together from a stream or a whole answer.
type said struct {
	Role      string       `json:"role"`
	Content   string       `json:"content"`
	Refusal   string       `json:"refusal"`
	Reasoning string       `json:"reasoning_content"`
	Calls     []saidCall   `json:"tool_calls"`
	Function  saidFunction `json:"function_call"`
	Audio     struct {
		Transcript string `json:"transcript"`
	} `json:"audio"`
	Details []struct {
		Text string `json:"text"`
	} `json:"reasoning_details"`

	finish string
	order  string // of what came: c(ontent), f(inish) ...
}

type saidCall struct {
	Index    int          `json:"index"`
	Function saidFunction `json:"function"`
}

type saidFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type saidChunk struct {
	Choices []struct {
		Index   int    `json:"index"`
		Delta   said   `json:"delta"`
		Message said   `json:"message"`
		Finish  string `json:"finish_reason"`
	} `json:"choices"`
	Usage jsontext.Value `json:"usage"`
	Error jsontext.Value `json:"error"`
}

// whole reads an answer that is not a stream, as clients do.
func whole(t failer, body string) *said {
	t.Helper()
	var c saidChunk
	if err := json.Unmarshal([]byte(body), &c); err != nil || len(c.Choices) == 0 {
		t.Fatalf("not an answer (%v): %s", err, body)
	}
	return &c.Choices[0].Message
}

// failer is what a test and an iteration of a property have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

type (
	label       = pii.Label
	httpHandler = http.HandlerFunc
)

// heard is a stream as a client reads it.
type heard struct {
	choices map[int]*said
	usage   int // events with usage
	errs    int // events with an error
	done    int
	events  []string // data of each event
}

// hear reads a stream as clients do, line by line, without the code under test.
func hear(t failer, body string) heard {
	t.Helper()
	h := heard{choices: map[int]*said{}}
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:")
		if !ok {
			continue
		}
		data = strings.TrimPrefix(data, " ")
		h.events = append(h.events, data)
		if data == "[DONE]" {
			h.done++
			continue
		}
		var c saidChunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("event is not JSON (%v): %s", err, data)
		}
		h.add(c)
	}
	return h
}

func (h *heard) add(c saidChunk) {
	if c.Error != nil {
		h.errs++
	}
	if c.Usage != nil && string(c.Usage) != "null" {
		h.usage++
	}
	for _, ch := range c.Choices {
		to := h.choices[ch.Index]
		if to == nil {
			to = &said{}
			h.choices[ch.Index] = to
		}
		d := ch.Delta
		to.Content += d.Content
		to.Refusal += d.Refusal
		to.Reasoning += d.Reasoning
		to.Function.Name += d.Function.Name
		to.Function.Arguments += d.Function.Arguments
		to.Audio.Transcript += d.Audio.Transcript
		for i, x := range d.Details {
			for len(to.Details) <= i {
				to.Details = append(to.Details, struct {
					Text string `json:"text"`
				}{})
			}
			to.Details[i].Text += x.Text
		}
		for _, call := range d.Calls {
			for len(to.Calls) <= call.Index {
				to.Calls = append(to.Calls, saidCall{Index: len(to.Calls)})
			}
			f := &to.Calls[call.Index].Function
			f.Name += call.Function.Name
			f.Arguments += call.Function.Arguments
		}
		if d.Content != "" {
			to.order += "c"
		}
		if ch.Finish != "" {
			to.finish = ch.Finish
			to.order += "f"
		}
	}
}
