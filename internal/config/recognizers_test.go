package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/config"
)

const badge = `
recognizers:
  - id: badge
    label: STAFF_BADGE
    text: badge number
    pattern: 'SB-\d{6}'
    finds: [SB-004821]
`

func TestRecognizers(t *testing.T) {
	t.Parallel()
	c := load(t, badge+"policy: {actions: {STAFF_BADGE: mask}, styles: {STAFF_BADGE: placeholder}}\n")
	if len(c.Recognizers) != 1 || c.Recognizers[0].Score != 0.9 || c.Recognizers[0].Pattern != `SB-\d{6}` {
		t.Errorf("%+v", c.Recognizers)
	}
}

func TestRecognizerFile(t *testing.T) {
	t.Parallel()
	src := sources(t, badge+"recognizer_files: [more.yaml, none.yaml, bad.yaml, word.yaml]\n")
	write(t, filepath.Join(src.WorkDir, "more.yaml"), "- id: projects\n  label: PROJECT\n  text: project names\n  words: [bluefin]\n  score: 0.5\n  finds: [the Bluefin plan]\n")
	write(t, filepath.Join(src.WorkDir, "bad.yaml"), "# comment\n- id: a\n  label: PROJECT\n  text: x\n  pattern: '("+canary+"'\n  finds: [a]\n")
	write(t, filepath.Join(src.WorkDir, "word.yaml"), "recognizers: []\n")
	_, err := config.Load(src)
	text := err.Error()
	for _, want := range []string{
		"weir.yaml:8:31: recognizer_files[1]: there is no such file",
		"bad.yaml:5:3: recognizers[2].pattern: is no regular expression of RE2: missing closing )",
		"word.yaml:1:12: recognizers: must be a list",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if len(config.Problems(err)) != 3 || strings.Contains(text, canary) {
		t.Error(text)
	}
	for _, p := range config.Problems(err) {
		if strings.Contains(p.Excerpt, canary) {
			t.Errorf("shown: %s", p.Excerpt)
		}
	}
	src = sources(t, badge+"recognizer_files: [more.yaml]\npolicy: {actions: {PROJECT: refuse}}\n")
	write(t, filepath.Join(src.WorkDir, "more.yaml"), "- id: projects\n  label: PROJECT\n  text: project names\n  words: [bluefin]\n  finds: [the Bluefin plan]\n")
	c, err := config.Load(src)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Recognizers) != 2 || c.Recognizers[1].ID != "projects" {
		t.Errorf("%+v", c.Recognizers)
	}
}

// A fault of a recognizer is at the key it is about.
func TestRecognizerProblems(t *testing.T) {
	t.Parallel()
	for name, row := range map[string][2]string{
		"example":          {strings.Replace(badge, "[SB-004821]", "["+canary+"]", 1), "7:13: recognizers[0].finds[0]: nothing is found"},
		"label":            {strings.Replace(badge, "STAFF_BADGE", "staff", 1), "recognizers[0].label: must be"},
		"label of nothing": {badge + "policy: {actions: {STAFF_BADG: mask}}", "policy.actions.STAFF_BADG: no label"},
		"unknown key":      {badge + "    patern: " + canary, "recognizers[0].patern: unknown key"},
		"nothing to find":  {strings.Replace(badge, "pattern", "# pattern", 1), "recognizers[0]: has neither"},
		"number":           {badge + "    score: " + canary, "recognizers[0].score: must be a number"},
	} {
		_, err := config.Load(sources(t, row[0]))
		if got := config.Problems(err); len(got) != 1 || !strings.Contains(got[0].Error(), row[1]) || strings.Contains(err.Error()+got[0].Excerpt, canary) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
