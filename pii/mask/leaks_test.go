package mask_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"weir/pii"
	"weir/pii/mask"
)

func quote(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestLeaks(t *testing.T) {
	t.Parallel()
	entries := bookOf(t, value{pii.PersonName, `Zoë "Z" Quist`}, value{pii.Password, "p\\w/d"}, value{pii.PersonName, "Person Place"}).Entries()
	zoe := entries[0].Value
	b64 := func(prefix, s string) string { return base64.StdEncoding.EncodeToString([]byte(prefix + s + "~")) }
	tests := []struct {
		name, body string
		want       pii.Label
	}{
		{"plain", "to " + zoe + "!", pii.PersonName},
		{"other case", "to " + strings.ToUpper(zoe), pii.PersonName},
		{"in JSON", `{"a":` + quote("to "+zoe) + `}`, pii.PersonName},
		{"in JSON within JSON", `{"arguments":` + quote(`{"a":`+quote("to\n"+zoe)+`}`) + `}`, pii.PersonName},
		{"all escaped", `{"a":"\u005a\u006f\u00eb \u0022Z\u0022 \u0051uist"}`, pii.PersonName},
		{"behind an escape", `{"a":"\nZo\u00eb \"Z\" Quist"}`, pii.PersonName},
		{"in a URL's path", "https://x.example/" + url.PathEscape(zoe), pii.PersonName},
		{"in a form", "q=" + url.QueryEscape(zoe) + "&b=1", pii.PersonName},
		{"secret with signs, JSON", `{"a":` + quote("p\\w/d") + `}`, pii.Password},
		{"secret with an escaped slash", `{"a":"p\\w\/d"}`, pii.Password},
		{"Base64", `{"a":"` + b64("", zoe) + `"}`, pii.PersonName},
		{"Base64, second alignment", `{"a":"` + b64("x", zoe) + `"}`, pii.PersonName},
		{"Base64, third alignment", `{"a":"` + b64("xy", zoe) + `"}`, pii.PersonName},
		{"Base64 with escaped slashes", `{"a":"` + strings.ReplaceAll(b64("???", zoe), "/", `\/`) + `"}`, pii.PersonName},
		{"Base64 of a URL", base64.RawURLEncoding.EncodeToString([]byte("~~~" + zoe)), pii.PersonName},
		{"data URL", "data:text/plain;base64," + b64("hello ", zoe), pii.PersonName},

		{"token", "to " + entries[0].Token, ""},
		{"within a token", entries[2].Token + ", place", ""},
		{"within a word", "p\\w/dx", ""},
		{"nothing", `{"messages":[]}`, ""},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := mask.Leaks([]byte(tt.body), entries)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("got %q %v", got, ok)
			}
		})
	}
}

// A real name may be part of another person's surrogate, and the stem of a
// placeholder may be a name.
func TestTokensDoNotLeak(t *testing.T) {
	t.Parallel()
	entries := []mask.Entry{
		{Token: "Nora Vance", Value: "Jane Doe", Label: pii.PersonName, Style: mask.StyleSurrogate},
		{Token: "Greta", Value: "Nora", Label: pii.PersonName, Style: mask.StyleSurrogate},
		{Token: "USERNAME_A2BCD", Value: "person", Label: pii.Username, Style: mask.StylePlaceholder},
	}
	if l, ok := mask.Leaks([]byte("Nora Vance met Greta and PERSON_Q7K2M"), entries); ok {
		t.Errorf("%s leaks", l)
	}
	if _, ok := mask.Leaks([]byte("Nora met Greta"), entries); !ok {
		t.Error("a value beside tokens was missed")
	}
}

func TestLeaksAnyAlignment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.StringMatching(`[a-zA-Z]{3}[0-9a-z]{1,20}`).Draw(t, "value")
		before := rapid.StringN(0, 6, 12).Draw(t, "before")
		after := rapid.StringN(0, 6, 12).Draw(t, "after")
		e := []mask.Entry{{Token: "ACCOUNT_A2BCD", Value: v, Label: pii.AccountID}}
		if _, ok := mask.Leaks(nil, e); ok {
			t.Fatal("nothing leaks")
		}
		enc := rapid.SampledFrom([]*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding}).Draw(t, "encoding")
		body := enc.EncodeToString([]byte(before + v + after))
		if v == "null" || v == "true" || v == "root" || v == "test" || v == "user" {
			return
		}
		if _, ok := mask.Leaks([]byte(body), e); !ok {
			t.Fatalf("%q in %q was missed", v, body)
		}
		if _, ok := mask.Leaks(fmt.Appendf(nil, `{"x":%s}`, quote(quote(v))), e); !ok {
			t.Fatal("in JSON was missed")
		}
	})
}

// What Find finds and Mask replaces, Leaks does not miss: else a request whose
// masking was right would be stopped.
func TestMaskedTextDoesNotLeak(t *testing.T) {
	t.Parallel()
	names := []string{"Jane Doe", "Vangie", "Will Stone", "王芳", "José Berg", "Nora"}
	rapid.Check(t, func(t *rapid.T) {
		style := rapid.SampledFrom([]mask.Style{mask.StylePlaceholder, mask.StyleSurrogate}).Draw(t, "style")
		words := []string{
			"Jane Doe", "jane doe", "JANE", "Doe", "doe", "vangie.", "Vangie", "will", "Will", "Stone", "王芳", "JOSÉ BERG", "Jose\u0301", "Nora",
			"nora", "mira@lumen.example", "x", "12",
		}
		between := []string{" ", "\n", "_", "-", "/", "王"}
		if rapid.Bool().Draw(t, "URL") { // a text has escapes of one kind
			words = append(words, "Jane%20Doe", "%4Aane")
			between = append(between, "%20", "+", "%2F")
		} else {
			words = append(words, `Jane\nDoe`, `\u004aane`)
			between = append(between, `\n`, `\"`, `\\`, `\u00a0`)
		}
		var text string
		for range rapid.IntRange(0, 8).Draw(t, "words") {
			text += rapid.SampledFrom(words).Draw(t, "word") + rapid.SampledFrom(between).Draw(t, "separator")
		}
		b := mask.NewBook(testKey, nil)
		taken := mask.Taken(text)
		for _, n := range names {
			if _, err := b.Issue(n, pii.PersonName, style, taken); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Issue("mira@lumen.example", pii.EmailAddress, style, taken); err != nil {
			t.Fatal(err)
		}
		masked, _, err := b.Mask(text, b.Find(text), func(pii.Label) mask.Style { return style }, taken)
		if err != nil {
			t.Fatal(err)
		}
		if l, ok := mask.Leaks([]byte(quote(masked)), b.Entries()); ok {
			t.Fatalf("%s of %q leaks in %q", l, text, masked)
		}
	})
}
