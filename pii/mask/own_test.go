package mask_test

import (
	"strings"
	"testing"

	"weir/pii"
	"weir/pii/mask"
)

// ownBook holds values of labels that a user made up, whose stems begin alike.
func ownBook(t *testing.T) (*mask.Book, map[string]mask.Entry) {
	t.Helper()
	b := mask.NewBook(testKey, nil)
	entries := map[string]mask.Entry{}
	for _, label := range []string{"ST", "STA", "STAF", "STAFF", "STAFF_BADGE", "STAFF_BADGE_NUMBER_OF_EMPLOYEES", "P_ERSON"} {
		e, err := b.Issue("value of "+label, pii.Label(label), mask.StylePlaceholder, nil)
		if err != nil {
			t.Fatal(err)
		}
		entries[label] = e
	}
	return b, entries
}

func TestOwnLabels(t *testing.T) {
	t.Parallel()
	b, entries := ownBook(t)
	for label, stem := range map[string]string{
		"STAFF": "STAFF_", "STAFF_BADGE": "STAFFBADGE_", "STAFF_BADGE_NUMBER_OF_EMPLOYEES": "STAFFBADGENUMBEROFEMPLOYEES_",
		"P_ERSON": "VALUE_", // the stem of a built-in label is not given twice
	} {
		e := entries[label]
		if !strings.HasPrefix(e.Token, stem) || !e.Placeholder() {
			t.Errorf("%s: %s", label, e.Token)
		}
	}
	for label, e := range entries {
		stem, code, _ := strings.Cut(e.Token, "_")
		for name, row := range map[string][2]string{
			"as minted":        {e.Token, e.Value},
			"other case":       {strings.ToLower(e.Token), e.Value},
			"no separator":     {stem + code, e.Value},
			"space":            {stem + " " + code, e.Value},
			"genitive":         {e.Token + "'s", e.Value + "'s"},
			"in an identifier": {"x_" + e.Token + "_y", "x_" + e.Value + "_y"},
		} {
			written, want := row[0], row[1]
			if got, _ := b.Restorer().Restore(written); got != want {
				t.Errorf("%s, %s: %q came back as %q", label, name, written, got)
			}
			// In pieces of one byte it is the same.
			var got strings.Builder
			s := b.Restorer().Stream(mask.Plain)
			for i := range len(written) {
				got.WriteString(s.Write(written[i : i+1]))
			}
			got.WriteString(s.Flush())
			if got.String() != want {
				t.Errorf("%s, %s, streamed: %q came back as %q", label, name, written, got.String())
			}
		}
	}
	if _, stats := b.Restorer().Restore("STAFFBADGE_AAAA2"); stats.Unknown != 1 {
		t.Errorf("an unknown placeholder of a user's label: %+v", stats)
	}
}

// A value that is a part of its own label's stem stands in each token, and is no
// leak there.
func TestStemIsNoLeak(t *testing.T) {
	t.Parallel()
	b := mask.NewBook(testKey, nil)
	e, err := b.Issue("staffbadge", "STAFF_BADGE", mask.StylePlaceholder, nil)
	if err != nil {
		t.Fatal(err)
	}
	if label, leaks := mask.Leaks([]byte("see "+e.Token), []mask.Entry{e}); leaks {
		t.Errorf("%s leaks from its own token", label)
	}
	if _, leaks := mask.Leaks([]byte("see staffbadge"), []mask.Entry{e}); !leaks {
		t.Error("a value that leaves is not seen")
	}
}
