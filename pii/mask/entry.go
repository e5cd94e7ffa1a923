package mask

import (
	"fmt"
	"log/slog"

	"weir/pii"
)

// Style is the kind of stand-in that replaces a value.
type Style string

// The styles.
const (
	// StylePlaceholder stands out: PERSON_Q7K2M.
	StylePlaceholder Style = "placeholder"
	// StyleSurrogate looks like the real thing: another name for a name. It
	// serves where a parser or a model wants a value of the right shape.
	StyleSurrogate Style = "surrogate"
)

// Entry ties a private value to the token that stands for it. It prints only
// its label and sizes, so that a slip in a log line shows no content.
type Entry struct {
	// Token is what goes out.
	Token string
	// Value is what it stands for, byte for byte.
	Value string
	// Label is the type of the value.
	Label pii.Label
	// Style is the kind of Token.
	Style Style
}

// Placeholder says that the token stands out, whatever style was asked for: a
// value without a surrogate of its kind gets a placeholder.
func (e Entry) Placeholder() bool {
	_, _, ok := splitPlaceholder([]key{{name: pii.Stem(e.Label)}}, e.Token)
	return ok
}

// LogValue hides the value, and the token too: a surrogate can look private.
func (e Entry) LogValue() slog.Value { return slog.StringValue(e.summary()) }

// Format prints the same summary for every verb, so that %#v leaks no more
// than %v does.
func (e Entry) Format(f fmt.State, _ rune) { fmt.Fprint(f, e.summary()) }

func (e Entry) summary() string {
	return fmt.Sprintf("entry(%s, %s, %d bytes)", e.Label, e.Style, len(e.Value))
}
