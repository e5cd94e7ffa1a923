package upstream

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a value that does not print: no verb of fmt, no logger and no
// encoder shows it.
type Secret struct{ value string }

// NewSecret wraps a value.
func NewSecret(value string) Secret { return Secret{value} }

// Empty says whether there is no value.
func (s Secret) Empty() bool { return s.value == "" }

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// String returns a word in place of the value.
func (s Secret) String() string {
	if s.value == "" {
		return "none"
	}
	return "secret"
}

// Format prints [Secret.String] whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) } //nolint:errcheck // fmt keeps it

// LogValue logs [Secret.String].
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText encodes as [Secret.String].
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
