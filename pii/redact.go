package pii

import (
	"fmt"
	"log/slog"
)

// Format prints the size of a text, never the text.
func (t Text) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "text of %d bytes", len(t.Value)) }

// LogValue is the size of a text, never the text.
func (t Text) LogValue() slog.Value { return slog.IntValue(len(t.Value)) }
