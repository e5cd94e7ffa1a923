package feature_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"weir/pii/tagger/internal/feature"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, want string }{
		{"words and signs", "Ann's e-mail: a@b.example", "Ann|'|s|e|-|mail|:|a|@|b|.|example"},
		{"digits part from letters once", "B12 12th", "B|12|12|th"},
		{"a mixture stays whole", "PX844074A x3fa9c2b", "PX844074A|x3fa9c2b"},
		{"three of a sign are one", "-- --- ====", "-|-|---|===="},
		{"accents and marks belong to their word", "Jürgen Zoë a\u0301b", "Jürgen|Zoë|a\u0301b"},
		{"scripts without blanks, character by character", "山田さんとKim", "山|田|さ|ん|と|Kim"},
		{"Hangul too", "김민수는 왔다", "김|민|수|는|왔|다"},
		{"Greek", "Γιώργος 25", "Γιώργος|25"},
		{"a letter before digits outside ASCII", "Α12β", "Α|12|β"},
		{"invalid bytes are signs", "a\xffb", "a|\xff|b"},
		{"blanks of all kinds", "a\u00a0b\u3000c\td\r\ne", "a|b|c|d|e"},
		{"nothing", " \n ", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, tok := range feature.Tokens(row.text, nil) {
				got = append(got, row.text[tok.Start:tok.End])
			}
			if d := cmp.Diff(row.want, strings.Join(got, "|")); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	words := map[string]uint8{"anna": feature.ListForename, "żaneta": feature.ListForename, "rose": feature.ListForename | feature.ListCommon}
	l, err := feature.ReadLists(feature.PackLists(words))
	if err != nil {
		t.Fatal(err)
	}
	x, none := feature.NewExtractor(l), emptyLists(t)
	count := func(x *feature.Extractor, s string) int { return len(x.IDs(s, feature.Tokens(s, nil), 0, nil)) }
	for s, listed := range map[string]bool{"Anna": true, "ANNA": true, "ŻANETA": true, "Rose": true, "Annabel": false, "Ann": false} {
		if got := count(x, s)-count(none, s) == 1; got != listed {
			t.Errorf("%s is listed: %v, want %v", s, got, listed)
		}
	}
	if _, err := feature.ReadLists([]byte{1, 2, 3}); err == nil {
		t.Error("lists that are cut off are no error")
	}
}

func emptyLists(t testing.TB) *feature.Extractor {
	t.Helper()
	l, err := feature.ReadLists(nil)
	if err != nil {
		t.Fatal(err)
	}
	return feature.NewExtractor(l)
}

// FuzzIDs holds that tokens lie in order within the text and cut no character,
// and that their rows are few and in the table.
func FuzzIDs(f *testing.F) {
	for _, s := range []string{"", "Ines Halvorsen", "山田太郎", "a\xff", "ＡＢＣ１２", "\u0301", strings.Repeat("ab1", 50), strings.Repeat("Donaudampfschiff", 9), "Α1", "𠮷"} {
		f.Add(s)
	}
	x := emptyLists(f)
	f.Fuzz(func(t *testing.T, s string) {
		toks := feature.Tokens(s, nil)
		at := uint32(0)
		for i, tok := range toks {
			if tok.Start < at || tok.End <= tok.Start || int(tok.End) > len(s) {
				t.Fatalf("token %d is %+v, of %d bytes", i, tok, len(s))
			}
			at = tok.End
			if utf8.ValidString(s) && !utf8.ValidString(s[tok.Start:tok.End]) {
				t.Fatalf("token %d cuts a character", i)
			}
			ids := x.IDs(s, toks, i, nil)
			if len(ids) == 0 || len(ids) > feature.MaxIDs {
				t.Fatalf("token %d has %d rows", i, len(ids))
			}
			for _, id := range ids {
				if id == 0 {
					t.Fatalf("token %d has row 0", i)
				}
			}
		}
	})
}
