package router_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"

	"weir/internal/weirtest"
	"weir/pii"
)

// A front door that drains takes no new requests, tells so, and finishes the
// streams that are under way.
func TestDrainFinishesStreams(t *testing.T) {
	t.Parallel()
	pace := make(chan struct{})
	h := open(t, plan{cloud: weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: 4, Pace: pace}}, noLocal: true, also: map[string]pii.Label{"self.test@weir.example": pii.EmailAddress}})
	if a := h.get("/readyz"); a.status != 200 {
		t.Errorf("not ready: %d %s", a.status, a.body)
	}
	go func() { pace <- struct{}{} }()
	resp := h.begin(t.Context(), user("gpt-x", "Write to "+email, stream))
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	first := readEvent(t, lines)
	h.server.Drain()
	if a := h.get("/readyz"); a.status != 503 {
		t.Errorf("ready: %d %s", a.status, a.body)
	}
	a := h.post(user("gpt-x", "hi"))
	if code, _ := errorOf(t, a); code != "shutting_down" || a.status != 503 {
		t.Errorf("%d %s", a.status, a.body)
	}
	close(pace)
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	if got := hear(t, first+string(rest)); got.done != 1 || got.choices[0].Content != "Write to "+email {
		t.Errorf("%s", rest)
	}
}

// Surrogates come back like placeholders do, in every piece size.
func TestSurrogates(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 64} {
		h := open(t, plan{
			cloud: weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: n}}, noLocal: true,
			policy: "styles: {EMAIL_ADDRESS: surrogate, PERSON_NAME: surrogate, PHONE_NUMBER: surrogate}\n",
			also:   map[string]pii.Label{"+44 20 7946 0958": pii.PhoneNumber},
		})
		text := "Write to " + person + " at " + email + ", or call +44 20 7946 0958. " + person + "!"
		for _, mode := range []string{"", stream} {
			a := h.post(user("gpt-x", text, mode))
			got := ""
			if mode == "" {
				got = whole(t, a.body).Content
			} else {
				got = hear(t, a.body).choices[0].Content
			}
			if got != text {
				t.Errorf("pieces of %d: %q", n, got)
			}
			sent := h.sentLast()
			for _, v := range []string{person, email, "7946"} {
				if strings.Contains(sent, v) {
					t.Errorf("the cloud got %s", sent)
				}
			}
			if strings.Contains(sent, "EMAIL_") || strings.Contains(sent, "PERSON_") {
				t.Errorf("placeholders: %s", sent)
			}
		}
	}
}

// Headers tell what happened by label and count, and never by value.
func TestHeadersExplain(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), local: echo()})
	a := h.post(user("gpt-x", person+", "+person+" and "+email), "X-Weir-Explain", "1")
	want := map[string]string{
		"X-Weir-Placement": "cloud-masked", "X-Weir-Upstream": "sky", "X-Weir-Route": "mode_cloud", "X-Weir-Rule": "label_action",
		"X-Weir-Masked": "PERSON_NAME=2,EMAIL_ADDRESS=1", "X-Weir-Findings": "PERSON_NAME:mask=2,EMAIL_ADDRESS:mask=1",
	}
	for name, v := range want {
		if got := a.header.Get(name); got != v {
			t.Errorf("%s: %q, want %q", name, got, v)
		}
	}
	d := h.get("/v1/weir/decisions/" + a.header.Get("X-Weir-Decision"))
	if d.status != 200 || !strings.Contains(d.body, `"PERSON_NAME"`) || strings.Contains(d.body, "Ann") || strings.Contains(d.body, "fjord") {
		t.Errorf("decision: %d %s", d.status, d.body)
	}
	checkReply(t, "explained", answer{header: a.header}, person, email)
	if strings.Contains(fmt.Sprint(h.post(user("gpt-x", "hi")).header), "X-Weir-Findings") {
		t.Error("explained unasked")
	}
}
