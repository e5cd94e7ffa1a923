package metal_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/engine/device/metal"
	"weir/engine/device/metal/batch"
)

// A misspelt selector is found on a Mac only, and then by a crash. So they are
// held against a list that was written from another source.
func TestSelectors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/selectors.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		words, err := strconv.Atoi(f[2])
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Count(f[1], ":")
		if strings.Contains(f[1], "withRange:") {
			want++
		}
		if words != want || words > batch.Most {
			t.Errorf("%s takes %d words of arguments", f[1], words)
		}
		known[f[1]] = true
	}
	sent := metal.Selectors()
	for _, s := range sent {
		if !known[s] {
			t.Errorf("%s is not in the list", s)
		}
	}
	for s := range known {
		if !slices.Contains(sent, s) {
			t.Errorf("%s is in the list and never sent", s)
		}
	}
	fake, err := os.ReadFile("testdata/fake.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sent {
		if !strings.Contains(string(fake), strconv.Quote(s)) {
			t.Errorf("the stand-in does not know %s", s)
		}
	}
}
