// Package contract is the suite that every upstream of Weir passes.
//
// Begin at [Run]: it starts stand-ins, asks for an upstream in front of each,
// and checks what Weir relies on. [RunModel] is the part that is asked of what
// answers by itself. It promises to test only what the gate needs
// from any upstream: bytes unchanged both ways, events as they come, an end that
// is told from a break, and a call that ends when its caller does. Retry,
// breaker and model lists are the upstream's own affair and tested there.
package contract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"weir/internal/weirtest"
	"weir/router/upstream"
)

// Upstream is what the suite tests.
type Upstream interface {
	Do(ctx context.Context, r upstream.Request) (*upstream.Response, error)
}

// Run runs the suite. front returns an upstream that sends to the stand-in and
// never repeats a request.
func Run(t *testing.T, front func(t *testing.T, s *weirtest.StandIn) Upstream) {
	t.Helper()
	h := harness{serve: func(t *testing.T, b weirtest.Behaviour) (*weirtest.StandIn, Upstream) {
		t.Helper()
		s, err := weirtest.Start(weirtest.Options{Default: b})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s, front(t, s)
	}}
	h.run(t, map[string]func(*testing.T, harness){
		"request bytes": requestBytes,
		"whole reply":   wholeReply,
		"stream":        streams,
		"prompt events": promptEvents,
		"usage":         usage,
		"tool calls":    toolCalls,
		"choices":       choices,
		"error bodies":  errorBodies,
		"cancel":        cancels,
		"breaks":        breaks,
		"concurrency":   concurrency,
	})
}

// RunModel runs the part of the suite that an upstream passes which makes its
// replies itself. serve returns one that answers as b's Reply and ToolCalls say,
// whatever else b says.
func RunModel(t *testing.T, serve func(t *testing.T, b weirtest.Behaviour) Upstream) {
	t.Helper()
	h := harness{serve: func(t *testing.T, b weirtest.Behaviour) (*weirtest.StandIn, Upstream) {
		t.Helper()
		return nil, serve(t, b)
	}}
	h.run(t, map[string]func(*testing.T, harness){
		"whole reply": wholeReply,
		"stream":      streams,
		"usage":       usage,
		"tool calls":  toolCalls,
		"choices":     choices,
		"concurrency": concurrency,
	})
}

type harness struct {
	// serve runs what behaves in one way, and an upstream before it. There is no
	// stand-in if the upstream answers by itself.
	serve func(*testing.T, weirtest.Behaviour) (*weirtest.StandIn, Upstream)
}

func (h harness) run(t *testing.T, tests map[string]func(*testing.T, harness)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// prompt makes a chat request whose last user message is text; more is put
// before its closing brace.
func prompt(text, more string) upstream.Request {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		panic(err)
	}
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%s}]%s}`, quoted, more)
	return upstream.Request{Path: "/chat/completions", Body: []byte(body)}
}

const stream = `,"stream":true`

// read sends a request and reads its reply to the end.
func read(ctx context.Context, u Upstream, r upstream.Request) (int, []byte, error) {
	resp, err := u.Do(ctx, r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.Status, body, err
}

func mustRead(t *testing.T, u Upstream, r upstream.Request) []byte {
	t.Helper()
	status, body, err := read(t.Context(), u, r)
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d, error %v", status, err)
	}
	return body
}

type chunk struct {
	Choices []struct {
		Index        int    `json:"index"`
		Message      said   `json:"message"`
		Delta        said   `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Total int `json:"total_tokens"`
	} `json:"usage"`
}

type said struct {
	Content   string `json:"content"`
	ToolCalls []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func decode(t *testing.T, body []byte) chunk {
	t.Helper()
	var c chunk
	if err := json.Unmarshal(body, &c); err != nil {
		t.Fatalf("reply is not JSON: %v", err)
	}
	return c
}

// events splits a whole stream and checks that [DONE] ends it.
func events(t *testing.T, body []byte) []chunk {
	t.Helper()
	frames := strings.Split(strings.TrimSuffix(string(body), "\n\n"), "\n\n")
	last := len(frames) - 1
	if frames[last] != "data: [DONE]" {
		t.Fatalf("the stream ends in %q", frames[last])
	}
	var out []chunk
	for _, f := range frames[:last] {
		data, ok := strings.CutPrefix(f, "data: ")
		if !ok {
			t.Fatalf("event %q", f)
		}
		out = append(out, decode(t, []byte(data)))
	}
	return out
}

// sample holds what is easily lost: several bytes a character, escapes, line
// ends, and no line end at its own end.
const sample = "Ångström Ω 漢字 🙂\t\"quoted\" \\ back\r\nline\u2028sep  end"

func requestBytes(t *testing.T, h harness) {
	s, u := h.serve(t, weirtest.Behaviour{})
	// Spacing, order, escapes and unknown members are the client's own.
	body := []byte("{ \"z\":1.0e0,\t\"model\":\"m\",\n\"messages\":[{\"content\":\"\\u003c\\/é\",\"role\":\"user\"}] ,\"a\":{}}\n")
	mustRead(t, u, upstream.Request{Path: "/chat/completions", Body: body})
	if got := s.Calls()[0].Body; !bytes.Equal(got, body) {
		t.Errorf("arrived %q\nsent    %q", got, body)
	}
}

func wholeReply(t *testing.T, h harness) {
	_, u := h.serve(t, weirtest.Behaviour{Reply: weirtest.EchoLast, Write: 3})
	if got := decode(t, mustRead(t, u, prompt(sample, ""))).Choices[0].Message.Content; got != sample {
		t.Errorf("got %q, want %q", got, sample)
	}
}

func streams(t *testing.T, h harness) {
	for _, piece := range []int{1, 2, 3, 7, 64} {
		for _, write := range []int{0, 1, 3, 7} {
			_, u := h.serve(t, weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: piece, Write: write})
			var got strings.Builder
			all := events(t, mustRead(t, u, prompt(sample, stream)))
			for _, e := range all {
				got.WriteString(e.Choices[0].Delta.Content)
			}
			if got.String() != sample {
				t.Errorf("pieces of %d in writes of %d: got %q", piece, write, got.String())
			}
			if f := all[len(all)-1].Choices[0].FinishReason; f != "stop" {
				t.Errorf("finish reason %q", f)
			}
		}
	}
}

// An event that was sent can be read although the next one is not yet there.
func promptEvents(t *testing.T, h harness) {
	pace := make(chan struct{})
	_, u := h.serve(t, weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: 1, Pace: pace})
	release := make(chan struct{})
	go func() {
		pace <- struct{}{}
		close(release)
	}()
	resp, err := u.Do(t.Context(), prompt("ab", stream))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-release
	var got []byte
	buf := make([]byte, 512)
	for events := 1; events <= 3; events++ {
		for strings.Count(string(got), "\n\n") < events {
			n, err := resp.Body.Read(buf)
			if err != nil {
				t.Fatalf("after %d events: %v", events, err)
			}
			got = append(got, buf[:n]...)
		}
		if n := strings.Count(string(got), "\n\n"); n != events {
			t.Fatalf("%d events, want %d", n, events)
		}
		pace <- struct{}{}
	}
}

func usage(t *testing.T, h harness) {
	_, u := h.serve(t, weirtest.Behaviour{Reply: weirtest.EchoLast})
	all := events(t, mustRead(t, u, prompt("hello", stream+`,"stream_options":{"include_usage":true}`)))
	if last := all[len(all)-1]; last.Usage == nil || len(last.Choices) != 0 {
		t.Error("the last event is not the usage alone")
	}
	for _, e := range events(t, mustRead(t, u, prompt("hello", stream))) {
		if e.Usage != nil {
			t.Error("usage unasked")
		}
	}
}

func toolCalls(t *testing.T, h harness) {
	const args = `{"to":"EMAIL_Q7K2M","body":"é \"x\"\n"}`
	for _, piece := range []int{1, 3, 64} {
		_, u := h.serve(t, weirtest.Behaviour{
			Reply: weirtest.Tools, Piece: piece,
			ToolCalls: []weirtest.ToolCall{{Name: "send", Arguments: args}},
		})
		var name, got strings.Builder
		for _, e := range events(t, mustRead(t, u, prompt("go", stream))) {
			for _, c := range e.Choices[0].Delta.ToolCalls {
				name.WriteString(c.Function.Name)
				got.WriteString(c.Function.Arguments)
			}
		}
		if name.String() != "send" || got.String() != args {
			t.Errorf("streamed in pieces of %d: %s(%s)", piece, name.String(), got.String())
		}
		whole := decode(t, mustRead(t, u, prompt("go", ""))).Choices[0].Message.ToolCalls
		if len(whole) != 1 || whole[0].Function.Arguments != args {
			t.Errorf("whole: %+v", whole)
		}
	}
}

func choices(t *testing.T, h harness) {
	_, u := h.serve(t, weirtest.Behaviour{Reply: weirtest.EchoLast})
	if got := decode(t, mustRead(t, u, prompt("x", `,"n":3`))).Choices; len(got) != 3 || got[2].Index != 2 {
		t.Errorf("choices %+v", got)
	}
}

func errorBodies(t *testing.T, h harness) {
	for _, status := range []int{400, 401, 403, 404, 409, 422, 429, 500, 503} {
		want := fmt.Sprintf("{ \"error\" : {\"message\":\"é %d\"} }\n", status)
		// A wait too long to sit out, so that 429 and 503 come through.
		header := http.Header{"Retry-After": {"3600"}, "X-Request-Id": {"req-7"}}
		_, u := h.serve(t, weirtest.Behaviour{Status: status, Body: want, Header: header})
		resp, err := u.Do(t.Context(), prompt("x", stream))
		if err != nil {
			t.Fatalf("%d: %v", status, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.Status != status || string(body) != want {
			t.Errorf("%d: status %d, body %q, error %v", status, resp.Status, body, err)
		}
		for name := range header {
			if resp.Header.Get(name) != header.Get(name) {
				t.Errorf("%d: header %s is %q", status, name, resp.Header.Get(name))
			}
		}
	}
}

func cancels(t *testing.T, h harness) {
	t.Run("before headers", func(t *testing.T) {
		t.Parallel()
		s, u := h.serve(t, weirtest.Behaviour{Fault: weirtest.Hang})
		ctx, cancel := context.WithCancel(t.Context())
		var g errgroup.Group
		g.Go(func() error {
			c, err := s.Await(t.Context(), 0)
			cancel()
			if err == nil {
				<-c.Ended()
			}
			return err
		})
		if _, err := u.Do(ctx, prompt("x", "")); !errors.Is(err, context.Canceled) {
			t.Errorf("Do: %v, want canceled", err)
		}
		ended(t, s, g.Wait())
	})
	t.Run("within a stream", func(t *testing.T) {
		t.Parallel()
		s, u := h.serve(t, weirtest.Behaviour{Reply: weirtest.EchoLast, Fault: weirtest.HangMidway, FaultAfter: 2})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		resp, err := u.Do(ctx, prompt("x", stream))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := resp.Body.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, context.Canceled) {
			t.Errorf("Read: %v, want canceled", err)
		}
		ended(t, s, nil)
	})
	t.Run("by closing the body", func(t *testing.T) {
		t.Parallel()
		s, u := h.serve(t, weirtest.Behaviour{Reply: weirtest.EchoLast, Fault: weirtest.HangMidway, FaultAfter: 2})
		resp, err := u.Do(t.Context(), prompt("x", stream))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		ended(t, s, nil)
		if _, err := resp.Body.Read(make([]byte, 8)); err == nil || err == io.EOF {
			t.Errorf("Read after Close: %v", err)
		}
	})
}

// ended checks that the stand-in saw its client go.
func ended(t *testing.T, s *weirtest.StandIn, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Await(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	<-c.Ended()
	if !c.ClientLeft() {
		t.Error("the server was not told that its client left")
	}
}

func breaks(t *testing.T, h harness) {
	tests := []struct {
		fault weirtest.Fault
		more  string
	}{
		{weirtest.Reset, stream},
		{weirtest.Reset, ""},
		{weirtest.Truncate, stream},
		{weirtest.Truncate, ""},
		{weirtest.LongLength, ""},
	}
	for _, tt := range tests {
		_, u := h.serve(t, weirtest.Behaviour{Reply: weirtest.EchoLast, Fault: tt.fault, FaultAfter: 2})
		_, body, err := read(t.Context(), u, prompt(sample, tt.more))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("fault %d%s: error %v after %d bytes, want an unexpected end", tt.fault, tt.more, err, len(body))
		}
	}
}

func concurrency(t *testing.T, h harness) {
	s, u := h.serve(t, weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: 3})
	const clients, each = 32, 8
	g, ctx := errgroup.WithContext(t.Context())
	for i := range clients {
		g.Go(func() error {
			for j := range each {
				text := fmt.Sprintf("client %d asks %d", i, j)
				status, body, err := read(ctx, u, prompt(text, ""))
				if err != nil || status != http.StatusOK {
					return fmt.Errorf("client %d: status %d: %w", i, status, err)
				}
				if !bytes.Contains(body, []byte(`"`+text+`"`)) {
					return fmt.Errorf("client %d got another's reply", i)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if s == nil {
		return
	}
	if n := len(s.Calls()); n != clients*each {
		t.Errorf("%d calls arrived, want %d", n, clients*each)
	}
}
