package mask_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/pii"
	"weir/pii/mask"
)

type value struct {
	label pii.Label
	text  string
}

func bookOf(t testing.TB, values ...value) *mask.Book {
	t.Helper()
	b := mask.NewBook(testKey, nil)
	for _, v := range values {
		issue(t, b, v.text, v.label, mask.StylePlaceholder)
	}
	return b
}

func found(b *mask.Book, text string) []string {
	var out []string
	for _, s := range b.Find(text) {
		out = append(out, string(s.Label)+":"+text[s.Start:s.End])
	}
	return out
}

func TestFind(t *testing.T) {
	t.Parallel()
	b := bookOf(t,
		value{pii.PersonName, "Jane Doe"}, value{pii.PersonName, "Ana"}, value{pii.PersonName, "will smith"},
		value{pii.PersonName, "王芳"}, value{pii.PersonName, "김민수"}, value{pii.PersonName, "Dr. José van der Berg"},
		value{pii.EmailAddress, "mira.koval@lumen.example"}, value{pii.PhoneNumber, "+1 415 555 0137"},
		value{pii.CardSecurityCode, "1234"}, value{pii.AccountID, "004821"}, value{pii.Age, "seventy"},
		value{pii.Location, "Kalamata"}, value{pii.Username, "user"}, value{pii.Username, "@kvasir"},
		value{pii.Organization, "Onyx Cobalt Clinic"}, value{pii.Password, "tr0ub4dor&3"}, value{pii.PersonName, "Ülker Öz"},
		value{pii.PersonalDate, "May"},
	)
	tests := []struct {
		name, in string
		want     []string
	}{
		{"exact", "Jane Doe came", []string{"PERSON_NAME:Jane Doe"}},
		{"other case", "JANE DOE, jane doe", []string{"PERSON_NAME:JANE DOE", "PERSON_NAME:jane doe"}},
		{"across a line break", "Jane\n  Doe", []string{"PERSON_NAME:Jane\n  Doe"}},
		{"with characters of no width", "Ja\u200bne D\u00adoe", []string{"PERSON_NAME:Ja\u200bne D\u00adoe"}},
		{"part of a name", "Ms Doe and Jane", []string{"PERSON_NAME:Doe", "PERSON_NAME:Jane"}},
		{"part of a name in other case", "doe, a deer; JANE", nil},
		{"not in a word", "Janet Doeful, Anathema, Banana", nil},
		{"name of three letters", "Ana ANA ana", []string{"PERSON_NAME:Ana"}},
		{"parts that are common words", "I will ask the smith", []string{"PERSON_NAME:smith"}},
		{"whole name of common words", "Will Smith", []string{"PERSON_NAME:Will Smith"}},
		{"particles and titles", "Dr. van der Berg", []string{"PERSON_NAME:Berg"}},
		{"composed differently", "Jose\u0301", []string{"PERSON_NAME:Jose\u0301"}},
		{"script without spaces", "联系王芳先生", []string{"PERSON_NAME:王芳"}},
		{"Hangul with an ending", "김민수는", []string{"PERSON_NAME:김민수"}},
		{"in an identifier", "report_Jane_2024", []string{"PERSON_NAME:Jane"}},
		{"within a path", "/home/mira.koval@lumen.example/x", []string{"EMAIL_ADDRESS:mira.koval@lumen.example"}},
		{"longer address", "mira.koval@lumen.examples", nil},
		{"begins with a sign", "tel:+1 415 555 0137.", []string{"PHONE_NUMBER:+1 415 555 0137"}},
		{"short number", "1234", nil},
		{"long enough number", "no. 004821", []string{"ACCOUNT_ID:004821"}},
		{"in a longer number", "10048210", nil},
		{"lower-case word that only helps", "seventy people", nil},
		{"capitalised place", "in KALAMATA", []string{"LOCATION:KALAMATA"}},
		{"word of the protocol", "the user", nil},
		{"handle", "by @kvasir!", []string{"USERNAME:@kvasir"}},
		{"secret", "pw=tr0ub4dor&3;", []string{"PASSWORD:tr0ub4dor&3"}},
		{"other scripts fold", "ÜLKER ÖZ", []string{"PERSON_NAME:ÜLKER ÖZ"}},
		{"short", "in May", nil},
		{"behind an escape", `{"a":"x\nJane Doe"}`, []string{"PERSON_NAME:Jane Doe"}},
		{"written with escapes", `"\u00dclker \u00d6z"`, []string{`PERSON_NAME:\u00dclker \u00d6z`}},
		{"in a URL", "/q/Jane%20Doe?x=%C3%9Clker", []string{"PERSON_NAME:Jane%20Doe", "PERSON_NAME:%C3%9Clker"}},
		{"in a form", "a=Onyx+Cobalt+Clinic&b=%2B1+415+555+0137", []string{"ORGANIZATION:Onyx+Cobalt+Clinic", "PHONE_NUMBER:%2B1+415+555+0137"}},
		{"bytes that are no text", "\xff\xfeJane Doe\xff", []string{"PERSON_NAME:Jane Doe"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, found(b, tt.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A name that is a common word is looked for in its own letter case only.
func TestFindCommonName(t *testing.T) {
	t.Parallel()
	b := bookOf(t, value{pii.PersonName, "Will"})
	if got := found(b, "I will, said Will. WILL"); len(got) != 1 || got[0] != "PERSON_NAME:Will" {
		t.Errorf("found %v", got)
	}
	if _, ok := mask.Leaks([]byte("I will"), b.Entries()); ok {
		t.Error("a common word leaks")
	}
	if _, ok := mask.Leaks([]byte("ask Will"), b.Entries()); !ok {
		t.Error("the name was missed")
	}
}

func TestFindSkipsLiterals(t *testing.T) {
	t.Parallel()
	b := fixed()
	masked, _, err := b.Mask("the PERSON_Q7K2M of old", nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(masked, "PERSON_Q7K2M ") {
		t.Errorf("literal went out as %q", masked)
	}
	if got := found(b, "any PERSON, PERSON_Q7K2M"); got != nil {
		t.Errorf("a literal propagates: %v", got)
	}
}

// TestFindAgreesWithSearch compares with a plain search over all offsets.
func TestFindAgreesWithSearch(t *testing.T) {
	t.Parallel()
	words := []string{"abcd", "abcd efgh", "bcde", "efgh ij", "äbcd", "abcd abcd", "cd ef12", "王芳王芳"}
	rapid.Check(t, func(t *rapid.T) {
		var values []value
		for _, w := range rapid.SliceOfNDistinct(rapid.SampledFrom(words), 1, 5, rapid.ID[string]).Draw(t, "values") {
			values = append(values, value{pii.Username, w})
		}
		b := mask.NewBook(testKey, nil)
		for _, v := range values {
			if _, err := b.Issue(v.text, v.label, mask.StylePlaceholder, nil); err != nil {
				t.Fatal(err)
			}
		}
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
			"abcd", "efgh", "bcde", "ABCD", "ä", "Ä", "bcd", " ", "\n ", "ij", "cd", "ef12", "x", "王", "芳", ".", "\u200b",
		}), 0, 16).Draw(t, "text"), "")
		var want []string
		for at := 0; at < len(text); {
			end := search(text, at, values)
			if end == 0 {
				_, n := utf8.DecodeRuneInString(text[at:])
				at += n
				continue
			}
			want = append(want, "USERNAME:"+text[at:end])
			at = end
		}
		if diff := cmp.Diff(want, found(b, text)); diff != "" {
			t.Fatalf("in %q: %s", text, diff)
		}
	})
}

// search returns the end of the longest value at offset at, 0 for none.
func search(text string, at int, values []value) int {
	inWord := func(i int) bool {
		before, n := utf8.DecodeLastRuneInString(text[:i])
		after, m := utf8.DecodeRuneInString(text[i:])
		word := func(r rune) bool { return unicode.IsLetter(r) && !unicode.Is(unicode.Han, r) || unicode.IsDigit(r) }
		return n > 0 && m > 0 && word(before) && word(after)
	}
	if r, _ := utf8.DecodeRuneInString(text[at:]); r == '\u200b' || unicode.IsSpace(r) {
		return 0
	}
	for end := len(text); end > at; end-- {
		if !utf8.RuneStart(append([]byte(text), 'x')[end]) || inWord(at) || inWord(end) || strings.HasSuffix(text[at:end], "\u200b") {
			continue
		}
		plain := strings.Join(strings.Fields(strings.ReplaceAll(text[at:end], "\u200b", "")), " ")
		if r, _ := utf8.DecodeLastRuneInString(text[at:end]); unicode.IsSpace(r) {
			continue
		}
		for _, v := range values {
			if strings.EqualFold(plain, v.text) {
				return end
			}
		}
	}
	return 0
}

func TestFindFollowsTheBook(t *testing.T) {
	t.Parallel()
	b := bookOf(t, value{pii.PersonName, "Jane Doe"})
	if got := found(b, "Jens Holm"); got != nil {
		t.Fatal(got)
	}
	issue(t, b, "Jens Holm", pii.PersonName, mask.StyleSurrogate)
	if got := found(b, "Jens Holm"); len(got) != 1 {
		t.Errorf("new value not found: %v", got)
	}
}
