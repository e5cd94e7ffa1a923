package wire_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"weir/internal/wire"
)

func parse(t *testing.T, raw string) *wire.Doc {
	t.Helper()
	d, err := wire.Parse([]byte(raw), wire.Limits{}, nil)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return d
}

// replaceAll edits every occurrence of old in every leaf.
func replaceAll(t *testing.T, d *wire.Doc, old, repl string) string {
	t.Helper()
	var edits []wire.Edit
	for i, l := range d.Leaves() {
		for at := 0; ; {
			j := strings.Index(l.Value[at:], old)
			if j < 0 {
				break
			}
			edits = append(edits, wire.Edit{Leaf: i, Start: at + j, End: at + j + len(old), New: repl})
			at += j + len(old)
		}
	}
	out, err := d.Splice(edits, nil)
	if err != nil {
		t.Fatalf("Splice: %v", err)
	}
	return string(out)
}

func TestSpliceKeepsEverythingElse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, raw, want string }{
		{"odd spacing and order survive", `{ "b" :1 , "a":"see JANE now" }`, `{ "b" :1 , "a":"see X now" }`},
		{"escapes around the value survive", `{"a":"\u00e9\/\ud83d\ude00 JANE\n\t"}`, `{"a":"\u00e9\/\ud83d\ude00 X\n\t"}`},
		{"the value itself is escaped", `{"a":"\u004aANE!"}`, `{"a":"X!"}`},
		{"a lone surrogate survives", `{"a":"\ud83d JANE \ude00"}`, `{"a":"\ud83d X \ude00"}`},
		{"JSON inside a string", `{"a":"{\"n\": \"JANE\", \"k\":1}"}`, `{"a":"{\"n\": \"X\", \"k\":1}"}`},
		{"JSON inside JSON inside a string", `{"a":"[\"{\\\"n\\\":\\\"a JANE\\\"}\"]"}`, `{"a":"[\"{\\\"n\\\":\\\"a X\\\"}\"]"}`},
		{"a member name", `{"JANE":{"JANE":2}}`, `{"X":{"X":2}}`},
		{"a bare string", `"JANE"`, `"X"`},
		{"what looks like JSON and is not", `{"a":"{JANE}"}`, `{"a":"{X}"}`},
		{"two in one string", `["JANE JANE"]`, `["X X"]`},
		{"numbers keep their form", `{"a":1.50e+3,"b":"JANE"}`, `{"a":1.50e+3,"b":"X"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := replaceAll(t, parse(t, tc.raw), "JANE", "X"); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestSpliceNumber(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"a":"{\"ssn\":123456789}","b":4111111111111111}`)
	if got, want := replaceAll(t, d, "123456789", "SSN_QQQQQ"), `{"a":"{\"ssn\":\"SSN_QQQQQ\"}","b":4111111111111111}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSpliceRefusesOverlap(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"a":"abcdef"}`)
	edits := []wire.Edit{{Leaf: 1, Start: 0, End: 3}, {Leaf: 1, Start: 2, End: 4}}
	if _, err := d.Splice(edits, nil); err == nil {
		t.Error("overlapping edits were applied")
	}
}

func TestWithout(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, raw, want string }{
		{"first", `{"x":1,"a":2}`, `{"a":2}`},
		{"last", `{"a":2,"x":1}`, `{"a":2}`},
		{"middle", `{"a":2, "x":{"y":[1,2]} ,"b":3}`, `{"a":2, "b":3}`},
		{"only", `{"x":1}`, `{}`},
		{"two last", `{"a":1,"x":2,"x2":3}`, `{"a":1}`},
		{"all of three", `{"x":1,"x2":2,"x3":3}`, `{}`},
		{"nested", `{"metadata":{"x":"1","k":"v"},"a":1}`, `{"metadata":{"k":"v"},"a":1}`},
		{"spaces", "{ \"a\" : 1 , \"x\" : 2 , \"x2\" : 3 }", "{ \"a\" : 1  }"},
		{"alternating", `{"x":1,"a":2,"x2":3}`, `{"a":2}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := parse(t, tc.raw)
			out, err := d.Splice(nil, d.Without(func(_, name string) bool { return strings.HasPrefix(name, "x") }))
			if err != nil {
				t.Fatal(err)
			}
			if string(out) != tc.want {
				t.Errorf("got  %s\nwant %s", out, tc.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, raw string
		want      error
	}{
		{"duplicate member", `{"a":1,"a":2}`, wire.ErrDuplicate},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, wire.ErrDuplicate},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", wire.ErrUTF8},
		{"two documents", `{} {}`, wire.ErrSyntax},
		{"empty", ``, wire.ErrSyntax},
		{"cut short", `{"a":`, wire.ErrSyntax},
		{"too deep", strings.Repeat("[", 200) + strings.Repeat("]", 200), wire.ErrTooDeep},
		{"comment", `{"a":1/*x*/}`, wire.ErrSyntax},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, err := wire.Parse([]byte(tc.raw), wire.Limits{}, nil); err != tc.want {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestPointerAndKey(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"a/b":[{"c":"{\"d\":[\"v\"]}"}],"":{"e":"w"}}`)
	got := map[string]string{}
	for i, l := range d.Leaves() {
		if l.Kind == wire.String {
			got[d.Pointer(i)] = l.Key
		}
	}
	want := map[string]string{"/a~1b/0/c#/d/0": "d", "//e": "e"}
	for p, k := range want {
		if got[p] != k {
			t.Errorf("key at %s = %q, want %q (all: %v)", p, got[p], k, got)
		}
	}
}

// Replacing a value and putting it back gives the same bytes, for any document.
func TestSpliceRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := genJSON(t, 3)
		d, err := wire.Parse([]byte(raw), wire.Limits{}, nil)
		if err != nil {
			t.Fatalf("Parse(%q): %v", raw, err)
		}
		out, err := d.Splice(nil, nil)
		if err != nil || string(out) != raw {
			t.Fatalf("no edits changed %q to %q (%v)", raw, out, err)
		}
		if len(d.Leaves()) == 0 {
			return
		}
		i := rapid.IntRange(0, len(d.Leaves())-1).Draw(t, "leaf")
		l := d.Leaves()[i]
		out, err = d.Splice([]wire.Edit{{Leaf: i, Start: 0, End: len(l.Value), New: "Q\"\\\n"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d2, err := wire.Parse(out, wire.Limits{}, nil)
		if err != nil {
			if l.Kind == wire.Name { // a name may now stand twice
				return
			}
			t.Fatalf("edited document %q: %v", out, err)
		}
		if got := d2.Leaves()[i].Value; got != "Q\"\\\n" {
			t.Fatalf("leaf %d of %q reads %q", i, out, got)
		}
	})
}

func genJSON(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 && kind > 2 {
		kind = 0
	}
	switch kind {
	case 0, 1:
		return genString(t)
	case 2:
		return rapid.SampledFrom([]string{"1", "-0.5", "12345678901234567890", "true", "null"}).Draw(t, "scalar")
	case 3:
		inner, _ := jsontext.AppendQuote(nil, genJSON(t, depth-1))
		return string(inner)
	case 4:
		parts := make([]string, rapid.IntRange(0, 3).Draw(t, "n"))
		for i := range parts {
			parts[i] = genJSON(t, depth-1)
		}
		return "[" + strings.Join(parts, rapid.SampledFrom([]string{",", " , "}).Draw(t, "sep")) + "]"
	default:
		parts := make([]string, rapid.IntRange(0, 3).Draw(t, "n"))
		for i := range parts {
			parts[i] = `"k` + string(rune('a'+i)) + `":` + genJSON(t, depth-1)
		}
		return "{ " + strings.Join(parts, ",") + "}"
	}
}

func genString(t *rapid.T) string {
	pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
		"a", "é", "😀", `\n`, `\"`, `\\`, `\/`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `{`, `}`, " ", "x@y.example",
	}), 0, 8).Draw(t, "pieces")
	return `"` + strings.Join(pieces, "") + `"`
}
