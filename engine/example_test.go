package engine_test

import (
	"context"
	"fmt"

	"weir/engine"
)

// A model is opened once; replies are generated token by token, which package
// tokenizer turns into text.
func Example() {
	e, err := engine.Open("checkpoint/testdata/tiny-a", engine.Options{AnySize: true, Exact: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()

	request := engine.Request{
		Prompt:    []int32{17, 4, 99, 250},
		MaxTokens: 5,
		Stop:      e.Stop(),
		Sampling:  engine.Sampling{Temperature: 0.7, TopP: 0.9, Seed: 1},
	}
	n := 0
	result, err := e.Generate(context.Background(), &request, func(t engine.Token) bool {
		n++
		return true // false would end the reply
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(n == result.Tokens, result.Prompt, result.Cached)
	// Output: true 4 0
}

// A session is for those who choose tokens themselves. A fork shares its past.
func ExampleSession_Fork() {
	e, err := engine.Open("checkpoint/testdata/tiny-a", engine.Options{AnySize: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()

	ctx := context.Background()
	s := e.NewSession()
	if err := s.Extend(ctx, []int32{1, 2, 3}); err != nil {
		fmt.Println(err)
		return
	}
	other, err := s.Fork()
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := other.Extend(ctx, []int32{4}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s, other, len(s.Logits()))
	// Output: session(3 tokens) session(4 tokens) 512
}
