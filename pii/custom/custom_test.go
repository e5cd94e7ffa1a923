package custom_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/pii"
	"weir/pii/custom"
)

// rec is a recognizer that says what it must, changed by with.
func rec(with func(*custom.Recognizer)) custom.Recognizer {
	r := custom.Recognizer{ID: "badge", Label: "STAFF_BADGE", Text: "badge number", Score: 0.9}
	with(&r)
	return r
}

func compile(t testing.TB, list ...custom.Recognizer) *custom.Set {
	t.Helper()
	s, err := custom.Compile(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// values returns what a set finds in a text, as id:value.
func values(t testing.TB, s *custom.Set, text pii.Text) (out []string) {
	t.Helper()
	spans, err := s.Classify(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	for _, sp := range spans {
		out = append(out, sp.Rule+":"+text.Value[sp.Start:sp.End])
	}
	slices.Sort(out)
	return out
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, pattern, finds, text string
		want                       []string
	}{
		{"a match", `SB-\d{6}`, "SB-000001", "a SB-004821, SB-004822.", []string{"badge:SB-004821", "badge:SB-004822"}},
		{"a group is the finding", `badge[ :]+(\d{6})`, "badge 000001", "badge: 004821", []string{"badge:004821"}},
		{"the first group that took part", `a(\d)|b(\d)`, "a1", "b2 a3", []string{"badge:2", "badge:3"}},
		{"word boundaries", `\bSB\d\b`, "SB1", "SB1 XSB2 SB3x äSB4", []string{"badge:SB1", "badge:SB4"}}, // RE2's \b is ASCII
		{"anchors are those of the text", `^SB\d$`, "SB1", "SB1", []string{"badge:SB1"}},
		{"and of lines where asked", `(?m)^SB\d$`, "SB1", "x\nSB1\ny", []string{"badge:SB1"}},
		{"letter case if asked", `(?i)sb\d`, "SB1", "sB1", []string{"badge:sB1"}},
		{"an empty match is none", `x|(\d*)y`, "x", "y", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := compile(t, rec(func(r *custom.Recognizer) { r.Pattern, r.Finds = row.pattern, []string{row.finds} }))
			if d := cmp.Diff(row.want, values(t, s, pii.Text{Value: row.text})); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	words := []string{"bluefin", "Blue  Fin-Tuna", "tuna", "鯨計画", "o'Neil & co"}
	set := func(match bool) *custom.Set {
		return compile(t, rec(func(r *custom.Recognizer) { r.Words, r.MatchCase, r.Finds = words, match, []string{"tuna"} }))
	}
	for _, row := range []struct {
		name, text string
		match      bool
		want       []string
	}{
		{"as written", "the bluefin plan", false, []string{"badge:bluefin"}},
		{"any letter case", "BlueFin", false, []string{"badge:BlueFin"}},
		{"own letter case", "BlueFin bluefin", true, []string{"badge:bluefin"}},
		{"not within a word", "bluefins xbluefin bluefin2 äbluefin", false, nil},
		{"beside an underscore", "_bluefin_", false, []string{"badge:bluefin"}},
		{"separators are the same", "blue_fin \n tuna", false, []string{"badge:blue_fin \n tuna", "badge:tuna"}},
		{"a phrase and a word in it", "Blue Fin Tuna", true, []string{"badge:Blue Fin Tuna"}},
		{"no separators in the script", "この鯨計画は", false, []string{"badge:鯨計画"}},
		{"other signs count", "O'NEIL & Co.", false, []string{"badge:O'NEIL & Co"}},
		{"at the edges", "tuna", false, []string{"badge:tuna"}},
		{"in invalid text", "\xfftuna\xfe", false, []string{"badge:tuna"}},
		{"a beginning only", "blue fin tun", false, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(row.want, values(t, set(row.match), pii.Text{Value: row.text})); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestContextAndValidator(t *testing.T) {
	t.Parallel()
	s := compile(t, rec(func(r *custom.Recognizer) {
		r.Pattern, r.Context, r.Finds, r.Spares = `\d{6}`, []string{"badge", "staff number"}, []string{"badge 123456"}, []string{"order 123456"}
	}), rec(func(r *custom.Recognizer) {
		r.ID, r.Pattern, r.Context, r.ScoreAlone, r.Finds = "maybe", `M\d{3}`, []string{"badge"}, 0.3, []string{"M123"}
	}), rec(func(r *custom.Recognizer) {
		r.ID, r.Pattern, r.Validator, r.Finds, r.Spares = "checked", `C([\d ]+\d)`, "luhn", []string{"C79927398713"}, []string{"C79927398710"}
	}))
	for _, row := range []struct {
		name string
		text pii.Text
		want []string
	}{
		{"before", pii.Text{Value: "Staff-Number: 123456"}, []string{"badge:123456"}},
		{"behind", pii.Text{Value: "123456 is her badge"}, []string{"badge:123456"}},
		{"none", pii.Text{Value: "order 123456"}, nil},
		{"too far before", pii.Text{Value: "badge" + strings.Repeat(" .", 60) + "123456"}, nil},
		{"too far behind", pii.Text{Value: "123456" + strings.Repeat(" .", 40) + "badge"}, nil},
		{"in the name of the member", pii.Text{Value: "123456", Key: "staffNumber"}, []string{"badge:123456"}},
		{"in another name", pii.Text{Value: "123456", Key: "staffName"}, nil},
		{"part of a word", pii.Text{Value: "badges 123456"}, nil},
		{"check digits", pii.Text{Value: "C7992 7398 713 and C79927398710"}, []string{"checked:7992 7398 713"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(row.want, values(t, s, row.text)); d != "" {
				t.Error(d)
			}
		})
	}
	spans, err := s.Classify(t.Context(), pii.Text{Value: "M123" + strings.Repeat(" .", 60) + "badge M456; C79927398713"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[float64]pii.Rank{}
	for _, sp := range spans {
		got[sp.Score] = sp.Rank
	}
	if d := cmp.Diff(map[float64]pii.Rank{0.3: pii.RankPrefix, 0.9: pii.RankChecksum}, got); d != "" {
		t.Error(d)
	}
}

// A value is found wherever it stands in a text of any length, with the same
// neighbours.
func TestPiecesDoNotShow(t *testing.T) {
	t.Parallel()
	s := compile(t, rec(func(r *custom.Recognizer) { r.Pattern, r.Finds = `\bSB-[0-9x]+\b`, []string{"SB-1"} }))
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.IntRange(0, 5000).Draw(t, "before")
		value := "SB-" + strings.Repeat("0", rapid.IntRange(1, custom.MaxMatch-4).Draw(t, "digits"))
		filler := rapid.SampledFrom([]string{" ", "é ", "SB ", "-"}).Draw(t, "filler")
		glued := rapid.Bool().Draw(t, "glued")
		head := strings.Repeat(filler, before)
		if glued {
			head += "x"
		} else {
			head += "."
		}
		text := head + value + "." + strings.Repeat(filler, rapid.IntRange(0, 3000).Draw(t, "behind"))
		spans, err := s.Classify(context.Background(), pii.Text{Value: text})
		if err != nil {
			t.Fatal(err)
		}
		if glued && len(spans) > 0 {
			t.Fatalf("%d found within a word", len(spans))
		}
		if !glued && (len(spans) != 1 || spans[0].Start != len(head) || spans[0].End != len(head)+len(value)) {
			t.Fatalf("%v, want [%d,%d)", spans, len(head), len(head)+len(value))
		}
	})
}

// RE2 takes time linear in a text for one match, and for all matches of a pattern
// that looks far ahead time quadratic in what it sees. What it sees at once is
// bounded, together it is little more than the text, and each byte is in one piece.
func TestPatternsSeeBoundedPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Repeat(rapid.SampledFrom([]string{"a", "é", "鯨", "\xff", "a é"}).Draw(t, "of"), rapid.IntRange(0, 6000).Draw(t, "n"))
		at, sum := 0, 0
		for _, w := range custom.Windows(s) {
			begin, from, to, end := w[0], w[1], w[2], w[3]
			if begin > from || from != at || to <= from || to > end || end > len(s) || end-begin > custom.MaxWindow+3*utf8.UTFMax {
				t.Fatalf("%v of %d bytes", w, len(s))
			}
			if end < len(s) && end-to < custom.MaxMatch {
				t.Fatalf("%v does not see far enough", w)
			}
			at, sum = to, sum+end-begin
		}
		if at != len(s) || sum > 2*len(s)+custom.MaxWindow {
			t.Fatalf("%d of %d bytes, seen %d", at, len(s), sum)
		}
	})
}

func TestNoTimeLeft(t *testing.T) {
	t.Parallel()
	s := compile(t, rec(func(r *custom.Recognizer) { r.Pattern, r.Finds = `a(?:.*b)?`, []string{"a"} }))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Classify(ctx, pii.Text{Value: "aa"}); !errors.Is(err, pii.ErrUnexamined) {
		t.Errorf("no time left: %v", err)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	const canary = "hunter2"
	ok := func(r *custom.Recognizer) { r.Words, r.Finds = []string{"bluefin"}, []string{"bluefin"} }
	for _, row := range []struct {
		name string
		with func(*custom.Recognizer)
		want string // field: part of the message
	}{
		{"no id", func(r *custom.Recognizer) { r.ID = "" }, "id: must be a name"},
		{"id of signs", func(r *custom.Recognizer) { r.ID = "a/" + canary }, "id: must be a name"},
		{"no text", func(r *custom.Recognizer) { r.Text = "" }, "text: must say"},
		{"text of two lines", func(r *custom.Recognizer) { r.Text = "a\n" + canary }, "text: must say"},
		{"lower-case label", func(r *custom.Recognizer) { r.Label = canary }, "label: must be a built-in"},
		{"label of one letter", func(r *custom.Recognizer) { r.Label = "A_1" }, "label: must be a built-in"},
		{"long label", func(r *custom.Recognizer) { r.Label = strings.Repeat("A", 33) }, "label: must be a built-in"},
		{"label of a stem", func(r *custom.Recognizer) { r.Label = "P_ERSON" }, "label: its placeholders would look like those of a built-in"},
		{"label of any", func(r *custom.Recognizer) { r.Label = "VALUE" }, "label: its placeholders"},
		{"label of a kind", func(r *custom.Recognizer) { r.Label = "IMAGE" }, "label: is the name of content"},
		{"nothing to find", func(r *custom.Recognizer) { r.Words = nil }, ": has neither"},
		{"broken pattern", func(r *custom.Recognizer) { r.Pattern = "x(" + canary }, "pattern: is no regular expression of RE2: missing closing )"},
		{"look-behind", func(r *custom.Recognizer) { r.Pattern = "abc(?<=" + canary + ")" }, "pattern: is no regular expression of RE2: invalid named capture, at character 4"},
		{"backreference", func(r *custom.Recognizer) { r.Pattern = `(a)\1` }, "pattern: is no regular expression of RE2: invalid escape sequence, at character 4"},
		{"repetition", func(r *custom.Recognizer) { r.Pattern = `a{1001}` }, "pattern: is no regular expression of RE2: invalid repeat count"},
		{"nested repetition", func(r *custom.Recognizer) { r.Pattern = `((a{100}){10}){10}` }, "pattern: is no regular expression of RE2: invalid repeat count"},
		{"large program", func(r *custom.Recognizer) { r.Pattern = `(?:[a-z]{3,900}x){3,5}` }, "pattern: is "},
		{"long pattern", func(r *custom.Recognizer) { r.Pattern = strings.Repeat("a", 2001) }, "pattern: is longer"},
		{"empty match", func(r *custom.Recognizer) { r.Pattern = `\d*` }, "pattern: matches where nothing stands"},
		{"word of signs", func(r *custom.Recognizer) { r.Words = []string{"bluefin", " - _"} }, "words[1]: must have"},
		{"word of a letter", func(r *custom.Recognizer) { r.Words = []string{"bluefin", "a"} }, "words[1]: must have"},
		{"long word", func(r *custom.Recognizer) { r.Words = []string{"bluefin", strings.Repeat("a", 201)} }, "words[1]: must have"},
		{"short context", func(r *custom.Recognizer) { r.Context = []string{"no", "a"} }, "context[1]: must have"},
		{"validator", func(r *custom.Recognizer) { r.Validator = canary }, "validator: no validator"},
		{"no score", func(r *custom.Recognizer) { r.Score = 0 }, "score: must be more"},
		{"score above one", func(r *custom.Recognizer) { r.Score = 1.01 }, "score: must be more"},
		{"score alone above", func(r *custom.Recognizer) { r.Context, r.ScoreAlone = []string{"tuna"}, 0.95 }, "score_alone: must be from"},
		{"score alone of nothing", func(r *custom.Recognizer) { r.ScoreAlone = 0.5 }, "score_alone: has no meaning"},
		{"no example", func(r *custom.Recognizer) { r.Finds = nil }, "finds: must hold"},
		{"example that fails", func(r *custom.Recognizer) { r.Finds = []string{"bluefin", canary} }, "finds[1]: nothing is found"},
		{"counterexample that is found", func(r *custom.Recognizer) { r.Spares = []string{canary, "a bluefin"} }, "spares[1]: something is found"},
		{"long example", func(r *custom.Recognizer) { r.Spares = []string{strings.Repeat("a", 4097)} }, "spares[0]: is longer"},
		{"too many examples", func(r *custom.Recognizer) { r.Spares = slices.Repeat([]string{"a"}, 101) }, "spares: more than"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := rec(ok)
			row.with(&r)
			_, err := custom.Compile([]custom.Recognizer{r})
			var faults custom.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("no faults: %v", err)
			}
			if len(faults) != 1 || !strings.HasPrefix(faults[0].Field+": "+faults[0].Message, row.want) {
				t.Errorf("%+v, want %s", faults, row.want)
			}
			if strings.Contains(err.Error()+faults[0].Hint, canary) {
				t.Errorf("shows content: %v", err)
			}
		})
	}
}

func TestFaultsOfAList(t *testing.T) {
	t.Parallel()
	word := func(id, label string) custom.Recognizer {
		return rec(func(r *custom.Recognizer) {
			r.ID, r.Label, r.Words, r.Finds = id, label, []string{"tuna"}, []string{"tuna"}
		})
	}
	for name, row := range map[string]struct {
		list []custom.Recognizer
		want string
	}{
		"same id":      {[]custom.Recognizer{word("a", "TUNA"), word("a", "TUNA")}, "recognizers[1].id: another"},
		"labels alike": {[]custom.Recognizer{word("a", "TU_NA"), word("b", "TUNA")}, "recognizers[1].label: its placeholders"},
		"too many":     {slices.Repeat([]custom.Recognizer{word("a", "TUNA")}, 201), "more than 200"},
		"too many words": {[]custom.Recognizer{rec(func(r *custom.Recognizer) {
			r.Words, r.Finds = slices.Repeat([]string{"tuna"}, 50001), []string{"tuna"}
		})}, "recognizers[0].words: more than"},
	} {
		if _, err := custom.Compile(row.list); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var large []custom.Recognizer
	for i := range 40 {
		large = append(large, rec(func(r *custom.Recognizer) {
			r.ID, r.Pattern, r.Finds = fmt.Sprintf("r%d", i), `(?:\w{1,900}y)z`, []string{"ayz"}
		}))
	}
	if _, err := custom.Compile(large); err == nil || !strings.Contains(err.Error(), "the patterns together are too large") {
		t.Errorf("many large patterns: %v", err)
	}
}

func TestLabelsAndVersion(t *testing.T) {
	t.Parallel()
	make := func(word string) *custom.Set {
		return compile(t, rec(func(r *custom.Recognizer) { r.Words, r.Finds = []string{word}, []string{word} }),
			rec(func(r *custom.Recognizer) {
				r.ID, r.Label, r.Words, r.Finds = "names", "PERSON_NAME", []string{word}, []string{word}
			}))
	}
	a, b := make("tuna"), make("cod")
	if d := cmp.Diff([]pii.Label{"STAFF_BADGE"}, a.Labels()); d != "" {
		t.Error(d)
	}
	if a.Version() == b.Version() || a.Version() != make("tuna").Version() {
		t.Error("the version is not that of the recognizers")
	}
	if text := fmt.Sprintf("%v %+v %#v %s", a.Recognizers(), a.Recognizers()[0], a.Recognizers()[0], a.Recognizers()[0].LogValue()); strings.Contains(text, "tuna") {
		t.Errorf("prints %s", text)
	}
	none := compile(t)
	if got := values(t, none, pii.Text{Value: "anything", Key: "key"}); got != nil {
		t.Errorf("none finds %v", got)
	}
}

// Words are found as a plain search over all places finds them.
func TestWordsAgreeWithSearch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"ab", "b", "abab", " ", "B", "ä", "b a", ".", "x", "-", "鯨", "計"})
		var words []string
		for range rapid.IntRange(1, 5).Draw(t, "n") {
			w := strings.Trim(strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, "word"), ""), " -")
			if len(w) >= 2 && !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
		if len(words) == 0 {
			return
		}
		s, err := custom.Compile([]custom.Recognizer{rec(func(r *custom.Recognizer) { r.Words, r.Finds = words, []string{words[0]} })})
		if err != nil {
			return // a word that is never found, as "."
		}
		text := strings.Join(rapid.SliceOfN(part, 0, 20).Draw(t, "text"), "")
		spans, err := s.Classify(context.Background(), pii.Text{Value: text})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, sp := range spans {
			got[fmt.Sprint(sp.Start, " ", sp.End)] = true
		}
		want := map[string]bool{}
		for _, w := range words {
			for start := range len(text) + 1 {
				for end := start + 1; end <= len(text); end++ {
					if standsAlone(text, start, end) && plain(text[start:end]) == plain(w) {
						want[fmt.Sprint(start, " ", end)] = true
					}
				}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%q in %q: %s", words, text, d)
		}
	})
}

// plain is the form in which words are compared, written another way.
func plain(s string) string {
	if strings.HasPrefix(s, " ") || strings.HasPrefix(s, "-") || strings.HasSuffix(s, " ") || strings.HasSuffix(s, "-") || s == "" {
		return "\x00" + s // never a word
	}
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == ' ' || r == '-' }), " ")
}

func standsAlone(text string, start, end int) bool {
	letter := func(r rune) int {
		switch {
		case strings.ContainsRune("abBxä", r):
			return 1
		case strings.ContainsRune("鯨計", r):
			return 2
		}
		return 0
	}
	rs := []rune(text[:start])
	in := []rune(text[start:end])
	after := []rune(text[end:])
	glued := func(a, b rune) bool { return letter(a) > 0 && letter(b) > 0 && letter(a)+letter(b) < 4 }
	return !(len(rs) > 0 && glued(rs[len(rs)-1], in[0])) && !(len(after) > 0 && glued(in[len(in)-1], after[0]))
}

func BenchmarkClassify(b *testing.B) {
	var list []custom.Recognizer
	for i := range 20 {
		list = append(list, rec(func(r *custom.Recognizer) {
			r.ID, r.Pattern, r.Finds = fmt.Sprintf("p%d", i), fmt.Sprintf(`\bQ%d-\d{4,8}\b`, i), []string{fmt.Sprintf("Q%d-1234", i)}
		}))
	}
	var words []string
	for i := range 5000 {
		words = append(words, fmt.Sprintf("word%dx name", i))
	}
	list = append(list, rec(func(r *custom.Recognizer) { r.ID, r.Words, r.Finds = "w", words, []string{"word7x name"} }))
	s := compile(b, list...)
	text := pii.Text{Value: strings.Repeat("Please look at the minutes of the meeting about Q7-1234 and word99x. ", 60)}
	b.SetBytes(int64(len(text.Value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Classify(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzClassify(f *testing.F) {
	s, err := custom.Compile([]custom.Recognizer{
		rec(func(r *custom.Recognizer) {
			r.Pattern, r.Words, r.Context, r.ScoreAlone, r.Finds = `\bS(B-?\d+)\b`, []string{"tuna", "blue fin"}, []string{"badge"}, 0.1, []string{"SB-1"}
		}),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("badge SB-12 tuna", "badgeNo")
	f.Add("\xff blue\u00a0fin \xf0\x9f", "")
	f.Fuzz(func(t *testing.T, value, key string) {
		spans, err := s.Classify(t.Context(), pii.Text{Value: value, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		for _, sp := range spans {
			if sp.Start < 0 || sp.End > len(value) || sp.Start >= sp.End || sp.Score <= 0 {
				t.Fatalf("%+v in %d bytes", sp, len(value))
			}
		}
	})
}
