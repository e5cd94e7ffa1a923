package repotest_test

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// TestUnits has systemd itself read the units, with the binary where it is.
func TestUnits(t *testing.T) {
	t.Parallel()
	need(t, found("systemd-analyze"), "systemd-analyze")
	for name, scope := range map[string]string{"weir.service": "--system", "weir-user.service": "--user"} {
		text, err := os.ReadFile(filepath.Join(root, "deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		unit := regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAllString(string(text), "ExecStart="+binary(t))
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "systemd-analyze", scope, "verify", file)
		cmd.Env = clean("XDG_RUNTIME_DIR="+dir, "HOME="+dir)
		// What it has to say of other units of the machine is not ours to mend.
		if out, _ := cmd.CombinedOutput(); strings.Contains(string(out), name) {
			t.Errorf("%s: %s", name, out)
		}
		if !strings.Contains(unit, "ExecStart="+binary(t)+" ") {
			t.Errorf("%s has no command line", name)
		}
	}
}

// TestPlist holds that it is XML, and a list of keys each with a value.
func TestPlist(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join(root, "deploy", "weir.plist"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var kinds []string
	for d := xml.NewDecoder(f); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := tok.(xml.StartElement); ok {
			kinds = append(kinds, e.Name.Local)
		}
	}
	for i, k := range kinds {
		if k == "key" && (i+1 == len(kinds) || kinds[i+1] == "key") {
			t.Error("a key has no value")
		}
	}
	if len(kinds) < 10 {
		t.Errorf("only %d elements", len(kinds))
	}
}

type compose struct {
	Services map[string]struct {
		Build struct {
			Context    string `yaml:"context"`
			Dockerfile string `yaml:"dockerfile"`
		} `yaml:"build"`
		Image    string   `yaml:"image"`
		Ports    []string `yaml:"ports"`
		Volumes  []string `yaml:"volumes"`
		Networks []string `yaml:"networks"`
	} `yaml:"services"`
	Networks map[string]any `yaml:"networks"`
	Volumes  map[string]any `yaml:"volumes"`
}

// TestCompose holds that what the file refers to is there, and that no port is
// open to other machines.
func TestCompose(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var c compose
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Services) != 2 {
		t.Fatalf("%d services", len(c.Services))
	}
	deploy := filepath.Join(root, "deploy")
	for name, s := range c.Services {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s to other machines", name, p)
			}
		}
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			_, named := c.Volumes[source]
			if _, err := os.Stat(filepath.Join(deploy, source)); err != nil && !named {
				t.Errorf("%s mounts %s, which is not there", name, source)
			}
		}
		for _, n := range s.Networks {
			if _, ok := c.Networks[n]; !ok {
				t.Errorf("%s joins %s, which is not there", name, n)
			}
		}
		if s.Build.Dockerfile != "" {
			if _, err := os.Stat(filepath.Join(deploy, s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Error(err)
			}
		} else if !strings.Contains(s.Image, ":") {
			t.Errorf("%s names no version of its image", name)
		}
	}
}

var (
	imageEnv  = regexp.MustCompile(`(?m)^(?:ENV| {4}) *(WEIR_[A-Z_]+)=(\S+)`)
	healthURL = regexp.MustCompile(`"http://127\.0\.0\.1:8642(/[a-z]+)"`)
)

// TestImageStarts runs the binary as the image does, with the configuration that
// compose.yaml mounts, and asks for its health as the image does.
func TestImageStarts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	env := clean("LAPTOP_KEY=a-long-random-word", "OPENAI_API_KEY=another", "WEIR_STORE_KEY=file:"+t.TempDir()+"/key")
	set := map[string]bool{}
	for _, m := range imageEnv.FindAllStringSubmatch(string(text), -1) {
		set[m[1]] = true
		value := strings.Replace(m[2], ":8642", ":0", 1)
		if m[1] == "WEIR_DATA_DIR" {
			value = t.TempDir()
		}
		env = append(env, m[1]+"="+value)
	}
	for _, name := range []string{"WEIR_DATA_DIR", "WEIR_LISTEN", "WEIR_ALLOW_REMOTE"} {
		if !set[name] {
			t.Errorf("the image does not set %s", name)
		}
	}
	health := healthURL.FindStringSubmatch(string(text))
	if health == nil {
		t.Fatal("the image has no health check")
	}
	base := serve(t, filepath.Join(root, "deploy", "weir.yaml"), env).url
	for path, want := range map[string]int{health[1]: http.StatusOK, "/v1/models": http.StatusUnauthorized} {
		resp, err := (&http.Client{Timeout: 10 * time.Second}).Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: HTTP %d, want %d", path, resp.StatusCode, want)
		}
	}
}
