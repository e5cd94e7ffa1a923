package rules_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"weir/pii/rules"
)

type vector struct {
	Type  string `json:"type"`
	Value string `json:"value"`
	Valid bool   `json:"valid"`
}

// checkOf names the check for a vector's type, where the two differ.
func checkOf(kind string) string {
	switch {
	case strings.HasPrefix(kind, "luhn_card_"):
		return "card"
	case strings.HasPrefix(kind, "iban_"):
		return "iban"
	}
	return kind
}

func TestChecksAgreeWithVectors(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/ids.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	known := map[string]bool{}
	for _, name := range rules.Checks() {
		known[name] = true
	}
	seen := 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		name := checkOf(v.Type)
		if !known[name] {
			t.Errorf("no check for type %s", v.Type)
			continue
		}
		if got := rules.Valid(name, v.Value); got != v.Valid {
			t.Errorf("%s: Valid(%q) = %v, the oracle says %v", v.Type, v.Value, got, v.Valid)
		}
		seen++
	}
	if seen < 1700 {
		t.Errorf("only %d vectors read", seen)
	}
}
