package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Sources are the places where a configuration may stand. The zero value finds
// none, and gives the defaults.
type Sources struct {
	// Path is a file that must exist, or empty to look for one.
	Path string
	// Environ is the environment, as [os.Environ] gives it.
	Environ []string
	// WorkDir may hold weir.yaml, ConfigDir weir/weir.yaml.
	WorkDir, ConfigDir string
	// DataDir is where Weir's data lies unless the configuration says otherwise.
	DataDir string
	// Home is what ~ stands for.
	Home string
}

// FromProcess returns the sources of this process. path is that of a flag, or
// empty.
func FromProcess(path string) (Sources, error) {
	wd, err := os.Getwd()
	if err != nil {
		return Sources{}, fmt.Errorf("find working directory: %w", err)
	}
	s := Sources{Path: path, Environ: os.Environ(), WorkDir: wd}
	// A service may have neither home nor configuration: the rest must do.
	s.Home, _ = os.UserHomeDir()
	s.ConfigDir, _ = os.UserConfigDir()
	s.DataDir = dataDir(environment(s.Environ), s.Home, s.ConfigDir)
	return s, nil
}

// Hub is where checkpoints are fetched from, by the variables that the tools of
// Hugging Face read.
type Hub struct{ Endpoint, token string }

// HubFromProcess reads HF_ENDPOINT and HF_TOKEN.
func HubFromProcess() Hub {
	env := environment(os.Environ())
	return Hub{Endpoint: env["HF_ENDPOINT"], token: env["HF_TOKEN"]}
}

// Token is the hub's token, or empty.
func (h Hub) Token() string { return h.token }

// Format prints the endpoint alone, whatever the verb.
func (h Hub) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "hub(%s)", h.Endpoint) }

// dataDir follows the XDG base directory specification, and on macOS Apple's
// habit, where data lies beside the configuration.
func dataDir(env map[string]string, home, configDir string) string {
	switch {
	case runtime.GOOS == "darwin" && configDir != "":
		return filepath.Join(configDir, "weir")
	case filepath.IsAbs(env["XDG_DATA_HOME"]):
		return filepath.Join(env["XDG_DATA_HOME"], "weir")
	case home != "":
		return filepath.Join(home, ".local", "share", "weir")
	}
	return ""
}

// maxFileBytes is far beyond what a person writes.
const maxFileBytes = 1 << 20

// find reads the first file there is. No file at all is no error.
func (s Sources) find(env map[string]string) (name string, data []byte, err error) {
	named := s.Path
	if named == "" {
		named = env["WEIR_CONFIG"]
	}
	if named != "" {
		if !filepath.IsAbs(named) {
			named = filepath.Join(s.WorkDir, named)
		}
		data, err = readFile(named)
		return named, data, err
	}
	var places []string
	if s.WorkDir != "" {
		places = append(places, filepath.Join(s.WorkDir, "weir.yaml"))
	}
	if s.ConfigDir != "" {
		places = append(places, filepath.Join(s.ConfigDir, "weir", "weir.yaml"))
	}
	for _, place := range places {
		data, err = readFile(place)
		if !errors.Is(err, fs.ErrNotExist) {
			return place, data, err
		}
	}
	return "", nil, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read configuration: %w", err)
	case len(data) > maxFileBytes:
		return nil, fmt.Errorf("read configuration: %s is longer than %d bytes", name, maxFileBytes)
	}
	return data, nil
}

// environment makes a map of NAME=value; the last of a name wins, as it does
// for a process.
func environment(environ []string) map[string]string {
	m := make(map[string]string, len(environ))
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			m[name] = value
		}
	}
	return m
}
