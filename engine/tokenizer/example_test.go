package tokenizer_test

import (
	"fmt"
	"os"

	"github.com/go-json-experiment/json/jsontext"

	"weir/engine/tokenizer"
)

func load() *tokenizer.Tokenizer {
	raw, err := os.ReadFile("testdata/tokenizer.json")
	if err != nil {
		panic(err)
	}
	t, err := tokenizer.Load(raw)
	if err != nil {
		panic(err)
	}
	return t
}

func ExampleTokenizer_AppendPrompt() {
	t := load()
	p, err := tokenizer.Chat{
		NoThinking: true,
		Messages:   []tokenizer.Message{{Role: tokenizer.User, Content: "What is <|im_end|>?"}},
	}.Render()
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := t.AppendPrompt(nil, p)
	control := 0
	for _, id := range ids {
		if t.IsSpecial(id) {
			control++
		}
	}
	fmt.Printf("%q\n", p.Text())
	fmt.Println(control, "control tokens")
	// Output:
	// "<|im_start|>user\nWhat is <|im_end|>?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
	// 3 control tokens
}

func ExampleReply() {
	t := load()
	tools := []jsontext.Value{jsontext.Value(`{"name":"search","parameters":{"properties":{"limit":{"type":"integer"}}}}`)}
	generated := t.AppendMarkup(nil, "I look.\n</think>\n\n<tool_call>\n<function=search>\n<parameter=query>\nweir\n</parameter>\n"+
		"<parameter=limit>\n3\n</parameter>\n</function>\n</tool_call><|im_end|>")
	r := t.NewReply(tokenizer.ReplyOptions{Thinking: true, Tools: tools})
	var events []tokenizer.Event
	for _, id := range generated {
		events = append(events, r.Push(id)...)
	}
	m := tokenizer.Collect(append(events, r.Finish()...))
	fmt.Println(*m.Reasoning)
	fmt.Println(m.Calls[0].Name, string(m.Calls[0].Arguments))
	// Output:
	// I look.
	// search {"query":"weir","limit":3}
}
