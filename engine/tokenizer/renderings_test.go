package tokenizer_test

import (
	"os"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"weir/engine/tokenizer"
)

// The vectors are what the model's own template makes of random conversations;
// see ORIGIN.md.
func TestRenderings(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/renderings.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Messages         jsontext.Value   `json:"messages"`
		Tools            []jsontext.Value `json:"tools"`
		Reply            bool             `json:"add_generation_prompt"`
		Thinking         *bool            `json:"enable_thinking"`
		PreserveThinking bool             `json:"preserve_thinking"`
		NumberVision     bool             `json:"add_vision_id"`
		Want             string           `json:"want"`
		Error            string           `json:"error"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 250 {
		t.Fatalf("only %d vectors", len(list))
	}
	for i, v := range list {
		got, failed := "", ""
		messages, err := tokenizer.ParseMessages(v.Messages)
		if err == nil {
			var p tokenizer.Prompt
			p, err = tokenizer.Chat{
				Messages: messages, Tools: v.Tools, NoReply: !v.Reply, NumberVision: v.NumberVision,
				NoThinking: v.Thinking != nil && !*v.Thinking, PreserveThinking: v.PreserveThinking,
			}.Render()
			got = p.Text()
		}
		if err != nil {
			got, failed = "", err.Error()
		}
		if failed != v.Error || got != v.Want {
			t.Errorf("vector %d: error %q, want %q; (-want +got):\n%s", i, failed, v.Error, cmp.Diff(v.Want, got))
		}
	}
}
