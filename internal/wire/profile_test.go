package wire_test

import (
	"testing"

	"weir/internal/wire"
)

func TestProfileAdapt(t *testing.T) {
	t.Parallel()
	const body = `{"model":"m","max_completion_tokens":5, "odd":[1.0],"parallel_tool_calls":true,"messages":[{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b\n"}]},{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://x.example/i.png"}}]}]}`
	for _, tc := range []struct {
		name string
		p    wire.Profile
		want string
	}{
		{"nothing", wire.Profile{}, body},
		{"developer", wire.Profile{DeveloperToSystem: true}, `{"model":"m","max_completion_tokens":5, "odd":[1.0],"parallel_tool_calls":true,"messages":[{"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b\n"}]},{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://x.example/i.png"}}]}]}`},
		{"all", wire.Profile{DeveloperToSystem: true, MaxTokensField: "max_tokens", FlattenText: true, Drop: []string{"parallel_tool_calls"}}, `{"model":"m","max_tokens":5, "odd":[1.0],"messages":[{"role":"system","content":"a\nb\n"},{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://x.example/i.png"}}]}]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.p.Adapt([]byte(body), wire.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
