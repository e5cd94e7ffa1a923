package fold_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/pii/fold"
)

func TestFold(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain text stays", "Hello, world! a+b=c #1", "Hello, world! a+b=c #1"},
		{"honest German", "Müller aß Brötchen", "Müller aß Brötchen"},
		{"honest Russian", "сор и рост, оса", "сор и рост, оса"},
		{"honest Russian beside Latin", "USB-порт и API-ключ", "USB-порт и API-ключ"},
		{"honest Greek", "Αθήνα και οικονομία", "Αθήνα και οικονομία"},
		{"honest Chinese", "原告欧阳文静", "原告欧阳文静"},
		{"honest Hindi", "मेरा नाम", "मेरा नाम"},
		{"percent of something", "100% of 50%ab", "100% of 50%ab"},
		{"ampersands", "a && b & c &x; &notanentity;", "a && b & c &x; &notanentity;"},
		{"windows path", `C:\Users\jane`, `C:\Users\jane`},
		{"invalid UTF-8", "a\xff\xc3b", "a\xff\xc3b"},
		{"zero width", "a\u200bb\u200c\u200d\ufeffc", "abc"},
		{"bidi controls", "\u202eabc\u202c", "abc"},
		{"soft hyphen", "pass\u00adword", "password"},
		{"variation selector", "a\ufe0f1\U000e0101", "a1"},
		{"control characters", "a\x00b\x08c", "abc"},
		{"line breaks stay", "a\r\n\tb", "a\r\n\tb"},
		{"full width", "ａｂｃ＠１２３", "abc@123"},
		{"math letters", "𝐀𝑏𝟓", "Ab5"},
		{"circled", "①ⓐ", "1a"},
		{"ligature", "oﬃce", "office"},
		{"spaces and dashes", "a\u00a0b\u3000c–d—e", "a b c-d-e"},
		{"quotes", "“x” ‘y’", `"x" 'y'`},
		{"digits of other scripts", "٤١ ४२ ๓", "41 42 3"},
		{"Cyrillic in Latin", "pаypаl", "paypal"},
		{"Cyrillic beside digits", "АКІА5", "AKIA5"},
		{"Cyrillic word in an address", "сосо@x.example", "coco@x.example"},
		{"real word in an address", "иван@x.example", "иван@x.example"},
		{"Greek in Latin", "gοοgle", "google"},
		{"accent typed apart", "cafe\u0301", "café"},
		{"marks over digits", "4\u03361\u0336", "41"},
		{"marks over letters without a composed form", "p\u0336q\u0332", "pq"},
		{"percent", "a%40b%2Ec", "a@b.c"},
		{"percent, several bytes", "caf%C3%A9", "café"},
		{"percent twice", "a%2540b", "a@b"},
		{"percent to a full width", "%EF%BC%A0", "@"},
		{"entities", "a&#64;b&#x2e;c&amp;d&commat;", "a@b.c&d@"},
		{"JSON", `a\u0040b\n\"c\"\/`, "a@b\n\"c\"/"},
		{"JSON pair", `\ud835\udc00`, "A"},
		{"half a pair stays", `\ud835 x`, `\ud835 x`},
		{"hexadecimal escape", `\x40 \u{40} \U00000040`, "@ @ @"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := fold.Fold(tt.in)
			if f.Text != tt.want {
				t.Errorf("Fold(%q) = %q, want %q", tt.in, f.Text, tt.want)
			}
			if f.Identity() != (tt.in == tt.want) {
				t.Errorf("Identity() = %v", f.Identity())
			}
		})
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, folded, want string }{
		{"invisible inside", "x mi\u200bra y", "mira", "mi\u200bra"},
		{"invisible at the edges stays out", "x \u200bmira\u200b y", "mira", "mira"},
		{"expanded character is whole", "oﬃce", "ff", "ﬃ"},
		{"escape", "a%40b", "@", "%40"},
		{"escape twice", "x a%2540b y", "a@b", "a%2540b"},
		{"letters after an escape", "%41%42cd", "Bc", "%42c"},
		{"look-alike", "xx pаy", "pay", "pаy"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := fold.Fold(tt.in)
			at := strings.Index(f.Text, tt.folded)
			if at < 0 {
				t.Fatalf("%q not in %q", tt.folded, f.Text)
			}
			start, end := f.Origin(at, at+len(tt.folded))
			if got := tt.in[start:end]; got != tt.want {
				t.Errorf("Origin of %q is %q, want %q", tt.folded, got, tt.want)
			}
		})
	}
}

// disguised draws text with much to fold in it.
func disguised(t *rapid.T) string {
	piece := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{"a", "%40", "%2540", "%E2%82%AC", "\u200b", "ﬃ", "ａ", "é", "e\u0301", "4\u0336", "&amp;", "&#64;", `\u0040`, `\n`, "а", "о", "\xff", "\xe2\x82", " ", "%", "&", `\`}),
	)
	return strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
}

// TestWayBack folds what each single character of folded text came from, and
// holds that the pieces lie in order and inside the original.
func TestWayBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := disguised(t)
		f := fold.Fold(s)
		if f.Identity() != (f.Text == s) {
			t.Fatalf("Identity() = %v, but %q became %q", f.Identity(), s, f.Text)
		}
		lastStart, lastEnd := 0, 0
		for i := 0; i < len(f.Text); {
			_, n := utf8.DecodeRuneInString(f.Text[i:])
			start, end := f.Origin(i, i+n)
			if start < lastStart || end < lastEnd || start > end || end > len(s) {
				t.Fatalf("%q at %d came from %d:%d after %d:%d", f.Text, i, start, end, lastStart, lastEnd)
			}
			if start == end {
				t.Fatalf("%q at %d came from nothing", f.Text, i)
			}
			lastStart, lastEnd = start, end
			i += n
		}
		if a, b := f.Origin(0, len(f.Text)); len(f.Text) > 0 && (a < 0 || b > len(s) || a >= b) {
			t.Fatalf("the whole came from %d:%d", a, b)
		}
	})
}

// TestPlainCostsNothing holds that text without disguise is not copied.
func TestPlainCostsNothing(t *testing.T) {
	s := strings.Repeat("The quick brown fox, 123 times! ", 100)
	if n := testing.AllocsPerRun(100, func() {
		if f := fold.Fold(s); !f.Identity() || f.Text != s {
			t.Error("plain text was folded")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	const secret = "email=noor.haddad@cedar.example"
	std, url, raw := base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret+"??>")), base64.RawStdEncoding.EncodeToString([]byte(secret))
	tests := []struct {
		name, in string
		want     []fold.Blob
	}{
		{"padded", "x " + std + " y", []fold.Blob{{Start: 2, End: 2 + len(std), Text: secret}}},
		{"without padding", raw, []fold.Blob{{Start: 0, End: len(raw), Text: secret}}},
		{"URL alphabet", "k:" + url, []fold.Blob{{Start: 2, End: 2 + len(url), Text: secret + "??>"}}},
		{"hexadecimal", hex.EncodeToString([]byte(secret)), []fold.Blob{{Start: 0, End: 2 * len(secret), Text: secret}}},
		{"digest", "da39a3ee5e6b4b0d3255bfef95601890afd80709", nil},
		{"long word", "internationalization-and-localization", nil},
		{"random", "8f3kQz0PpLw2mN5vXc7bTgYhUjIkOlAq", nil},
		{"short", "aGVsbG8=", nil},
		{"impossible length", strings.Repeat("A", 41), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, fold.Blobs(tt.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestHugeInputs folds what could make a careless implementation slow or large.
// A quadratic one would take hours, so that the bound is far from both.
func TestHugeInputs(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]string{
		"joiners":   strings.Repeat("\u200d", 500_000),
		"each":      strings.Repeat("a\u200d", 300_000),
		"percent":   strings.Repeat("%25", 400_000),
		"amp":       strings.Repeat("&", 1_000_000),
		"backslash": strings.Repeat(`\`, 1_000_000),
		"marks":     "a" + strings.Repeat("\u0301", 500_000),
		"Cyrillic":  strings.Repeat("аб", 300_000),
		"Base64":    strings.Repeat("QUJDRA", 200_000),
	} {
		began := time.Now()
		f := fold.Fold(s)
		_, end := f.Origin(0, len(f.Text))
		fold.Blobs(f.Text)
		if end > len(s) {
			t.Errorf("%s: end %d behind %d", name, end, len(s))
		}
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("%s took %v", name, d)
		}
	}
}

func FuzzFold(f *testing.F) {
	for _, seed := range []string{"", "a%40b", "&amp;&#64;", `\u0040\ud835\udc00`, "ﬃ\u200bе\u0301", "\xff%ff%e2%82", "4\u0336"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		folded := fold.Fold(s)
		last := 0
		for i := 0; i < len(folded.Text); i++ {
			start, end := folded.Origin(i, i+1)
			if start < 0 || start >= end || end > len(s) || start < last {
				t.Fatalf("byte %d of %q came from %d:%d of %q", i, folded.Text, start, end, s)
			}
			last = start
		}
		for _, b := range fold.Blobs(s) {
			if b.Start < 0 || b.Start >= b.End || b.End > len(s) || b.Text == "" {
				t.Fatalf("malformed blob %d:%d", b.Start, b.End)
			}
		}
	})
}

func BenchmarkFold(b *testing.B) {
	for name, s := range map[string]string{
		"plain":  strings.Repeat("The quick brown fox jumps over it. ", 60),
		"German": strings.Repeat("Für größere Brötchen über Straße. ", 60),
		"dense":  strings.Repeat("a\u200b%40ｂ", 200),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				fold.Fold(s)
			}
		})
	}
}
