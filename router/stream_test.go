package router_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"weir/internal/weirtest"
)

// A stream in which nothing was masked reaches the client as it came, whatever
// it holds besides the data of its events.
func TestCleanStreamPassesByteForByte(t *testing.T) {
	t.Parallel()
	raw := ": keep-alive\r\n\r\nevent: x\r\nid: 7\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\\u00e9\\/\"},\"finish_reason\":null}],\"odd\" : 1.50}\r\n\r\n" +
		"retry: 10\n\n" + "data:{\"choices\":[{\"delta\":{\"content\":\"two\"}}]}\n\n" +
		"data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"three\"}}]}\n\n" + finished +
		`data: {"choices":[],"usage":{"prompt_tokens":3,"odd":{"x":[1,2]}}}` + "\n\n" + done
	h := open(t, plan{cloudServer: streams(raw), noLocal: true})
	if a := h.post(user("gpt-x", "hello", stream)); a.body != raw {
		t.Errorf("got\n%q\nwant\n%q", a.body, raw)
	}
}

// In a stream that is restored, whatever is no text of the model stays as it
// came, and so does every event without a placeholder.
func TestRestoredStreamKeepsTheRest(t *testing.T) {
	t.Parallel()
	odd := `data: {"id":"c-1","zz":[1.50,{"k":null}],"choices":[{"index":0,"delta":{"content":"a \u00e9 \/"},"logprobs":{"content":[{"token":"a"}]},"finish_reason":null}],"created" : 7}` + "\n\n"
	masked := `data: {"id":"c-1","zz":[1.50,{"k":null}],"choices":[{"index":0,"delta":{"content":" @EMAIL@, \/"},"logprobs":{"content":[{"token":"b"}]},"finish_reason":null}],"created" : 7}` + "\n\n"
	usage := `data: {"choices":[],"usage":{"prompt_tokens":3,"odd":{"x":[1,2]}}}` + "\n\n"
	h := open(t, plan{cloudServer: streams(": hi\n\n" + odd + masked + finished + usage + done), noLocal: true})
	a := h.post(user("gpt-x", "Write to "+email, stream))
	for _, want := range []string{": hi\n\n", odd, finished, usage, done} {
		if !strings.Contains(a.body, want) {
			t.Errorf("lost %q in %q", want, a.body)
		}
	}
	restored := strings.NewReplacer("@EMAIL@", email, `{"content":[{"token":"b"}]}`, "null").Replace(masked)
	if !strings.Contains(a.body, restored) && !strings.Contains(a.body, strings.Replace(restored, `\/`, `/`, 1)) {
		t.Errorf("no %q in %q", restored, a.body)
	}
}

// Servers may put the finish reason into the chunk with the last text.
func TestFinishReasonBesideText(t *testing.T) {
	t.Parallel()
	last := `data: {"choices":[{"index":0,"delta":{"content":"Hello @PERSON@"},"finish_reason":"stop"}]}` + "\n\n"
	h := open(t, plan{cloudServer: streams(delta(`{"role":"assistant","content":""}`) + last + done), noLocal: true})
	got := hear(t, h.post(user("gpt-x", "Greet "+person, stream)).body).choices[0]
	if got.Content != "Hello "+person || got.finish != "stop" {
		t.Errorf("got %+v", got)
	}
	if i := strings.IndexByte(got.order, 'f'); i >= 0 && i < len(got.order)-1 {
		t.Errorf("text came after the finish reason: %s", got.order)
	}
}

// Pieces of each kind of text that may hold a placeholder, cut in the middle of
// it.
func TestEveryTextOfAChunkIsRestored(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		form string // with %s for the piece
		text func(*said) string
	}{
		"content":           {`{"content":"%s"}`, func(s *said) string { return s.Content }},
		"refusal":           {`{"refusal":"%s"}`, func(s *said) string { return s.Refusal }},
		"reasoning_content": {`{"reasoning_content":"%s"}`, func(s *said) string { return s.Reasoning }},
		"tool call":         {`{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}`, func(s *said) string { return s.Calls[0].Function.Arguments }},
		"second tool call":  {`{"tool_calls":[{"index":1,"function":{"arguments":"%s"}}]}`, func(s *said) string { return s.Calls[1].Function.Arguments }},
		"function call":     {`{"function_call":{"arguments":"%s"}}`, func(s *said) string { return s.Function.Arguments }},
		"reasoning details": {`{"reasoning_details":[{"type":"reasoning.text","text":"%s"}]}`, func(s *said) string { return s.Details[0].Text }},
		"audio transcript":  {`{"audio":{"transcript":"%s"}}`, func(s *said) string { return s.Audio.Transcript }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, ended := range []string{finished + done, done, finished} {
				h := open(t, plan{noLocal: true, cloudServer: says("text/event-stream", func(body string) string {
					var b strings.Builder
					for _, piece := range cut(fill(`for @EMAIL@`, body), 3) {
						b.WriteString(delta(strings.Replace(tc.form, "%s", piece, 1)))
					}
					return b.String() + ended
				})})
				a := h.post(user("gpt-x", "Write to "+email, stream))
				got := hear(t, a.body)
				if got.choices[0] == nil || tc.text(got.choices[0]) != "for "+email || got.errs != 0 {
					t.Errorf("got %s", a.body)
				}
			}
		})
	}
}

func cut(s string, n int) (out []string) {
	for len(s) > n {
		out, s = append(out, s[:n]), s[n:]
	}
	return append(out, s)
}

// A value with characters that JSON escapes stays inside its string, also in the
// older form of a tool call.
func TestRestoredArgumentsStayJSON(t *testing.T) {
	t.Parallel()
	const quoted = `O"Brien\Ann`
	for name, form := range map[string]string{
		"tool call":     `{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}`,
		"function call": `{"function_call":{"arguments":"%s"}}`,
	} {
		for _, mode := range []string{"", stream} {
			h := open(t, plan{noLocal: true, also: map[string]label{quoted: "PERSON_NAME"}, cloudServer: func() httpHandler {
				typ := "application/json"
				if mode != "" {
					typ = "text/event-stream"
				}
				return says(typ, func(body string) string {
					args := fill(`{\"who\":\"@PERSON@\"}`, body)
					if mode == "" {
						return `{"choices":[{"index":0,"message":` + strings.Replace(form, "%s", args, 1) + `,"finish_reason":"stop"}]}`
					}
					return delta(strings.Replace(form, "%s", args[:14], 1)) + delta(strings.Replace(form, "%s", args[14:], 1)) + finished + done
				})
			}()})
			a := h.post(user("gpt-x", `Call O\"Brien\\Ann`, mode))
			s := &said{}
			if mode != "" {
				s = hear(t, a.body).choices[0]
			} else {
				s = whole(t, a.body)
			}
			args := s.Function.Arguments
			if len(s.Calls) > 0 {
				args = s.Calls[0].Function.Arguments
			}
			if args != `{"who":"O\"Brien\\Ann"}` {
				t.Errorf("%s %s: arguments %s", name, mode, args)
			}
		}
	}
}

// An upstream that stops without a sign of the end has broken off, however
// orderly the connection was closed.
func TestSilentEndIsNoEnd(t *testing.T) {
	t.Parallel()
	var now string
	h := open(t, plan{noLocal: true, cloudServer: says("text/event-stream", func(body string) string { return fill(now, body) })})
	second := `data: {"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":null}]}` + "\n\n"
	for name, raw := range map[string]string{
		"nothing":                 "",
		"only a comment":          ": hi\n\n",
		"text":                    delta(`{"content":"half"}`),
		"the word error":          delta(`{"content":"error"}`),
		"a member called error":   delta(`{"content":"x","error":null}`),
		"the word finish_reason":  delta(`{"content":"\"finish_reason\":\"stop\""}`),
		"one that has begun":      delta(`{"content":"a"}`) + finished + second,
		"finish reason null":      delta(`{"content":"half","finish_reason":null}`),
		"one of two choices":      delta(`{"content":"a"}`) + second + finished,
		"tool call arguments":     delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"error\":\"error\"}"}}]}`),
		"a piece that says error": delta(`{"tool_calls":[{"index":0,"function":{"arguments":"error"}}]}`),
	} {
		for _, text := range []string{"hello", "Write to " + email} {
			now = raw
			a := h.post(user("gpt-x", text, stream, `"n":2,`))
			if got := hear(t, a.body); got.errs != 1 || !strings.Contains(a.body, "upstream_interrupted") {
				t.Errorf("%s: the stream ended without an error: %q", name, a.body)
			}
		}
	}
}

// Signs of the end that servers give in their own way.
func TestSoundEnds(t *testing.T) {
	t.Parallel()
	var now string
	h := open(t, plan{noLocal: true, cloudServer: says("text/event-stream", func(body string) string { return fill(now, body) })})
	second := `data: {"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}` + "\n\n"
	for name, raw := range map[string]string{
		"finish and done":      delta(`{"content":"x"}`) + finished + done,
		"finish alone":         delta(`{"content":"x"}`) + finished,
		"spaced finish":        delta(`{"content":"x"}`) + `data: { "choices" : [ { "index" : 0 , "delta" : {} , "finish_reason" :  "stop" } ] }` + "\n\n",
		"done alone":           delta(`{"content":"x"}`) + done,
		"done without a blank": delta(`{"content":"x"}`) + "data: [DONE]\n",
		"done without a line":  delta(`{"content":"x"}`) + "data: [DONE]",
		"both choices":         delta(`{"content":"x"}`) + finished + second,
		"an error object":      delta(`{"content":"x"}`) + `data: {"error":{"message":"m"}}` + "\n\n",
	} {
		for _, text := range []string{"hello", "Write to " + email} {
			now = raw
			a := h.post(user("gpt-x", text, stream))
			if strings.Contains(a.body, "upstream_interrupted") {
				t.Errorf("%s: taken for broken: %q", name, a.body)
			}
			if a.body != raw {
				t.Errorf("%s: got %q", name, a.body)
			}
		}
	}
}

// Mangled placeholders come back too; unknown ones stay.
func TestMangledPlaceholders(t *testing.T) {
	t.Parallel()
	var now func(string) string
	h := open(t, plan{noLocal: true, cloudServer: says("text/event-stream", func(body string) string { return now(body) })})
	for name, mangle := range map[string]func(string) string{
		"lower case":  strings.ToLower,
		"escaped":     func(p string) string { return strings.Replace(p, "_", `\\_`, 1) },
		"space":       func(p string) string { return strings.Replace(p, "_", " ", 1) },
		"hyphen":      func(p string) string { return strings.Replace(p, "_", "-", 1) },
		"bold":        func(p string) string { return "**" + p + "**" },
		"back quotes": func(p string) string { return "`" + p + "`" },
		"genitive":    func(p string) string { return p + "'s" },
	} {
		for _, n := range []int{1, 4, 100} {
			now = func(body string) string {
				var b strings.Builder
				for _, piece := range jsonPieces("to "+mangle(fill("@EMAIL@", body))+" and EMAIL_AAAAA.", n) {
					b.WriteString(delta(`{"content":"` + piece + `"}`))
				}
				return b.String() + finished + done
			}
			got := hear(t, h.post(user("gpt-x", "Write to "+email, stream)).body).choices[0].Content
			if !strings.Contains(got, email) || !strings.HasSuffix(got, " and EMAIL_AAAAA.") {
				t.Errorf("%s in pieces of %d: %q", name, n, got)
			}
		}
	}
}

// jsonPieces cuts the inside of a JSON string without cutting an escape.
func jsonPieces(s string, n int) (out []string) {
	for len(s) > 0 {
		end := min(n, len(s))
		if s[end-1] == '\\' && end < len(s) && (end < 2 || s[end-2] != '\\') {
			end++
		}
		out, s = append(out, s[:end]), s[end:]
	}
	return out
}

// An answer that is not strict JSON is restored all the same, and stays what it
// was.
func TestOddAnswersAreRestored(t *testing.T) {
	t.Parallel()
	const quoted = `O"Brien`
	for name, raw := range map[string]string{
		"duplicate members": `{"a":1,"a":2,"choices":[{"message":{"content":"to @PERSON@"}}]}`,
		"deep":              `{"deep":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `,"choices":[{"message":{"content":"to @PERSON@"}}]}`,
		"error body":        `{"error":{"message":"about @PERSON@"}}`,
		"other shape":       `{"output":[{"text":"about @PERSON@"}]}`,
	} {
		h := open(t, plan{
			noLocal: true, also: map[string]label{quoted: "PERSON_NAME"},
			cloudServer: says("application/json", func(body string) string { return fill(raw, body) }),
		})
		a := h.post(user("gpt-x", `Greet O\"Brien`))
		if want := strings.Replace(raw, "@PERSON@", `O\"Brien`, 1); a.body != want {
			t.Errorf("%s: got %s", name, a.body)
		}
	}
	h := open(t, plan{noLocal: true, cloudServer: says("text/plain", func(body string) string { return fill("say @EMAIL@ to", body) })})
	if a := h.post(user("gpt-x", "Write to "+email)); a.body != "say "+email+" to" {
		t.Errorf("plain text: %s", a.body)
	}
}

// A byte order mark belongs to the stream, not to its first field.
func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloudServer: streams("\ufeff" + delta(`{"content":"@EMAIL@"}`) + finished + done), noLocal: true})
	a := h.post(user("gpt-x", "Write to "+email, stream))
	if !strings.Contains(a.body, email) {
		t.Errorf("got %q", a.body)
	}
}

func TestManyChoicesAndCalls(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 7, 64} {
		calls := weirtest.Behaviour{Reply: weirtest.Tools, Piece: n, ToolCalls: nil}
		h := open(t, plan{cloud: weirtest.Options{Default: calls}, noLocal: true})
		tools := `"n":3,"tools":[{"type":"function","function":{"name":"send","parameters":{"type":"object","required":["to","cc"],"properties":{"to":{"type":"string"},"cc":{"type":"array"}}}}}],`
		a := h.post(user("gpt-x", "Write to "+email, stream, tools, `"stream_options":{"include_usage":true},`))
		got := hear(t, a.body)
		if len(got.choices) != 3 || got.usage != 1 || got.done != 1 {
			t.Fatalf("pieces of %d: %s", n, a.body)
		}
		for i, c := range got.choices {
			if want := `{"cc":["` + email + `"],"to":"` + email + `"}`; len(c.Calls) != 1 || c.Calls[0].Function.Arguments != want || c.finish != "tool_calls" {
				t.Errorf("pieces of %d, choice %d: %+v", n, i, c)
			}
		}
	}
}

// Channels of one answer are interleaved: calls among each other, and choices.
func TestInterleavedChannels(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 7, 64} {
		h := open(t, plan{noLocal: true, cloudServer: says("text/event-stream", func(body string) string {
			text := fill(`to @EMAIL@ or @PERSON@`, body)
			var b strings.Builder
			for _, p := range cut(text, n) {
				for _, choice := range []string{"0", "1"} {
					b.WriteString(`data: {"choices":[{"index":` + choice + `,"delta":{"content":"` + p + `","tool_calls":[{"index":1,"function":{"arguments":"` + p + `"}},{"index":0,"function":{"arguments":"` + p + `"}}]}}]}` + "\n\n")
				}
			}
			for _, choice := range []string{"1", "0"} {
				b.WriteString(`data: {"choices":[{"index":` + choice + `,"delta":{},"finish_reason":"stop"}]}` + "\n\n")
			}
			return b.String() + done
		})})
		a := h.post(user("gpt-x", "Write to "+person+" at "+email, stream))
		got := hear(t, a.body)
		want := "to " + email + " or " + person
		for i := range 2 {
			c := got.choices[i]
			if c.Content != want || c.Calls[0].Function.Arguments != want || c.Calls[1].Function.Arguments != want {
				t.Errorf("pieces of %d, choice %d: %+v", n, i, c)
			}
		}
	}
}

// What happens to the connection behind the end marker is no break.
func TestBreakBehindTheEnd(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"hello", "Write to " + email} {
		h := open(t, plan{noLocal: true, cloudServer: func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) //nolint:errcheck // the client may be gone
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, delta(`{"content":"x"}`)+done) //nolint:errcheck // as above
			http.NewResponseController(w).Flush()            //nolint:errcheck // as above
			panic(http.ErrAbortHandler)
		}})
		if a := h.post(user("gpt-x", text, stream)); a.body != delta(`{"content":"x"}`)+done {
			t.Errorf("%q", a.body)
		}
	}
}
