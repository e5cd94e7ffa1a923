package mask_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"weir/pii"
	"weir/pii/mask"
)

// pieces are what texts are made of here: what a matcher could trip over.
var pieces = []string{
	"Jane Doe", "JANE DOE", "jane doe", "Ana \"Nita\" Prado", "Nora Vance", "nora", "王芳", "Ülker", "+1 415 555 0137", "mira@lumen.example",
	"PERSON", "person", "PERSON_", "PERSON_Q7K2M", "person q7k2m", "PERSON_Q7K2MAB", "PERSON\\_Q7K2M", "CARD", "CARDCODE_C4BCD", "DATE_D5BCD",
	"Q7K2M", "q7k2ms", "user_4711-x", "_", "-", " ", "  ", "\n", "\t", "\\", "\"", "'s", "s", "em", "X", "7", "a", "é", "先生", "\u200b", "\u2011",
	"\xff", "\xe4\xb8", "\u005f", `\u005f`, `\n`, "{", "}", ":", ",", "[", "]", "I", "E6BCD", "PHONE", "é", "🙂", "\u00ad",
}

var texts = rapid.Custom(func(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(pieces), rapid.StringN(0, 4, 8)), 0, 14).Draw(t, "pieces"), "")
})

func drawSpans(t *rapid.T, text string) []pii.Span {
	if text == "" {
		return nil
	}
	n := rapid.IntRange(0, 5).Draw(t, "spans")
	spans := make([]pii.Span, n)
	for i := range spans {
		start := rapid.IntRange(0, len(text)-1).Draw(t, "start")
		end := rapid.IntRange(start+1, min(len(text), start+20)).Draw(t, "end")
		label := rapid.SampledFrom([]pii.Label{pii.PersonName, pii.PhoneNumber, pii.CardSecurityCode, pii.Username, pii.EmailAddress, "BADGE"}).Draw(t, "label")
		spans[i] = pii.Span{Start: start, End: end, Label: label}
	}
	return spans
}

func drawBook(t *rapid.T) *mask.Book {
	if rapid.Bool().Draw(t, "fixed") {
		return fixed()
	}
	return mask.NewBook([32]byte{rapid.Byte().Draw(t, "key")}, nil)
}

func chunked(t *rapid.T, r *mask.Restorer, kind mask.Kind, text string) string {
	s := r.Stream(kind)
	var b strings.Builder
	for len(text) > 0 {
		n := rapid.IntRange(1, min(len(text), 20)).Draw(t, "piece")
		b.WriteString(s.Write(text[:n]))
		text = text[n:]
	}
	b.WriteString(s.Flush())
	return b.String()
}

func TestMaskedTextRestores(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBook(t)
		styles := map[pii.Label]mask.Style{}
		style := func(l pii.Label) mask.Style {
			if _, ok := styles[l]; !ok {
				styles[l] = rapid.SampledFrom([]mask.Style{mask.StylePlaceholder, mask.StyleSurrogate}).Draw(t, "style")
			}
			return styles[l]
		}
		for range rapid.IntRange(1, 3).Draw(t, "texts") {
			text := texts.Draw(t, "text")
			spans := drawSpans(t, text)
			masked, entries, err := b.Mask(text, spans, style, mask.Taken(text))
			if err != nil {
				t.Fatalf("mask %q %v: %v", text, spans, err)
			}
			if len(spans) > 0 && len(entries) == 0 {
				t.Fatal("nothing masked")
			}
			r := b.Restorer()
			if got, _ := r.Restore(masked); got != text {
				t.Fatalf("%q became %q", text, got)
			}
			if got := chunked(t, r, mask.Plain, masked); got != text {
				t.Fatalf("in pieces %q became %q", text, got)
			}
			if !utf8.ValidString(text) {
				continue
			}
			quoted, err := jsontext.AppendQuote([]byte(`{"a":`), masked)
			if err != nil {
				t.Fatal(err)
			}
			source := string(quoted) + "}"
			back := chunked(t, r, mask.JSON, source)
			want, _ := jsontext.AppendQuote([]byte(`{"a":`), text)
			if back != string(want)+"}" {
				t.Fatalf("as JSON %s became %s", want, back)
			}
		}
	})
}

func TestStreamIsRestore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawBook(t).Restorer()
		text := texts.Draw(t, "text")
		want, _ := r.Restore(text)
		if got := chunked(t, r, mask.Plain, text); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		want, _ = r.RestoreJSON(text)
		if got := chunked(t, r, mask.JSON, text); got != want {
			t.Fatalf("JSON: got %q, want %q", got, want)
		}
	})
}

func TestRestoredJSONIsValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := fixed().Restorer()
		quoted, _ := jsontext.AppendQuote(nil, texts.Draw(t, "text")) // bytes that are not UTF-8 become U+FFFD
		got, _ := r.RestoreJSON(string(quoted))
		if !jsontext.Value(got).IsValid() {
			t.Fatalf("%s became %s", quoted, got)
		}
	})
}

func TestLiteralsAreWhatRestoreTakes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := fixed()
		text := texts.Draw(t, "text")
		spans := b.Literals(text)
		got, stats := b.Restorer().Restore(text)
		n := 0
		for _, c := range stats.Restored {
			n += c
		}
		if n != len(spans) || len(spans) == 0 && got != text {
			t.Fatalf("%d literals, %d restored", len(spans), n)
		}
	})
}
