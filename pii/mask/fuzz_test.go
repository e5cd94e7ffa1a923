package mask_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"weir/pii"
	"weir/pii/mask"
)

func seeds(f *testing.F) {
	for i, p := range pieces {
		f.Add(p+" "+pieces[(i*7+3)%len(pieces)]+pieces[(i*5+1)%len(pieces)], uint8(i))
	}
	f.Add(`{"a":"PERSON\u005fQ7K2M\\_","b":["\u0050ERSON_A2BCD"]}`, uint8(3))
}

// FuzzRestore masks a part of a text and wants the text back.
func FuzzRestore(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string, at uint8) {
		if text == "" {
			return
		}
		start := int(at) % len(text)
		span := pii.Span{Start: start, End: min(len(text), start+1+int(at)/16), Label: pii.PersonName}
		for _, style := range []mask.Style{mask.StylePlaceholder, mask.StyleSurrogate} {
			b := fixed()
			masked, _, err := b.Mask(text, []pii.Span{span}, func(pii.Label) mask.Style { return style }, mask.Taken(text))
			if err != nil {
				t.Fatal(err)
			}
			if back, _ := b.Restorer().Restore(masked); back != text {
				t.Errorf("%q became %q", text, back)
			}
		}
		r := fixed().Restorer()
		if source, _ := r.RestoreJSON(text); jsontext.Value(text).IsValid() && !jsontext.Value(source).IsValid() {
			t.Errorf("%q is no longer JSON: %q", text, source)
		}
	})
}

// FuzzStream cuts a text into pieces and wants what the whole gives.
func FuzzStream(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string, cut uint8) {
		r := fixed().Restorer()
		for _, kind := range []mask.Kind{mask.Plain, mask.JSON} {
			restore := r.Restore
			if kind == mask.JSON {
				restore = r.RestoreJSON
			}
			want, stats := restore(text)
			s := r.Stream(kind)
			var b strings.Builder
			for rest, size := text, int(cut)%9+1; rest != ""; {
				n := min(size, len(rest))
				b.WriteString(s.Write(rest[:n]))
				rest, size = rest[n:], (size*5+int(cut))%11+1
			}
			b.WriteString(s.Flush())
			if b.String() != want || s.Stats().Unknown != stats.Unknown {
				t.Errorf("%q gives %q in pieces, %q whole", text, b.String(), want)
			}
		}
	})
}

// FuzzFind wants spans that are in order and within the text, and no panic
// from the last check.
func FuzzFind(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string, _ uint8) {
		b := fixed()
		end := 0
		for _, s := range b.Find(text) {
			if s.Start < end || s.End <= s.Start || s.End > len(text) {
				t.Fatalf("span %d to %d of %d behind %d", s.Start, s.End, len(text), end)
			}
			end = s.End
		}
		mask.Leaks([]byte(text), b.Entries())
	})
}
