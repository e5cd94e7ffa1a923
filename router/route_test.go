package router

import (
	"context"
	"errors"
	"testing"

	"weir/internal/wire"
)

// listing is an upstream that has a name and models, and is never called.
type listing struct {
	Cloud
	name   string
	models []Model
}

func (l listing) Name() string  { return l.name }
func (l listing) Healthy() bool { return true }
func (l listing) Models(context.Context, string) ([]Model, error) {
	if l.models == nil {
		return nil, errors.New("does not answer")
	}
	return l.models, nil
}

type localListing struct {
	Local
	listing
}

func (l localListing) Name() string  { return l.name }
func (l localListing) Healthy() bool { return true }
func (l localListing) Models(ctx context.Context, auth string) ([]Model, error) {
	return l.listing.Models(ctx, auth)
}
func (l localListing) Probe(context.Context) error { return nil }

func TestResolve(t *testing.T) {
	t.Parallel()
	rs := &Routes{
		Clouds: []CloudUpstream{
			{Cloud: listing{name: "openai"}},
			{Cloud: listing{name: "anthropic"}, Caps: Caps{Models: []string{"claude-*", "vendor/*"}}},
		},
		Locals: []LocalUpstream{
			{Local: localListing{listing: listing{name: "ollama", models: []Model{{ID: "qwen3"}, {ID: "org/llama"}}}}},
			{Local: localListing{listing: listing{name: "lab"}}, Caps: Caps{Models: []string{"lab-*"}}},
		},
		DefaultCloud: "openai/gpt-5",
		Aliases: map[string]Alias{
			"smart": {Cloud: "anthropic/claude-9"},
			"split": {Cloud: "anthropic/claude-9", Local: "lab/lab-1"},
			"quiet": {Local: "ollama/qwen3"},
		},
	}
	for _, tc := range []struct {
		name                 string
		mode                 Mode
		cloud, cm, local, lm string
	}{
		{"auto", Auto, "openai", "gpt-5", "ollama", ""},
		{"cloud", WantCloud, "openai", "gpt-5", "ollama", ""},
		{"local", WantLocal, "openai", "gpt-5", "ollama", ""},
		{"cloud/gpt-4o", WantCloud, "openai", "gpt-4o", "ollama", ""},
		{"cloud/anthropic/claude-9", WantCloud, "anthropic", "claude-9", "ollama", ""},
		// A slash in a model's own name is not an upstream's.
		{"cloud/meta/llama", WantCloud, "openai", "meta/llama", "ollama", ""},
		{"local/qwen3", WantLocal, "openai", "gpt-5", "ollama", "qwen3"},
		{"local/lab/lab-1", WantLocal, "openai", "gpt-5", "lab", "lab-1"},
		{"anthropic/claude-9", WantCloud, "anthropic", "claude-9", "ollama", ""},
		{"lab/x", WantLocal, "openai", "gpt-5", "lab", "x"},
		// Bare names: what a local server has runs there, patterns choose a
		// cloud, the rest is the default cloud's.
		{"qwen3", WantLocal, "openai", "gpt-5", "ollama", "qwen3"},
		{"org/llama", WantLocal, "openai", "gpt-5", "ollama", "org/llama"},
		{"lab-7", WantLocal, "openai", "gpt-5", "lab", "lab-7"},
		{"claude-9", WantCloud, "anthropic", "claude-9", "ollama", ""},
		{"vendor/x/y", WantCloud, "anthropic", "vendor/x/y", "ollama", ""},
		{"gpt-4o", WantCloud, "openai", "gpt-4o", "ollama", ""},
		{"smart", WantCloud, "anthropic", "claude-9", "ollama", ""},
		{"split", Auto, "anthropic", "claude-9", "lab", "lab-1"},
		{"quiet", WantLocal, "", "", "ollama", "qwen3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, err := rs.resolve(t.Context(), tc.name, "")
			if err != nil {
				t.Fatal(err)
			}
			cloud, local := "", ""
			if r.cloud != nil {
				cloud = r.cloud.Name()
			}
			if r.local != nil {
				local = r.local.Name()
			}
			if r.Mode != tc.mode || cloud != tc.cloud || r.cloudModel != tc.cm || local != tc.local || r.localModel != tc.lm {
				t.Errorf("%s %s/%s %s/%s", r.Mode, cloud, r.cloudModel, local, r.localModel)
			}
		})
	}
}

func TestUnknownModelWithoutCloud(t *testing.T) {
	t.Parallel()
	rs := &Routes{Locals: []LocalUpstream{{Local: localListing{listing: listing{name: "ollama", models: []Model{{ID: "qwen3"}}}}}}}
	_, err := rs.resolve(t.Context(), "gpt-4o", "")
	e, ok := errors.AsType[*wire.Error](err)
	if !ok || e.Code != wire.CodeModelNotFound || e.Message != "no upstream serves this model; known names: auto, local/qwen3" {
		t.Errorf("%v", err)
	}
}
