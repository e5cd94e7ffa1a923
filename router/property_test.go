package router_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"weir/pii"
)

// mirror is a cloud that repeats the last user message, cut as it is told.
type mirror struct {
	mu    sync.Mutex
	cuts  []int  // lengths of the pieces, in characters, over and over
	field string // content, reasoning_content, refusal or arguments
	got   string // the text that came
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Stream   bool `json:"stream"`
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	b, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(b, &req) != nil || len(req.Messages) == 0 {
		http.Error(w, "not a request", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	text := req.Messages[len(req.Messages)-1].Content
	m.got = text
	if m.field == "arguments" {
		b, _ := json.Marshal(map[string]string{"x": text}) //nolint:errcheck // it came from JSON
		text = string(b)
	}
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[{"index":0,"message":`+m.delta(text)+`,"finish_reason":"stop"}]}`) //nolint:errcheck // the client may be gone
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	runes := []rune(text)
	for i := 0; len(runes) > 0; i++ {
		n := min(m.cuts[i%len(m.cuts)], len(runes))
		io.WriteString(w, delta(m.delta(string(runes[:n])))) //nolint:errcheck // as above
		runes = runes[n:]
	}
	io.WriteString(w, finished+done) //nolint:errcheck // as above
}

func (m *mirror) delta(text string) string {
	b, _ := json.Marshal(text) //nolint:errcheck // it came from JSON
	if m.field == "arguments" {
		return `{"tool_calls":[{"index":0,"function":{"arguments":` + string(b) + `}}]}`
	}
	return `{"` + m.field + `":` + string(b) + `}`
}

func (m *mirror) heard(s *said) string {
	switch m.field {
	case "content":
		return s.Content
	case "refusal":
		return s.Refusal
	case "reasoning_content":
		return s.Reasoning
	}
	var args struct {
		X string `json:"x"`
	}
	if len(s.Calls) != 1 || json.Unmarshal([]byte(s.Calls[0].Function.Arguments), &args) != nil {
		return "(arguments are not JSON)"
	}
	return args.X
}

// Values with all that makes putting them back hard: quotation marks, line
// breaks, other scripts, and parts of each other.
func awkward() map[string]pii.Label {
	return map[string]pii.Label{
		email: pii.EmailAddress, person: pii.PersonName, `O"Brien \ Sons`: pii.PersonName, "Ann": pii.Username, "Lee Ann": pii.PersonName,
		"12 Mill Lane\nLeeds": pii.PostalAddress, "王小芳": pii.PersonName, "Ωmega-Ψ": pii.PersonName, "a😀b😀c": pii.AccountID,
		"7": pii.Age, "e\u0301lan\u200bvital": pii.PersonName, "192.0.2.7": pii.IPAddress, "EMAIL_AAAAA": pii.AccountID, "\t": pii.Location,
	}
}

// However a conversation is made up and however the answer is cut: an echo comes
// back as what was said, and the cloud saw none of the values.
func TestEchoIsWhatWasSaid(t *testing.T) {
	t.Parallel()
	m := &mirror{}
	values := awkward()
	h := open(t, plan{cloudServer: m.ServeHTTP, noLocal: true, also: values})
	var pool []string
	for v := range values {
		pool = append(pool, v)
	}
	seen := []string{"PERSON_AAAAA", "EMAIL_", "_", "PERSON_Q7K2M"} // and the task's own placeholders
	total, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(
			rapid.SampledFrom(pool),
			rapid.SampledFrom(pool),
			rapid.SampledFrom([]string{" ", " and ", "\n", `"`, `\`, `\n`, "{", "}", "'s", "**", "_", "-", "X", "x", "é", "\u200b", "😀", "\u0000", "</s>", "&amp;", "%40"}),
			rapid.SampledFrom(seen),
			rapid.Map(rapid.SampledFrom(seen), strings.ToLower),
			rapid.StringN(0, 5, 12),
		)
		text := strings.ToValidUTF8(strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), ""), "")
		cuts := rapid.SliceOfN(rapid.IntRange(1, 20), 1, 5).Draw(t, "cuts")
		field := rapid.SampledFrom([]string{"content", "reasoning_content", "refusal", "arguments"}).Draw(t, "field")
		mode := rapid.SampledFrom([]string{"", stream}).Draw(t, "mode")
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		body := `{"model":"gpt-x",` + mode + `"messages":[{"role":"system","content":"` + person + `"},{"role":"user","content":` + string(quoted) + `}]}`
		task := rapid.SampledFrom([]string{"one", "two"}).Draw(t, "task")
		m.mu.Lock()
		m.cuts, m.field = cuts, field
		m.mu.Unlock()
		a := h.post(body, "X-Weir-Task", task)
		total++
		if strings.Contains(a.body, "leak_prevented") {
			// Text made of parts of placeholders run together with values can
			// look like a leak to the last check. Then nothing leaves.
			refused++
			return
		}
		if a.status != 200 {
			log := h.logged()
			t.Fatalf("%d %s\n%s", a.status, a.body, log[max(0, len(log)-400):])
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		for v := range values {
			// A value too short or common to be told from other text may stand
			// in a placeholder.
			if len(v) > 3 && v != "EMAIL_AAAAA" && strings.Contains(m.got, v) {
				t.Fatalf("the cloud saw %q in %q", v, m.got)
			}
		}
		for _, p := range minted.FindAllString(m.got, -1) {
			if len(seen) < 40 {
				seen = append(seen, p)
			}
		}
		s := &said{}
		if mode == "" {
			s = whole(t, a.body)
		} else if c := hear(t, a.body).choices[0]; c != nil {
			s = c
		}
		if got := m.heard(s); got != text {
			t.Fatalf("said %q\nsent %q\ngot  %q", text, m.got, got)
		}
	})
	if refused*10 > total {
		t.Errorf("%d of %d requests were taken for leaks", refused, total)
	}
}
