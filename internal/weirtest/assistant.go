package weirtest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// placeholderPattern is the form of the words that stand for private values.
const placeholderPattern = `\b[A-Z]+_[A-Z2-7]{5,9}\b`

// placeholders returns those of a text in order, each once.
func placeholders(text string) []string {
	var out []string
	for _, p := range regexp.MustCompile(placeholderPattern).FindAllString(text, -1) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// letter is what the assistant writes. It uses each placeholder it saw, one of
// them with the escape that models put before an underscore in Markdown.
func letter(kind string, r request) string {
	seen := placeholders(r.said())
	var b strings.Builder
	fmt.Fprintf(&b, "(This is Weir's stand-in for a %s model. It has no model behind it.)\n\n", kind)
	if len(seen) == 0 {
		fmt.Fprintf(&b, "I read your message of %d words. Nothing in it was hidden from me.\n", len(strings.Fields(r.last("user"))))
		return b.String()
	}
	who, rest := addressee(seen)
	fmt.Fprintf(&b, "Dear %s,\n\nThank you for your message. ", who)
	if len(rest) > 0 {
		b.WriteString("As agreed, we have noted the following:\n\n")
	}
	for i, p := range rest {
		if i == 0 {
			p = strings.Replace(p, "_", `\_`, 1)
		}
		fmt.Fprintf(&b, "- %s\n", p)
	}
	fmt.Fprintf(&b, "\n%s, please write back if any of this is wrong.\n\nKind regards\n", who)
	return b.String()
}

// addressee picks whom to write to, a person if there is one.
func addressee(seen []string) (who string, rest []string) {
	i := slices.IndexFunc(seen, func(p string) bool { return strings.HasPrefix(p, "PERSON_") })
	if i < 0 {
		return "Sir or Madam", seen
	}
	return seen[i], slices.Delete(slices.Clone(seen), i, i+1)
}

// firstTool calls the first tool on offer: every required text argument is what
// the prompt's placeholders say, or the user's last message.
func firstTool(r request) []ToolCall {
	if len(r.Tools) == 0 {
		return nil
	}
	f := r.Tools[0].Function
	value := strings.Join(placeholders(r.said()), ", ")
	if value == "" {
		value = r.last("user")
	}
	args := make(map[string]any, len(f.Parameters.Required))
	for _, name := range f.Parameters.Required {
		switch f.Parameters.Properties[name].Type {
		case "number", "integer":
			args[name] = 1
		case "boolean":
			args[name] = true
		case "array":
			args[name] = []string{value}
		case "object":
			args[name] = map[string]string{}
		default:
			args[name] = value
		}
	}
	src, err := json.Marshal(args, json.Deterministic(true))
	if err != nil {
		// A user's text may hold bytes that JSON cannot.
		src = []byte("{}")
	}
	return []ToolCall{{Name: f.Name, Arguments: string(src)}}
}
