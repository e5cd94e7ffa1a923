package rules_test

import (
	"strings"
	"testing"
	"time"

	"weir/pii"
)

// TestTextsMadeToBeSlow runs texts in which every word begins something. A part
// that looks at the rest of the text from each of them takes minutes here; the
// bound is a hundred times what linear parts need.
func TestTextsMadeToBeSlow(t *testing.T) {
	t.Parallel()
	set := shipped(t)
	for _, p := range []string{
		"1 ", "12 ", "(1", "+1", ":", "1:", "a:", "@", "a@", "a@b.", "/", "a/", "a://", "a://b:c@", "password=", "password: ", "key=", "token: ",
		"cookie: a=b;", "eyJhbGciOiJIUzI1NiJ9.", "-----BEGIN PRIVATE KEY-----", `"kty"{`, "ghp_", "Mr. ", "Anna Schmidt ", "A. ", "1 Main Street ",
		"rue A ", "Goetheweg 5 ", "I have diabetes ", "born 1979-02-14 ", "A GmbH ", "路1号", "我叫", "Password=x;", "AccountKey=", "sig=", "MII", "Jan 1 2000 ", "'(",
	} {
		text := strings.Repeat(p, 32<<10/len(p))
		began := time.Now()
		if _, err := set.Classify(t.Context(), pii.Text{Value: text}); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("%q repeated to 32 KiB took %v", p, d)
		}
	}
}
