package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"weir/internal/weirtest"
	"weir/internal/wire"
	"weir/router"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"weir": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
			stop()
			os.Exit(code)
		},
	})
}

// The scripts run the commands as a user does. Beside testscript's own commands
// there are
//
//	standin KIND MODEL   starts a stand-in that answers as MODEL does, and sets $KIND
//	freeport NAME        sets $NAME to a free loopback address
//	await URL            waits until URL answers
//	post URL FILE        sends FILE; the status, Weir's headers and the body are stdout
//	postbg URL FILE      sends FILE and goes on; reply waits for the answer and prints it
//	awaitquestion NAME   waits for an open question of the front door at $LISTEN, sets $NAME to its id
//	hub                  starts a hub that has nothing, and sets $HF_ENDPOINT
//	long FILE            writes a request longer than the small model's context
//	forgetall            forgets all remembered answers
//	received KIND        what the stand-in got, as stdout
//	oneplaceholder KIND  fails unless all placeholders that the stand-in got are one
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_CONFIG_HOME", e.WorkDir+"/.config")
			e.Setenv("XDG_DATA_HOME", e.WorkDir+"/.data")
			e.Setenv("TINY", e.WorkDir+"/tiny")
			if err := copyTiny(e.WorkDir + "/tiny"); err != nil {
				return err
			}
			e.Values["standins"] = map[string]*weirtest.StandIn{}
			e.Values["posted"] = map[string]chan posted{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"standin": cmdStandIn, "freeport": cmdFreePort, "await": cmdAwait, "post": cmdPost, "received": cmdReceived,
			"oneplaceholder": cmdOnePlaceholder, "postbg": cmdPostBackground, "reply": cmdReply,
			"awaitquestion": cmdAwaitQuestion, "forgetall": cmdForgetAll,
			"hub": cmdHub, "long": cmdLong,
		},
	})
}

// copyTiny makes a folder of a small checkpoint and a tokenizer that fits it.
func copyTiny(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, from := range []string{"checkpoint/testdata/tiny-a/config.json", "checkpoint/testdata/tiny-a/model.safetensors", "tokenizer/testdata/tokenizer.json"} {
		raw, err := os.ReadFile("../../engine/" + from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(dir+"/"+from[strings.LastIndexByte(from, '/')+1:], raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func standIns(ts *testscript.TestScript) map[string]*weirtest.StandIn {
	return ts.Value("standins").(map[string]*weirtest.StandIn)
}

func cmdStandIn(ts *testscript.TestScript, _ bool, args []string) {
	b, ok := weirtest.Named(args[1])
	if !ok {
		ts.Fatalf("no stand-in behaves as %s", args[1])
	}
	s, err := weirtest.Start(weirtest.Options{Kind: args[0], Default: b})
	ts.Check(err)
	ts.Defer(func() { s.Close() })
	standIns(ts)[args[0]] = s
	ts.Setenv(args[0], s.URL())
}

func cmdFreePort(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], l.Addr().String())
	ts.Check(l.Close())
}

func cmdAwait(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
		ts.Check(err)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			ts.Fatalf("%s does not answer", args[0])
		}
	}
}

func cmdPost(ts *testscript.TestScript, _ bool, args []string) {
	out, err := post(args[0], ts.ReadFile(args[1]))
	ts.Check(err)
	fmt.Fprint(ts.Stdout(), out)
}

// posted is an answer that a script waits for later.
type posted struct {
	out string
	err error
}

func cmdPostBackground(ts *testscript.TestScript, _ bool, args []string) {
	done := make(chan posted, 1) // the script may end without looking
	body := ts.ReadFile(args[1])
	go func() {
		out, err := post(args[0], body)
		done <- posted{out, err}
	}()
	ts.Value("posted").(map[string]chan posted)[""] = done
}

func cmdReply(ts *testscript.TestScript, _ bool, _ []string) {
	p := <-ts.Value("posted").(map[string]chan posted)[""]
	ts.Check(p.err)
	fmt.Fprint(ts.Stdout(), p.out)
}

func post(url, content string) (string, error) {
	resp, err := http.Post(url, "application/json", strings.NewReader(content))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	fmt.Fprintln(&out, resp.StatusCode)
	for name := range resp.Header {
		if strings.HasPrefix(name, "X-Weir-") {
			fmt.Fprintf(&out, "%s: %s\n", name, resp.Header.Get(name))
		}
	}
	out.Write(body)
	out.WriteByte('\n')
	return out.String(), nil
}

func cmdAwaitQuestion(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := &client{base: "http://" + ts.Getenv("LISTEN"), http: http.DefaultClient}
	for {
		var list approvalList
		ts.Check(c.call(ctx, http.MethodGet, "/v1/weir/approvals", nil, &list))
		if len(list.Data) > 0 {
			ts.Setenv(args[0], list.Data[0].ID)
			return
		}
	}
}

func cmdForgetAll(ts *testscript.TestScript, _ bool, _ []string) {
	c := &client{base: "http://" + ts.Getenv("LISTEN"), http: http.DefaultClient}
	var list struct {
		Data []router.RememberedAnswer `json:"data"`
	}
	ts.Check(c.call(context.Background(), http.MethodGet, "/v1/weir/answers", nil, &list))
	for _, a := range list.Data {
		ts.Check(c.call(context.Background(), http.MethodDelete, "/v1/weir/answers/"+a.ID, nil, nil))
	}
}

func cmdHub(ts *testscript.TestScript, _ bool, _ []string) {
	s := httptest.NewServer(http.NotFoundHandler())
	ts.Defer(s.Close)
	ts.Setenv("HF_ENDPOINT", s.URL)
}

func cmdLong(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.Repeat("word ", 20_000)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(`{"model":"tiny","messages":[{"role":"user","content":"`+text+`"}]}`), 0o600))
}

func cmdReceived(ts *testscript.TestScript, _ bool, args []string) {
	for _, c := range standIns(ts)[args[0]].Calls() {
		fmt.Fprintf(ts.Stdout(), "%s\n", c.Bytes())
	}
}

func cmdOnePlaceholder(ts *testscript.TestScript, _ bool, args []string) {
	seen := map[string]int{}
	for _, c := range standIns(ts)[args[0]].Calls() {
		chat, err := wire.ReadChat(c.Body, wire.Limits{})
		if err != nil {
			continue // not a chat request
		}
		for i, l := range chat.Leaves() {
			if p := chat.Places[i]; p.Source == wire.FromUser && p.Field == "content" {
				for _, token := range regexp.MustCompile(`[A-Z]+_[A-Z2-7]{5,}`).FindAllString(l.Value, -1) {
					seen[token]++
				}
			}
		}
	}
	if len(seen) != 1 {
		ts.Fatalf("placeholders: %v", seen)
	}
}
