package repotest_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"weir/internal/weirtest"
)

// scratch is where the binary lies while the tests run.
var scratch = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "weir-repotest-") })

// build makes the binary once for all tests here.
var build = sync.OnceValues(func() (string, error) {
	dir, err := scratch()
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
	if dir, err := scratch(); err == nil {
		os.RemoveAll(dir)
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

// door is a running weir serve.
type door struct {
	url  string
	stop func() (log string)
}

var listening = regexp.MustCompile(`listen=http://\S+:([0-9]+)`)

// serve runs the binary as a user would, until the test ends or stop is called.
func serve(t *testing.T, config string, env []string) door {
	t.Helper()
	cmd := exec.Command(binary(t), "-c", config, "serve")
	cmd.Env = env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	lines := bufio.NewScanner(stderr)
	port := ""
	for port == "" && lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			port = m[1]
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
			log.WriteString(lines.Text() + "\n")
		}
	}()
	once := sync.OnceFunc(func() {
		cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		<-drained
		if err := cmd.Wait(); err != nil {
			t.Errorf("weir serve: %v\n%s", err, &log)
		}
	})
	t.Cleanup(once)
	d := door{url: "http://127.0.0.1:" + port, stop: func() string { once(); return log.String() }}
	if port == "" {
		t.Fatalf("weir serve does not listen:\n%s", d.stop())
	}
	return d
}

// setting is a front door between stand-ins.
type setting struct {
	door         door
	cloud, local *weirtest.StandIn
}

func between(t *testing.T) setting {
	t.Helper()
	s := setting{cloud: standIn(t, "cloud"), local: standIn(t, "local")}
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.yaml")
	text := fmt.Sprintf(`listen: 127.0.0.1:0
data_dir: %s
store: {key: "file:%s/key"}
upstreams:
  - {name: openai, kind: cloud, base_url: "%s", models: [assistant]}
  - {name: ollama, kind: local, base_url: "%s", models: [assistant]}
`, dir, dir, s.cloud.URL(), s.local.URL())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.door = serve(t, file, clean())
	return s
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
