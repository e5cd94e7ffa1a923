package mask_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/pii"
	"weir/pii/mask"
)

func TestStreamReleasesAtOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, piece, want string
		kind              mask.Kind
	}{
		{name: "no token begins", piece: "Hello there, how ", want: "Hello there, how "},
		{name: "a stem may begin", piece: "Hello P", want: "Hello "},
		{name: "in lower case too", piece: "the per", want: "the "},
		{name: "but not within a word", piece: "shopper", want: "shopper"},
		{name: "a stem that has no tokens, in lower case", piece: "an em", want: "an em"},
		{name: "no code goes on so", piece: "the person wh", want: "the person wh"},
		{name: "a whole token may be longer", piece: "PERSON_Q7K2M", want: ""},
		{name: "a whole token", piece: "PERSON_Q7K2M ", want: "Jane Doe "},
		{name: "half a character", piece: "caf\xc3", want: "caf"},
		{name: "half an escape", piece: `["a\u00`, want: `["a`, kind: mask.JSON},
		{name: "a backslash in a string", piece: `["a\`, want: `["a`, kind: mask.JSON},
		{name: "string ends a token", piece: `["PERSON_Q7K2M"`, want: `["Jane Doe"`, kind: mask.JSON},
	}
	r := fixed().Restorer()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := r.Stream(tt.kind).Write(tt.piece); got != tt.want {
				t.Errorf("released %q, want %q", got, tt.want)
			}
		})
	}
}

// TestHeldBackIsBounded feeds what looks like the beginning of a token for
// ever.
func TestHeldBackIsBounded(t *testing.T) {
	t.Parallel()
	const bound = 400 // a token with separators and three invisible characters behind each letter
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]mask.Kind{mask.Plain, mask.JSON}).Draw(t, "kind")
		s := fixed().Restorer().Stream(kind)
		if kind == mask.JSON {
			s.Write(`"`)
		}
		unit := rapid.SampledFrom([]string{"P", "PERSON", "PERSON_", "_", " ", "-", "Q7K2M", "\u200b", `\u200b`, "Nora", "A", "2", "e", `\u005f`})
		in, out := 0, 0
		for range 60 {
			piece := unit.Draw(t, "piece")
			in += len(piece)
			out += len(s.Write(piece)) // values are shorter than their tokens here
			if in-out > bound+8*s.Stats().Restored[pii.PersonName] {
				t.Fatalf("%d bytes in, %d out", in, out)
			}
		}
	})
}

func TestStats(t *testing.T) {
	t.Parallel()
	const text = "PERSON_Q7K2M person-q7k2m CARD_B3BCD EMAIL_ZZ2ZZ PERSON_MMMMM PERSON_Q7K2 nora vance"
	want := mask.Stats{
		Restored: map[pii.Label]int{pii.PersonName: 3, pii.PaymentCard: 1},
		Repaired: 2,
		Unknown:  1, // PERSON_MMMMM has no digit, PERSON_Q7K2 a letter too few
	}
	_, got := fixed().Restorer().Restore(text)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var sum mask.Stats
	sum.Add(got)
	sum.Add(mask.Stats{Unknown: 2})
	sum.Add(got)
	want = mask.Stats{Restored: map[pii.Label]int{pii.PersonName: 6, pii.PaymentCard: 2}, Repaired: 4, Unknown: 4}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Error(diff)
	}
	if got.Restored[pii.PersonName] != 3 {
		t.Error("adding changed the addend")
	}
}

func TestRestorerIsASnapshot(t *testing.T) {
	t.Parallel()
	var none *mask.Restorer
	if got, _ := none.Restore("PERSON_Q7K2M"); got != "PERSON_Q7K2M" || !none.Empty() {
		t.Error("a nil restorer restores")
	}
	if got := none.Stream(mask.JSON).Write("PERSON_"); got != "PERSON_" {
		t.Errorf("a nil restorer holds back: %q", got)
	}
	b := mask.NewBook(testKey, nil)
	before := b.Restorer()
	e := issue(t, b, "Jane Doe", pii.PersonName, mask.StylePlaceholder)
	if got, stats := before.Restore(e.Token); got != e.Token || stats.Unknown != 1 || !before.Empty() {
		t.Error("an older restorer knows a newer token")
	}
	after := b.Restorer()
	if got, _ := after.Restore(e.Token); got != "Jane Doe" || after.Empty() {
		t.Error("a newer restorer does not")
	}
	if after != b.Restorer() {
		t.Error("made anew though nothing changed")
	}
}

func TestBookIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	b := mask.NewBook(testKey, nil)
	names := []string{"Jane Doe", "Ana Prado", "Jens Holm", "Mira Koval", "Otto Reyes", "Dara Okonjo", "JANE DOE", "Noor Haddad"}
	tokens := make([][]string, 8)
	var wg sync.WaitGroup
	for g := range tokens {
		wg.Go(func() {
			for i := range names {
				name := names[(i+g)%len(names)]
				for _, style := range []mask.Style{mask.StylePlaceholder, mask.StyleSurrogate} {
					e, err := b.Issue(name, pii.PersonName, style, mask.Taken("Nora"))
					if err != nil {
						t.Error(err)
						return
					}
					tokens[g] = append(tokens[g], e.Token)
					if got, _ := b.Restorer().Restore(e.Token); got != name {
						t.Errorf("token of %d bytes restored wrongly", len(name))
					}
				}
				b.Find(strings.Join(names, " "))
				b.Literals("PERSON_Q7K2M")
				b.Pending()
				b.Entries()
			}
		})
	}
	wg.Wait()
	seen := map[string]string{}
	for _, e := range b.Entries() {
		if other, ok := seen[e.Token]; ok && other != e.Value {
			t.Error("two values share a token")
		}
		seen[e.Token] = e.Value
	}
	if b.Len() != 2*len(names) {
		t.Errorf("%d entries for %d names", b.Len(), len(names))
	}
}
