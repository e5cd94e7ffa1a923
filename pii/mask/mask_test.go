package mask_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/pii"
	"weir/pii/mask"
)

func TestApply(t *testing.T) {
	t.Parallel()
	got, err := mask.Apply("one two three", []mask.Edit{{Start: 0, End: 3, Text: "1"}, {Start: 4, End: 4, Text: "and "}, {Start: 8, End: 13}})
	if err != nil || got != "1 and two " {
		t.Errorf("got %q, %v", got, err)
	}
	for name, edits := range map[string][]mask.Edit{
		"overlap":      {{Start: 0, End: 3}, {Start: 2, End: 4}},
		"backwards":    {{Start: 3, End: 2}},
		"out of range": {{Start: 0, End: 14}},
		"negative":     {{Start: -1, End: 2}},
	} {
		if _, err := mask.Apply("one two three", edits); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Where a token would not stand free, the span grows or another style serves.
func TestMaskAtWordEdges(t *testing.T) {
	t.Parallel()
	surrogates := func(pii.Label) mask.Style { return mask.StyleSurrogate }
	tests := []struct {
		name, text string
		start, end int
		style      func(pii.Label) mask.Style
		want       string // % is the token
	}{
		{"in prose", "ask Jane now", 4, 8, nil, "ask % now"},
		{"an ending", "Janes book", 0, 4, nil, "%s book"},
		{"a letter that the code could go on with", "JaneX book", 0, 4, nil, "% book"},
		{"a digit", "Jane7 book", 0, 4, nil, "% book"},
		{"a long word", "Janesville", 0, 4, nil, "%"},
		{"a capital before", "MCJane", 2, 6, nil, "%"},
		{"a small letter before", "xJane", 1, 5, nil, "x%"},
		{"behind a percent escape", "?q=%2FJane", 6, 10, nil, "?q=%2F%"},
		{"a surrogate behind one", "?q=%2FJane", 6, 10, surrogates, "?q=%2F%"},
		{"a surrogate within a word", "xJane", 1, 5, surrogates, "x%"},
		{"half a character", "é", 1, 2, nil, "%"},
		{"a script without spaces", "找Jane先生", 3, 7, nil, "找%先生"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := mask.NewBook(testKey, nil)
			masked, entries, err := b.Mask(tt.text, []pii.Span{{Start: tt.start, End: tt.end, Label: pii.PersonName}}, tt.style, nil)
			if err != nil || len(entries) != 1 {
				t.Fatalf("%d entries, %v", len(entries), err)
			}
			i := strings.LastIndex(tt.want, "%")
			if want := tt.want[:i] + entries[0].Token + tt.want[i+1:]; masked != want {
				t.Errorf("got %q, want %q", masked, want)
			}
			if back, _ := b.Restorer().Restore(masked); back != tt.text {
				t.Errorf("restored to %q", back)
			}
		})
	}
}

func TestMaskRefusesBadSpans(t *testing.T) {
	t.Parallel()
	for _, s := range []pii.Span{{Start: -1, End: 2}, {Start: 2, End: 2}, {Start: 1, End: 9}} {
		if _, _, err := mask.NewBook(testKey, nil).Mask("Jane Doe", []pii.Span{s}, nil, nil); err == nil {
			t.Errorf("span %d to %d: no error", s.Start, s.End)
		} else if strings.Contains(err.Error(), "Jane") {
			t.Error("the error holds content")
		}
	}
	unknown := func(pii.Label) mask.Style { return "blur" }
	if _, _, err := mask.NewBook(testKey, nil).Mask("Jane Doe", []pii.Span{{Start: 0, End: 4}}, unknown, nil); err == nil {
		t.Error("unknown style: no error")
	}
	all := func(string) bool { return true }
	if _, _, err := mask.NewBook(testKey, nil).Mask("Jane Doe", []pii.Span{{Start: 0, End: 4}}, nil, all); !errors.Is(err, mask.ErrNoToken) {
		t.Errorf("everything taken: %v", err)
	}
}

type restoreCase struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Distinct int    `json:"expect_distinct_placeholders"`
	Spans    []struct {
		Start int       `json:"start"`
		End   int       `json:"end"`
		Label pii.Label `json:"weir_label"`
	} `json:"spans"`
	Restore struct {
		Map      map[string]string `json:"map"`
		Expected string            `json:"expected"`
	} `json:"restore"`
}

func TestCases(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var c restoreCase
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			if c.Distinct == 0 {
				c.restores(t)
				return
			}
			var spans []pii.Span
			for _, s := range c.Spans {
				spans = append(spans, pii.Span{Start: s.Start, End: s.End, Label: s.Label})
			}
			for _, style := range []mask.Style{mask.StylePlaceholder, mask.StyleSurrogate} {
				b := mask.NewBook(testKey, nil)
				masked, _, err := b.Mask(c.Text, spans, func(pii.Label) mask.Style { return style }, mask.Taken(c.Text))
				if err != nil {
					t.Fatal(err)
				}
				if back, _ := b.Restorer().Restore(masked); back != c.Text || b.Len() != c.Distinct {
					t.Errorf("%s: %d tokens, restored to %q", style, b.Len(), back)
				}
			}
		})
	}
}

// restores puts values back into the arguments of a tool call, which are JSON
// within the string of a JSON text.
func (c *restoreCase) restores(t *testing.T) {
	text := c.Text
	var entries []mask.Entry
	for old, value := range c.Restore.Map {
		token := fmt.Sprintf("PERSON_A%dBCD", len(entries)+2)
		text = strings.ReplaceAll(text, old, token)
		entries = append(entries, mask.Entry{Token: token, Value: value, Label: pii.PersonName, Style: mask.StylePlaceholder})
	}
	const open = `"arguments":`
	at := strings.Index(text, open) + len(open)
	quoted, err := jsontext.NewDecoder(strings.NewReader(text[at:])).ReadValue()
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		t.Fatal(err)
	}
	restored, _ := mask.NewBook(testKey, entries).Restorer().RestoreJSON(string(arguments))
	if got := text[:at] + quote(restored) + text[at+len(quoted):]; got != c.Restore.Expected {
		t.Errorf("got %s, want %s", got, c.Restore.Expected)
	}
}
