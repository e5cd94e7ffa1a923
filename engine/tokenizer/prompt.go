package tokenizer

import (
	"fmt"
	"log/slog"
	"strings"
)

// Prompt is a rendered conversation: markup, in which control tokens count,
// and content, in which they do not. The zero value is empty.
type Prompt struct{ pieces []piece }

type piece struct {
	text   string
	markup bool
}

func (p *Prompt) mark(text string) { p.pieces = append(p.pieces, piece{text, true}) }

func (p *Prompt) put(content string) {
	if content != "" {
		p.pieces = append(p.pieces, piece{content, false})
	}
}

// Text returns the prompt as the template's plain text. Encoding that text
// would let content speak as control: use [Tokenizer.AppendPrompt].
func (p Prompt) Text() string {
	var b strings.Builder
	for _, piece := range p.pieces {
		b.WriteString(piece.text)
	}
	return b.String()
}

// size is the length of Text.
func (p Prompt) size() int {
	n := 0
	for _, piece := range p.pieces {
		n += len(piece.text)
	}
	return n
}

// String prints the size only.
func (p Prompt) String() string { return fmt.Sprintf("prompt(%d bytes)", p.size()) }

// GoString is String.
func (p Prompt) GoString() string { return p.String() }

// LogValue logs the size only.
func (p Prompt) LogValue() slog.Value { return slog.StringValue(p.String()) }
