package mask_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/pii"
	"weir/pii/mask"
)

var testKey = [32]byte{1, 2, 3}

func issue(t testing.TB, b *mask.Book, value string, label pii.Label, style mask.Style) mask.Entry {
	t.Helper()
	e, err := b.Issue(value, label, style, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestIssueIsStableAcrossOrderAndRestart(t *testing.T) {
	t.Parallel()
	values := []string{"Jane Doe", "Ana Prado", "Jens Müller", "Hanne Müller"}
	first := mask.NewBook(testKey, nil)
	want := map[string]string{}
	for _, v := range values {
		want[v] = issue(t, first, v, pii.PersonName, mask.StylePlaceholder).Token
	}
	reversed := mask.NewBook(testKey, nil)
	for i := len(values) - 1; i >= 0; i-- {
		if got := issue(t, reversed, values[i], pii.PersonName, mask.StylePlaceholder).Token; got != want[values[i]] {
			t.Errorf("token depends on order: %s, want %s", got, want[values[i]])
		}
	}
	again := mask.NewBook(testKey, first.Entries())
	if n := len(again.Pending()); n != 0 {
		t.Errorf("%d loaded entries are pending", n)
	}
	for _, v := range values {
		if got := issue(t, again, v, pii.PersonName, mask.StylePlaceholder).Token; got != want[v] {
			t.Errorf("token changed by restart: %s, want %s", got, want[v])
		}
	}
	other := mask.NewBook([32]byte{9}, nil)
	if issue(t, other, "Jane Doe", pii.PersonName, mask.StylePlaceholder).Token == want["Jane Doe"] {
		t.Error("another task's key gives the same token")
	}
}

func TestFormsOfOneValueBelongTogether(t *testing.T) {
	t.Parallel()
	b := mask.NewBook(testKey, nil)
	one := issue(t, b, "+1 415 555 0137", pii.PhoneNumber, mask.StylePlaceholder)
	two := issue(t, b, "+14155550137", pii.PhoneNumber, mask.StylePlaceholder)
	if !strings.HasPrefix(two.Token, one.Token) || len(two.Token) != len(one.Token)+2 {
		t.Errorf("forms got %s and %s", one.Token, two.Token)
	}
	// A store may give rows back in any order; the bare token stays the base.
	back := mask.NewBook(testKey, []mask.Entry{two, one})
	three := issue(t, back, "+1 (415) 555-0137", pii.PhoneNumber, mask.StylePlaceholder)
	if !strings.HasPrefix(three.Token, one.Token) || len(three.Token) != len(one.Token)+2 {
		t.Errorf("third form got %s beside %s", three.Token, one.Token)
	}
	// In a secret every byte counts.
	s1 := issue(t, b, "hunter2-Hunter2", pii.Password, mask.StylePlaceholder)
	s2 := issue(t, b, "hunter2-hunter2", pii.Password, mask.StylePlaceholder)
	if strings.HasPrefix(s2.Token, s1.Token) {
		t.Error("two secrets that differ in case were taken for one")
	}
}

func TestIssueAvoidsTaken(t *testing.T) {
	t.Parallel()
	plain := issue(t, mask.NewBook(testKey, nil), "Jane Doe", pii.PersonName, mask.StylePlaceholder).Token
	b := mask.NewBook(testKey, nil)
	e, err := b.Issue("Jane Doe", pii.PersonName, mask.StylePlaceholder, func(s string) bool { return s == plain })
	if err != nil {
		t.Fatal(err)
	}
	if e.Token == plain || !strings.HasPrefix(e.Token, plain) {
		t.Errorf("got %s, want more letters than %s", e.Token, plain)
	}
	if _, err := b.Issue("Ana", pii.PersonName, mask.StylePlaceholder, func(string) bool { return true }); err == nil {
		t.Error("no error though every token is taken")
	}
}

func TestPendingAndPersisted(t *testing.T) {
	t.Parallel()
	b := mask.NewBook(testKey, nil)
	issue(t, b, "Jane Doe", pii.PersonName, mask.StylePlaceholder)
	issue(t, b, "Ana Prado", pii.PersonName, mask.StylePlaceholder)
	p := b.Pending()
	issue(t, b, "Jens Holm", pii.PersonName, mask.StylePlaceholder)
	b.Persisted(len(p))
	rest := b.Pending()
	if len(p) != 2 || len(rest) != 1 || rest[0].Value != "Jens Holm" || b.Len() != 3 {
		t.Errorf("pending %d then %d of %d", len(p), len(rest), b.Len())
	}
}

func TestEntryPrintsNoContent(t *testing.T) {
	t.Parallel()
	b := mask.NewBook(testKey, nil)
	e := issue(t, b, "Jane Doe", pii.PersonName, mask.StylePlaceholder)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, v := range []any{e, &e, []mask.Entry{e}, b} {
			if s := fmt.Sprintf(verb, v); strings.Contains(s, "Jane") || strings.Contains(s, e.Token) || strings.Contains(s, "4a616e65") {
				t.Errorf("%s of %T shows content", verb, v)
			}
		}
	}
}

func TestBookSkipsEmptyEntries(t *testing.T) {
	t.Parallel()
	b := mask.NewBook(testKey, []mask.Entry{{Value: "Jane Doe"}, {Token: "PERSON_Q7K2M"}, {}})
	if got, _ := b.Restorer().Restore("a PERSON_Q7K2M"); got != "a PERSON_Q7K2M" || b.Len() != 0 {
		t.Errorf("%d entries, restored to %q", b.Len(), got)
	}
	if _, err := b.Issue("", pii.PersonName, mask.StylePlaceholder, nil); err == nil {
		t.Error("an empty value has a token")
	}
}
