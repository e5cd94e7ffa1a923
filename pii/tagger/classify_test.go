package tagger

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/pii"
	"weir/pii/tagger/internal/feature"
)

func load(t testing.TB) *Tagger {
	t.Helper()
	tg, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

func find(t testing.TB, c pii.Classifier, text pii.Text) []pii.Span {
	t.Helper()
	spans, err := c.Classify(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	for _, sp := range spans {
		if sp.Start < 0 || sp.End > len(text.Value) || sp.Start >= sp.End || sp.Label == "" || sp.Score <= 0 || sp.Score > 1.0001 {
			t.Fatalf("span out of bounds: %+v of %d bytes", sp, len(text.Value))
		}
	}
	return spans
}

func TestFinds(t *testing.T) {
	t.Parallel()
	tg := load(t)
	for _, row := range []struct {
		name, text, value string
		label             pii.Label
	}{
		{"name in a sentence", "Could you ask Ines Halvorsen to call me back tomorrow?", "Ines Halvorsen", pii.PersonName},
		{"name in German", "Ich heiße Jürgen Obermaier und habe eine Frage.", "Jürgen Obermaier", pii.PersonName},
		{"name in French", "Je m'appelle Solange Bertrand et je voudrais un devis.", "Solange Bertrand", pii.PersonName},
		{"name in small letters", "my name is marta oliveira, please help", "marta oliveira", pii.PersonName},
		{"name in Greek", "Με λένε Γιώργος Παπαδάκης και μένω εδώ.", "Γιώργος Παπαδάκης", pii.PersonName},
		{"name in Japanese", "私の名前は山田太郎です。", "山田太郎", pii.PersonName},
		{"name in JSON", `{"first_name": "Leonor", "last_name": "Vasquez"}`, "Vasquez", pii.PersonName},
		{"birth date", "Name: Ines Halvorsen\nDate of birth: 14.02.1979", "14.02.1979", pii.DateOfBirth},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for _, sp := range find(t, tg, pii.Text{Value: row.text}) {
				if row.text[sp.Start:sp.End] == row.value && sp.Label == row.label && sp.Rank == pii.RankLearned {
					return
				}
			}
			t.Errorf("not found")
		})
	}
}

// TestLeaves holds texts in which nobody stands.
func TestLeaves(t *testing.T) {
	t.Parallel()
	tg := load(t)
	for _, text := range []string{
		"", " \n\t", "Explain the difference between a mutex and a semaphore.",
		"func (s *Server) Close() error { return s.listener.Close() }",
		"Wie wird das Wetter morgen?", "Release 2.4.1 fixes a crash in the parser.",
		"SELECT count(*) FROM orders WHERE created_at > now() - interval '1 day';",
		strings.Repeat("a", 5000), strings.Repeat("(", 5000), strings.Repeat("0123456789", 300),
	} {
		if spans := find(t, tg, pii.Text{Value: text}); len(spans) > 0 {
			t.Errorf("%d findings in a clean text of %d bytes: %s", len(spans), len(text), spans[0].Label)
		}
	}
}

// TestKey holds that a member's name is read but never reported.
func TestKey(t *testing.T) {
	t.Parallel()
	tg := load(t)
	spans := find(t, tg, pii.Text{Value: "Halvorsen", Key: "last_name"})
	want := []pii.Span{{Start: 0, End: 9, Label: pii.PersonName, Rank: pii.RankLearned, Rule: "tagger"}}
	for i := range spans {
		spans[i].Score = 0
	}
	if d := cmp.Diff(want, spans); d != "" {
		t.Error(d)
	}
}

var pieces = []string{
	"Ines Halvorsen", "please call", ". ", "\n", " at ", "Leeds", "12 Mill Lane", "the committee met", "+44 20 7946 0958", "山田太郎", "и", "x := f(y)",
	"Dear Mr. Okafor,", "on 3 May 2024", "\xff\xfe", "é", " ", "{\"name\":\"", "\"}", "IBAN",
}

func text(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 400).Draw(t, "pieces"), rapid.SampledFrom([]string{"", " "}).Draw(t, "gap"))
}

// TestSameEveryTime holds that results depend on the text alone, whatever the
// workspace was used for before.
func TestSameEveryTime(t *testing.T) {
	t.Parallel()
	tg, other := load(t), load(t)
	rapid.Check(t, func(rt *rapid.T) {
		s, dirt := text(rt), text(rt)
		find(t, tg, pii.Text{Value: dirt})
		if d := cmp.Diff(find(t, other, pii.Text{Value: s}), find(t, tg, pii.Text{Value: s})); d != "" {
			rt.Fatal(d)
		}
	})
}

// TestReach holds that an output depends on no token farther away than the
// reach, and not on how the text is cut into blocks: the same tokens computed
// in any window give the same bits.
func TestReach(t *testing.T) {
	t.Parallel()
	tg := load(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := text(rt)
		var whole, part workspace
		whole.toks = feature.Tokens(s, nil)
		n := len(whole.toks)
		if n == 0 {
			return
		}
		part.toks = whole.toks
		from := rapid.IntRange(0, n-1).Draw(rt, "from")
		to := rapid.IntRange(from+1, min(n, from+block)).Draw(rt, "to")
		all := tg.net.run(&whole, 0, n, 0, n, func(i int, ids []uint16) []uint16 { return tg.features.IDs(s, whole.toks, i, ids) })
		some := tg.net.logits(tg.features, s, &part, from, to)
		stride := tg.net.out.Stride
		for i := from; i < to; i++ {
			for j := range numTags {
				if a, b := all[i*stride+j], some[(i-from)*stride+j]; a != b {
					rt.Fatalf("token %d of %d, tag %d: %v in the whole, %v in %d-%d", i, n, j, a, b, from, to)
				}
			}
		}
	})
}

// TestPrefix holds the bound for text that is still arriving: what begins and
// ends more than a segment and the reach before the end does not change when
// text is added, once a sentence without anything stands between.
func TestPrefix(t *testing.T) {
	t.Parallel()
	tg := load(t)
	const calm = " The committee met on a rainy afternoon to weigh two plans for the old harbour, and neither side had read the whole report, so the talk went on until the lamps were lit. "
	rapid.Check(t, func(rt *rapid.T) {
		head, tail := text(rt), text(rt)
		var before, after workspace
		if _, err := tg.classify(context.Background(), pii.Text{Value: head + calm}, &before); err != nil {
			rt.Fatal(err)
		}
		if _, err := tg.classify(context.Background(), pii.Text{Value: head + calm + tail}, &after); err != nil {
			rt.Fatal(err)
		}
		sure := len(feature.Tokens(head, nil))
		cut := func(fs []found) (out []found) {
			for _, f := range fs {
				if f.to < sure {
					out = append(out, f)
				}
			}
			return out
		}
		if d := cmp.Diff(cut(before.found), cut(after.found), cmp.AllowUnexported(found{})); d != "" {
			rt.Fatal(d)
		}
	})
}

func TestStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := load(t).Classify(ctx, pii.Text{Value: "Ines Halvorsen"}); !errors.Is(err, pii.ErrUnexamined) {
		t.Errorf("got %v", err)
	}
}

// TestBoundedMemory holds that a long text costs its tokens and no more.
func TestBoundedMemory(t *testing.T) {
	t.Parallel()
	tg := load(t)
	var w workspace
	s := strings.Repeat("Ines Halvorsen lives in Leeds. ", 20_000)
	if _, err := tg.classify(t.Context(), pii.Text{Value: s}, &w); err != nil {
		t.Fatal(err)
	}
	if n := cap(w.x) + cap(w.y) + cap(w.out) + cap(w.held); n > 400_000 {
		t.Errorf("%d values kept for %d tokens", n, len(w.toks))
	}
}

func TestDamagedWeights(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(m, w []byte) ([]byte, []byte){
		"a flipped bit":       func(m, w []byte) ([]byte, []byte) { w[100] ^= 1; return m, w },
		"cut short":           func(m, w []byte) ([]byte, []byte) { return m, w[:len(w)-1] },
		"empty":               func(m, _ []byte) ([]byte, []byte) { return m, nil },
		"not a manifest":      func(_, w []byte) ([]byte, []byte) { return []byte("{"), w },
		"unknown in manifest": func(m, w []byte) ([]byte, []byte) { return append([]byte(`{"extra":1,`), m[1:]...), w },
	} {
		m, w := change([]byte(string(manifestFile)), []byte(string(weightsFile)))
		if _, _, err := loadNetwork(m, w); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, s := range append(pieces, strings.Join(pieces, " "), "\x00", "\u200b\u200d", "𝒜", "𠮷野家", "A1B2C3D4", "１２３") {
		f.Add(s, "")
		f.Add(s, "name")
	}
	tg := load(f)
	f.Fuzz(func(t *testing.T, s, key string) {
		for _, sp := range find(t, tg, pii.Text{Value: s, Key: key}) {
			if utf8.ValidString(s) && !utf8.ValidString(s[sp.Start:sp.End]) {
				t.Error("a span cuts a character")
			}
		}
	})
}
