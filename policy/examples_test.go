package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"weir/policy"
)

// TestExamples decides each folder of testdata/examples, whose policy files lie
// beside input.json and decision.json, and holds the files to what docs/policy.md
// quotes.
func TestExamples(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob("testdata/examples/*")
	if err != nil || len(folders) < 3 {
		t.Fatalf("examples are %q: %v", folders, err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			policyFiles := []string{}
			entries, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				text, err := os.ReadFile(filepath.Join(folder, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				files[e.Name()] = string(text)
				if e.Name() != "input.json" && e.Name() != "decision.json" {
					policyFiles = append(policyFiles, e.Name(), string(text))
				}
				lang := strings.TrimPrefix(filepath.Ext(e.Name()), ".")
				if !strings.Contains(string(doc), "```"+lang+"\n"+string(text)+"```\n") {
					t.Errorf("docs/policy.md does not quote %s", filepath.Join(folder, e.Name()))
				}
			}
			var in policy.Input
			if err := json.Unmarshal([]byte(files["input.json"]), &in, json.RejectUnknownMembers(true)); err != nil {
				t.Fatal(err)
			}
			d := decide(t, load(t, policy.Options{Dir: dir(policyFiles...)}), in)
			d.PolicyVersion = "" // it changes with every change of the shipped files
			got, err := json.Marshal(d, jsontext.WithIndent("  "))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(files["decision.json"], string(got)+"\n"); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}
