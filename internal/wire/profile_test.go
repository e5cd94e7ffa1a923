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
		{"developer", wire.Profile{DeveloperToSystem: true}, `{"model":"m","max_completion_tokens":5, "odd":[1.0],"parallel_tool_calls":true,"messages":[{"role":"system","content":"a\nb\n"},{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://x.example/i.png"}}]}]}`},
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

// Chat templates that take instructions only in front get them there.
func TestProfileJoinsInstructions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"as it should be", `[{"role":"system","content":"a"},{"role":"user","content":"u"}]`, `[{"role":"system","content":"a"},{"role":"user","content":"u"}]`},
		{"two in front", `[{"role":"system","content":"a"}, {"role":"developer","content":"b"},{"role":"user","content":"u"}]`, `[{"role":"system","content":"a\n\nb"}, {"role":"user","content":"u"}]`},
		{"one in the middle", `[{"role":"user","content":"u"},{"role":"system","content":"s\n"},{"role":"user","content":"v"}]`, `[{"role":"system","content":"s\n"},{"role":"user","content":"u"},{"role":"user","content":"v"}]`},
		{"one at the end", `[{"role":"user","content":"u"},{"role":"developer","content":"s"}]`, `[{"role":"system","content":"s"},{"role":"user","content":"u"}]`},
		{"nothing else", `[{"role":"developer","content":"s"},{"role":"system","content":"{\"a\":1}"}]`, `[{"role":"system","content":"s\n\n{\"a\":1}"}]`},
		{"an image in it", `[{"role":"user","content":"u"},{"role":"system","content":[{"type":"image_url","image_url":{"url":"https://x.example"}}]}]`, `[{"role":"user","content":"u"},{"role":"system","content":[{"type":"image_url","image_url":{"url":"https://x.example"}}]}]`},
		{"a name is kept", `[{"role":"user","content":"u"},{"role":"developer","name":"ops","content":"s"},{"role":"system","content":"t"}]`, `[{"role":"user","content":"u"},{"role":"system","name":"ops","content":"s"},{"role":"system","content":"t"}]`},
		{"a cache mark is kept", `[{"role":"developer","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"u"}]`, `[{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"u"}]`},
		{"an image is kept", `[{"role":"developer","content":[{"type":"image_url","image_url":{"url":"https://x.example"}}]}]`, `[{"role":"system","content":[{"type":"image_url","image_url":{"url":"https://x.example"}}]}]`},
		{"a word is no role", `[{"role":"developer","name":"developer","content":"developer"}]`, `[{"role":"system","name":"developer","content":"developer"}]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := wire.Profile{DeveloperToSystem: true}.Adapt([]byte(`{"model":"m","messages":`+tc.in+`}`), wire.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"model":"m","messages":` + tc.want + `}`; string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
