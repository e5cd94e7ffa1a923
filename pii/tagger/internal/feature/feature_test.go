package feature_test

import (
	"slices"
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

// TestPackedLists holds that lists come back as they were packed, each flag by
// itself and all together, and that damage is an error.
func TestPackedLists(t *testing.T) {
	t.Parallel()
	words := map[string]uint8{"anna": 1, "berg": 2, "und": 4, "oslo": 8, "kowalski": 16, "acme": 32, "rose": 63}
	packed := feature.PackLists(words)
	l, err := feature.ReadLists(packed)
	if err != nil {
		t.Fatal(err)
	}
	if again := feature.PackLists(words); !cmp.Equal(packed, again) {
		t.Error("the same words are packed differently")
	}
	x, none := feature.NewExtractor(l), emptyLists(t)
	seen := map[uint16]bool{}
	for w := range words {
		row := more(t, x, none, w, 0)
		if len(row) != 1 || seen[row[0]] {
			t.Errorf("%s gives the rows %v, of its own must be one", w, row)
			continue
		}
		seen[row[0]] = true
	}
	for cut := 1; cut < len(packed); cut++ {
		if _, err := feature.ReadLists(packed[:cut]); err == nil {
			t.Errorf("lists cut off after %d bytes are no error", cut)
		}
	}
	if _, err := feature.ReadLists(append(packed, 0)); err == nil {
		t.Error("lists with a rest are no error")
	}
	for i := range packed {
		damaged := append([]byte(nil), packed...)
		damaged[i] ^= 0x80
		_, _ = feature.ReadLists(damaged) // must not panic, nor grow without end
	}
}

// TestParts holds which words of a script without blanks are known at which of
// their characters.
func TestParts(t *testing.T) {
	t.Parallel()
	l, err := feature.ReadLists(feature.PackLists(map[string]uint8{
		"山田": feature.ListSurname, "太郎": feature.ListForename, "山": feature.ListCommon, "一二三四五六": feature.ListOrg, "一二三四五六七": feature.ListPlace,
	}))
	if err != nil {
		t.Fatal(err)
	}
	x, none := feature.NewExtractor(l), emptyLists(t)
	for _, row := range []struct {
		name, text string
		at, want   int
	}{
		{"two words begin here", "山田太郎さん", 0, 2},
		{"one ends here", "山田太郎さん", 1, 1},
		{"one begins here", "山田太郎さん", 2, 1},
		{"none begins or ends here", "山田太郎さん", 4, 0},
		{"of a word that a sign cuts, only the character", "山・田。山/田", 4, 1},
		{"Latin letters cut it too", "太A郎", 0, 0},
		{"as long as is looked for", "一二三四五六七", 0, 1},
		{"and its end", "一二三四五六七", 5, 1},
		{"a longer one is not found", "一二三四五六七", 6, 0},
		{"a cut character at the end", "山\xe7\x94", 0, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := more(t, x, none, row.text, row.at); len(got) != row.want {
				t.Errorf("%d rows of lists, want %d", len(got), row.want)
			}
		})
	}
}

// TestStem holds that a name is known by its genitive, in a row of its own.
func TestStem(t *testing.T) {
	t.Parallel()
	l, err := feature.ReadLists(feature.PackLists(map[string]uint8{"müller": feature.ListSurname, "ann": feature.ListForename, "hans": feature.ListForename, "han": feature.ListPlace}))
	if err != nil {
		t.Fatal(err)
	}
	x, none := feature.NewExtractor(l), emptyLists(t)
	name, genitive := more(t, x, none, "Müller", 0), more(t, x, none, "Müllers", 0)
	if len(name) != 1 || len(genitive) != 1 || name[0] == genitive[0] {
		t.Errorf("name %v, genitive %v: must be one row each, not the same", name, genitive)
	}
	for w, want := range map[string]int{"Anns": 0, "Hans": 1, "MÜLLERS": 1, "Müllerss": 0} {
		if got := more(t, x, none, w, 0); len(got) != want {
			t.Errorf("%s: %d rows, want %d", w, len(got), want)
		}
	}
}

// more returns the rows of a token that are there by the lists.
func more(t testing.TB, x, none *feature.Extractor, s string, at int) []uint16 {
	t.Helper()
	toks := feature.Tokens(s, nil)
	all, without := x.IDs(s, toks, at, nil), none.IDs(s, toks, at, nil)
	if len(all) > feature.MaxIDs {
		t.Fatalf("token has %d rows", len(all))
	}
	var out []uint16
	for _, id := range all {
		if !slices.Contains(without, id) {
			out = append(out, id)
		}
	}
	return out
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
