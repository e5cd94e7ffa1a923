package router_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"weir/pii"
	"weir/pii/rules"
)

// planted is a line of package pii's canaries: an invented value in a text that
// says what it is, or as the value of a member that does.
type planted struct {
	Label pii.Label `json:"label"`
	Value string    `json:"value"`
	Text  string    `json:"text"`
	Key   string    `json:"key"`
}

func readPlanted(t testing.TB) (out []planted) {
	t.Helper()
	b, err := os.ReadFile("../pii/testdata/canaries.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var p planted
		if err := json.Unmarshal(line, &p); err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	if len(out) < 37*3 {
		t.Fatalf("%d canaries", len(out))
	}
	return out
}

// recognizers is the classifier as it is shipped.
var recognizers = sync.OnceValues(func() (*pii.Scanner, error) {
	set, err := rules.Default()
	if err != nil {
		return nil, err
	}
	return pii.NewScanner(pii.ScannerOptions{}, pii.Part{Name: "rules", Version: set.Version(), Classifier: set}), nil
})

// With the recognizers and the policy as they are shipped: no value of any label
// reaches the cloud from any place of a request, nor anything that Weir writes.
// Each canary is planted as the user's text, in JSON in strings, and in as many
// other places as it takes for each place to have some.
func TestShippedRecognizers(t *testing.T) {
	t.Parallel()
	scanner, err := recognizers()
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, plan{cloud: echo(), local: echo(), scanner: scanner})
	defer h.answerAll("mask")()
	all := readPlanted(t)
	places := positions(t, fullRequest)
	values := map[string]label{}
	at := 0
	for i, p := range all {
		if len(p.Value) > 6 { // a shorter one stands in the database by chance
			values[p.Value] = p.Label
		}
		quoted, err := json.Marshal(map[string]string{p.Key: p.Text})
		if err != nil {
			t.Fatal(err)
		}
		text := string(quoted[len(`{"`+p.Key+`":`) : len(quoted)-1])
		inString, err := json.Marshal(string(quoted))
		if err != nil {
			t.Fatal(err)
		}
		bodies := map[string]string{
			"arguments": chat(message("user", who(i)), `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":`+string(inString)+`}}]}`, `{"role":"tool","tool_call_id":"c1","content":"done"}`),
			"result":    chat(message("user", who(i)), `{"role":"tool","tool_call_id":"c1","content":`+string(inString)+`}`),
		}
		if p.Key == "" {
			bodies["user"] = chat(message("user", who(i)), `{"role":"user","content":`+text+`}`)
			for range 4 {
				place := places[at%len(places)]
				at++
				bodies[place.name] = strings.ReplaceAll(place.plant(p.Text), "~", who(i))
			}
		} else {
			bodies["member"] = chat(message("user", who(i)), `{"role":"user","content":"hello","`+p.Key+`":`+text+`}`)
		}
		for where, body := range bodies {
			h.cloud.Forget()
			a := h.post(body, "X-Weir-Task", fmt.Sprint(i))
			for _, c := range h.cloud.Calls() {
				if strings.Contains(string(c.Body), p.Value) {
					t.Errorf("%s in %s (%q): the cloud got %s", p.Label, where, p.Text, c.Body)
				}
			}
			if a.status >= 500 {
				t.Errorf("%s in %s: %d %s", p.Label, where, a.status, a.body)
			}
			if len(p.Value) > 6 {
				checkReply(t, string(p.Label)+" in "+where, a, p.Value)
			}
		}
	}
	if at < len(places) {
		t.Errorf("%d of %d places had a canary", at, len(places))
	}
	h.checkSinks(values)
}

// who makes each request one that was not decided before, and names a person:
// an age or a town alone is nobody's.
func who(i int) string { return fmt.Sprintf("%d, for ann.lee%d@fjord.example", i, i) }

// Content that cannot be read may be let through; text beside it, or in the
// place of it, is examined all the same.
func TestTextInPartsThatAreLetThrough(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true, policy: "opaque: {image: allow, audio: allow, file: allow, unknown: allow, encrypted: allow}\n"})
	parts := chat(`{"role":"user","content":[{"type":"text","text":"~"},
		{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"},"note":"n"},
		{"type":"image_url","image_url":{"url":"https://x.example/a.png"}},
		{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}},
		{"type":"file","file":{"filename":"f.txt","file_data":"data:text/plain;base64,AAAA","file_id":"f-1"}},
		{"type":"hologram","data":"AAAA","more":{"data":["d"]}}]}`)
	for i, p := range positions(t, parts) {
		if strings.Contains(p.name, "/type") || strings.Contains(p.name, "/role") || strings.Contains(p.name, "/model") || strings.HasPrefix(p.name, "/messages/(") || strings.HasSuffix(p.name, "/content/(new)") {
			continue // not maskable, or no request any more
		}
		body := strings.ReplaceAll(p.plant(email), "~", fmt.Sprint(i))
		if a := h.post(body); a.status != 200 || a.header.Get("X-Weir-Placement") != "cloud-masked" {
			t.Errorf("%s: %d %v %s", p.name, a.status, a.header["X-Weir-Placement"], a.body)
		}
	}
	for _, url := range []string{"data:text/plain," + email, "data:image/png;name=" + email + ";base64,AAAA", "data:" + email} {
		h.post(chat(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + `"}}]}`))
	}
	if c, _ := h.cloud.Received(email); c != nil {
		t.Errorf("the cloud got %s", c.Bytes())
	}
}
