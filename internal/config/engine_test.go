package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/config"
)

// An upstream is a server or a model within Weir.
func TestEngineUpstream(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ yaml, key string }{
		"good":           {"kind: local\n    engine: {checkpoint: models/m, threads: 2, cache: 2GiB}", ""},
		"in the cloud":   {"kind: cloud\n    engine: {checkpoint: m}", "upstreams[0].kind"},
		"and a server":   {"kind: local\n    base_url: http://127.0.0.1:1/v1\n    engine: {checkpoint: m}", "upstreams[0].base_url"},
		"negative":       {"kind: local\n    engine: {checkpoint: m, threads: -1}", "upstreams[0].engine.threads"},
		"no backend":     {"kind: local\n    engine: {checkpoint: m, backend: tpu}", "upstreams[0].engine.backend"},
		"no cache":       {"kind: local\n    engine: {checkpoint: m, cache: 0}", "upstreams[0].engine.cache"},
		"neither":        {"kind: local\n    engine: {threads: 2}", "upstreams[0].base_url"},
		"misspelled key": {"kind: local\n    engine: {checkpiont: m}", "upstreams[0].engine.checkpiont"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "weir.yaml")
			if err := os.WriteFile(path, []byte("data_dir: d\nupstreams:\n  - name: here\n    "+test.yaml+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(config.Sources{Path: path, WorkDir: dir})
			switch {
			case test.key == "" && err != nil:
				t.Fatal(err)
			case test.key == "":
				if e := cfg.Upstreams[0].Engine; e.Checkpoint != filepath.Join(dir, "models/m") || e.Threads != 2 || e.Cache != 2<<30 {
					t.Errorf("engine is %+v", e)
				}
			case err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(test.key, "upstreams[0].")):
				t.Errorf("error %v, want one of %s", err, test.key)
			}
		})
	}
}
