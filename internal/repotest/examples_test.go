package repotest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/weirtest"
)

// build makes the binary once for all tests here.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "weir-repotest-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "weir")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/weir")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := build(); err == nil {
		os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

func binary(t *testing.T) string {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// door is a running front door between stand-ins.
type door struct {
	url          string
	cloud, local *weirtest.StandIn
}

var listening = regexp.MustCompile(`listen=(http://127\.0\.0\.1:[0-9]+)`)

// serve runs the binary as a user would, with a configuration that differs from
// the example only in addresses.
func serve(t *testing.T) door {
	t.Helper()
	d := door{cloud: standIn(t, "cloud"), local: standIn(t, "local")}
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.yaml")
	text := fmt.Sprintf(`listen: 127.0.0.1:0
data_dir: %s
store: {key: "file:%s/key"}
upstreams:
  - {name: openai, kind: cloud, base_url: "%s", models: [assistant]}
  - {name: ollama, kind: local, base_url: "%s", models: [assistant]}
`, dir, dir, d.cloud.URL(), d.local.URL())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, binary(t), "-c", file, "serve")
	cmd.Env = clean()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	var seen bytes.Buffer
	for d.url == "" && lines.Scan() {
		seen.WriteString(lines.Text() + "\n")
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			d.url = m[1]
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
			seen.WriteString(lines.Text() + "\n")
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-drained
		if err := cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("weir serve ended with %v:\n%s", err, &seen)
		}
		if strings.Contains(seen.String(), "Lindqvist") {
			t.Errorf("the log holds a name:\n%s", &seen)
		}
	})
	if d.url == "" {
		t.Fatalf("weir serve does not listen:\n%s", &seen)
	}
	return d
}

func standIn(t *testing.T, kind string) *weirtest.StandIn {
	t.Helper()
	s, err := weirtest.Start(weirtest.Options{Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// clean is the environment without what would reach Weir or a client by itself.
func clean(add ...string) []string {
	var out []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "WEIR_") && !strings.HasPrefix(name, "OPENAI_") && !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			out = append(out, e)
		}
	}
	return append(out, add...)
}

// need ends the test if a tool is not there: as a fault where CI must have it,
// else with a word.
func need(t *testing.T, there bool, what string) {
	t.Helper()
	switch {
	case there:
	case os.Getenv("CI") != "":
		t.Fatalf("CI lacks %s", what)
	default:
		t.Skipf("%s is not installed", what)
	}
}

func found(tool string) bool {
	_, err := exec.LookPath(tool)
	return err == nil
}

// TestClients runs the example clients: they see the values, the cloud does not.
func TestClients(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		need  string
		dir   string
		model string // of the stand-in
		run   []string
		want  []string
	}{
		{"curl", "curl", ".", "assistant", []string{"examples/clients/curl.sh"}, []string{"X-Weir-Placement: cloud-masked"}},
		{"go", "go", ".", "assistant", []string{"go", "run", "./examples/clients/go"}, []string{"-- cloud-masked, masked: "}},
		{
			"javascript", "node", "examples/clients/js", "tools",
			[]string{"node", "chat.mjs"},
			[]string{"-- cloud-masked, masked: ", "send_mail {", "-- refused: HTTP 400, policy_refused"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			need(t, found(row.need), row.need)
			if row.name == "javascript" {
				_, err := os.Stat(filepath.Join(root, row.dir, "node_modules", "openai"))
				need(t, err == nil, "the openai package (npm ci in "+row.dir+")")
			}
			d := serve(t)
			cmd := exec.CommandContext(t.Context(), row.run[0], row.run[1:]...)
			cmd.Dir = filepath.Join(root, row.dir)
			cmd.Env = clean("OPENAI_BASE_URL="+d.url+"/v1", "OPENAI_API_KEY=none", "MODEL=cloud/"+row.model)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %v\n%s", row.run, err, out)
			}
			for _, want := range append(row.want, "Marta Lindqvist", "marta.lindqvist@fjord.example") {
				if !strings.Contains(string(out), want) {
					t.Errorf("the client did not show %q:\n%s", want, out)
				}
			}
			if len(d.cloud.Calls()) == 0 {
				t.Error("nothing reached the cloud")
			}
			if call, value := d.cloud.Received("Marta", "Lindqvist", "marta.lindqvist@fjord.example", "Tr0ub4dor"); call != nil {
				t.Errorf("the cloud received %q", value)
			}
		})
	}
}

// TestPythonClientParses is all that can be said of it where its package is not.
func TestPythonClientParses(t *testing.T) {
	t.Parallel()
	need(t, found("python3"), "python3")
	cmd := exec.CommandContext(t.Context(), "python3", "-c", "import ast,sys; ast.parse(open(sys.argv[1]).read())", "examples/clients/python/chat.py")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestStrictPolicy holds what examples/strict says of itself.
func TestStrictPolicy(t *testing.T) {
	t.Parallel()
	const shipped, strict = "examples/openai.yaml", "examples/strict/weir.yaml"
	for _, row := range []struct {
		name, config, text string
		code               int
		says               string
	}{
		{"a name goes masked by default", shipped, "Meet Marta Lindqvist, marta.lindqvist@fjord.example.", 3, "mask"},
		{"and stays here when strict", strict, "Meet Marta Lindqvist, marta.lindqvist@fjord.example.", 4, "keep_local"},
		{"an IBAN goes masked either way", strict, "Pay to DE89 3704 0044 0532 0130 00.", 3, "mask"},
		{"six addresses are a crowd", strict, "From 192.0.2.1, 192.0.2.22, 192.0.2.31, 198.51.100.4, 198.51.100.55 and 203.0.113.6.", 4, "crowd"},
		{"and by default are not", shipped, "From 192.0.2.1, 192.0.2.22, 192.0.2.31, 198.51.100.4, 198.51.100.55 and 203.0.113.6.", 3, "mask"},
		{"nothing is nothing", strict, "Why is the sky dark at night?", 0, "allow"},
		{"a password is refused either way", strict, "My password is Tr0ub4dor&3-horse.", 4, "refuse"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), binary(t), "-c", row.config, "scan", "-")
			cmd.Dir, cmd.Env, cmd.Stdin = root, clean(), strings.NewReader(row.text)
			out, err := cmd.CombinedOutput()
			code := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != row.code || !strings.Contains(string(out), row.says) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, row.code, row.says, out)
			}
		})
	}
}
