package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
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
			e.Values["standins"] = map[string]*weirtest.StandIn{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"standin": cmdStandIn, "freeport": cmdFreePort, "await": cmdAwait, "post": cmdPost, "received": cmdReceived,
			"oneplaceholder": cmdOnePlaceholder,
		},
	})
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
	resp, err := http.Post(args[0], "application/json", strings.NewReader(ts.ReadFile(args[1])))
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	var out bytes.Buffer
	fmt.Fprintln(&out, resp.StatusCode)
	for name := range resp.Header {
		if strings.HasPrefix(name, "X-Weir-") {
			fmt.Fprintf(&out, "%s: %s\n", name, resp.Header.Get(name))
		}
	}
	out.Write(body)
	fmt.Fprint(ts.Stdout(), out.String()+"\n")
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
