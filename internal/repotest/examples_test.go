package repotest_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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
			d := between(t)
			cmd := exec.CommandContext(t.Context(), row.run[0], row.run[1:]...)
			cmd.Dir = filepath.Join(root, row.dir)
			cmd.Env = clean("OPENAI_BASE_URL="+d.door.url+"/v1", "OPENAI_API_KEY=none", "MODEL=cloud/"+row.model)
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
			if log := d.door.stop(); strings.Contains(log, "Lindqvist") {
				t.Errorf("the log holds a name:\n%s", log)
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

// TestOwnRecognizers runs the configuration that docs/recognizers.md shows.
func TestOwnRecognizers(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join(root, "docs", "recognizers.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```yaml\n")
	shown, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("the document shows no configuration")
	}
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(shown), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, text string
		code       int
		says       string
	}{
		{"named in the policy", "Badge SB-004821.", 3, "mask  STAFF_BADGE"},
		{"not named in the policy", "Walrus: OPERATION WALRUS begins.", 4, "keep_local  PROJECT"},
		{"a built-in label", "Her card is 7712345672.", 3, "ACCOUNT_ID"},
		{"nothing of them", "Article SB-00482 is sold out.", 0, "allow"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), binary(t), "-c", file, "scan", "-")
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
