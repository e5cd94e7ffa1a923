package rules_test

import (
	"math/rand/v2"
	"os"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"weir/pii"
)

// TestVendorTokens makes a value of each vendor's pattern and holds that it is
// found as a whole, in prose and behind a name.
func TestVendorTokens(t *testing.T) {
	t.Parallel()
	set := shipped(t)
	var sources []struct {
		ID     string   `yaml:"id"`
		Start  []string `yaml:"start"`
		Inside string   `yaml:"inside"`
		Near   []string `yaml:"near"`
		Value  string   `yaml:"value"`
	}
	raw, err := os.ReadFile("data/secrets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &sources); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, src := range sources {
		re, err := syntax.Parse(src.Value, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		var value string
		for range 20 { // nearly all of them hold a digit, and one is asked for
			var b strings.Builder
			sample(&b, re, rng)
			if value = b.String(); strings.ContainsAny(value, "0123456789") {
				break
			}
		}
		text := "it is " + value + " you see"
		if len(src.Near) > 0 {
			text = strings.ToUpper(strings.ReplaceAll(src.Near[0], " ", "_")) + "_SECRET='" + value + "'"
		}
		at := strings.Index(text, value)
		covered := 0
		for _, sp := range classify(t, set, pii.Text{Value: text}) {
			if sp.Label == pii.APIKey || sp.Label == pii.AuthToken || sp.Label == pii.ConnectionString || sp.Label == pii.PrivateKey {
				covered = max(covered, min(sp.End, at+len(value))-max(sp.Start, at))
			}
		}
		if covered < len(value) {
			t.Errorf("%s: %d of %d bytes of %q found", src.ID, covered, len(value), text)
		}
	}
}

// sample writes a text that re matches.
func sample(b *strings.Builder, re *syntax.Regexp, rng *rand.Rand) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(member(re.Rune, rng))
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			sample(b, sub, rng)
		}
	case syntax.OpAlternate:
		sample(b, re.Sub[rng.IntN(len(re.Sub))], rng)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		n := map[syntax.Op]int{syntax.OpPlus: 6, syntax.OpRepeat: re.Min}[re.Op]
		for range n {
			sample(b, re.Sub[0], rng)
		}
	}
}

// member draws an ASCII letter or digit of a class, if it has any.
func member(ranges []rune, rng *rand.Rand) rune {
	var all, plain []rune
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= min(ranges[i+1], 0x7e); r++ {
			all = append(all, r)
			if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				plain = append(plain, r)
			}
		}
	}
	if len(plain) > 0 {
		return plain[rng.IntN(len(plain))]
	}
	return all[0]
}
