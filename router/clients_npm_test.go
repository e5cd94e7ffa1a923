//go:build npmclients

package router_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"weir/router"
)

// OpenAI's JavaScript client. It needs node, and its packages installed with
//
//	npm ci --prefix internal/weirtest/clients
//
// so it is built only with the tag npmclients, and then it does not skip.
func TestJavaScriptClient(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true, options: router.Options{KeepAlive: 20 * time.Millisecond}})
	defer h.answerAll("mask")()
	cmd := exec.CommandContext(t.Context(), "node", "../internal/weirtest/clients/client.mjs", h.http.URL+"/v1", email, password, illness)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v (run: npm ci --prefix internal/weirtest/clients)\n%s", err, stderr.String())
	}
	type failure struct {
		Name, Code, Type, Message string
		Status                    int
	}
	type streamed struct {
		Text, Finish string
		Usage        int
		Calls        []string
	}
	var got struct {
		Plain, Called, Helper          string
		Streamed, StreamedCall, Held   streamed
		Refused, RefusedStream, Broken *failure
		Models                         []string
	}
	if err := json.Unmarshal(out, &got, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	args := `{"to":"` + email + `"}`
	if got.Plain != "Write to "+email || got.Called != args || got.Helper != args {
		t.Errorf("whole answers: %s", out)
	}
	if s := got.Streamed; s.Text != "Write to "+email || s.Finish != "stop" || s.Usage != 1 {
		t.Errorf("stream: %+v", s)
	}
	if s := got.StreamedCall; len(s.Calls) != 1 || s.Calls[0] != args || s.Finish != "tool_calls" {
		t.Errorf("streamed call: %+v", s)
	}
	if s := got.Held; s.Text != "It is "+illness || s.Finish != "stop" {
		t.Errorf("held stream: %+v", s)
	}
	for _, f := range []*failure{got.Refused, got.RefusedStream} {
		if f == nil || f.Name != "BadRequestError" || f.Status != 400 || f.Code != "policy_refused" || strings.Contains(f.Message, password) {
			t.Errorf("refused: %+v", f)
		}
	}
	if f := got.Broken; f == nil || f.Code != "upstream_interrupted" {
		t.Errorf("broken stream: %+v", f)
	}
	if len(got.Models) < 2 {
		t.Errorf("models: %v", got.Models)
	}
	h.checkCalls(t, 9)
}
