// Command go streams a chat through Weir with the go-openai client.
//
// Only the base URL differs from a program that calls the vendor directly.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sashabaranov/go-openai"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cfg := openai.DefaultConfig(env("OPENAI_API_KEY", "none"))
	cfg.BaseURL = env("OPENAI_BASE_URL", "http://127.0.0.1:8642/v1")
	// While Weir waits for an answer of the user it sends comments; this client
	// gives up after so many of them in a row.
	cfg.EmptyMessagesLimit = 10_000

	stream, err := openai.NewClientWithConfig(cfg).CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{
		Model: env("MODEL", "auto"),
		Messages: []openai.ChatCompletionMessage{{
			Role: openai.ChatMessageRoleUser, Content: "Thank Marta Lindqvist (marta.lindqvist@fjord.example) for her letter.",
		}},
	})
	// A refusal is an error like any other: its message names label and rule.
	if refused, ok := errors.AsType[*openai.APIError](err); ok {
		return fmt.Errorf("HTTP %d, %v: %s", refused.HTTPStatusCode, refused.Code, refused.Message)
	}
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for _, c := range chunk.Choices {
			fmt.Print(c.Delta.Content)
		}
	}
	h := stream.Header()
	fmt.Printf("\n-- %s, masked: %s\n", h.Get("X-Weir-Placement"), h.Get("X-Weir-Masked"))
	return nil
}

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
