package tagger

import (
	"testing"

	"weir/pii"
)

func TestReadTuning(t *testing.T) {
	t.Parallel()
	const other = `"OTHER":{"alone":{"inside":0.9,"label":0.9},"small":{"inside":0.9,"label":0.9},"beside":{"inside":0.5,"label":0.5},"confidence":[0,1,0]}`
	for _, row := range []struct {
		name, text string
		ok         bool
	}{
		{"for all others only", "{" + other + "}", true},
		{"a label by itself", `{"AGE":{},` + other + "}", true},
		{"none for all others", `{"AGE":{}}`, false},
		{"a label that is none of ours", `{"AGES":{},` + other + "}", false},
		{"a label with nothing", `{"AGE":null,` + other + "}", false},
		{"a name that is no field", `{"AGE":{"around":{}},` + other + "}", false},
		{"a label twice", `{"AGE":{},"AGE":{},` + other + "}", false},
		{"no JSON", `{`, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, err := readTuning([]byte(row.text)); (err == nil) != row.ok {
				t.Errorf("error %v, want success: %v", err, row.ok)
			}
		})
	}
}

// TestTuningIsStrict holds that alone no less is asked for than beside somebody,
// and that confidence rises with the probabilities it is made from together.
func TestTuningIsStrict(t *testing.T) {
	t.Parallel()
	tn := load(t).tuning
	for l, v := range tn {
		for _, b := range [...]Bounds{v.Alone, v.Small, v.Beside} {
			if b.Inside <= 0 || b.Label <= 0 {
				t.Errorf("%s is reported whatever its probability", l)
			}
		}
		if v.Alone.Inside < v.Beside.Inside || v.Small.Inside < v.Alone.Inside {
			t.Errorf("%s: alone less is asked for than beside somebody, or of small letters less", l)
		}
		last := 0.0
		for _, p := range [...]float64{0, 0.01, 0.3, 0.5, 0.8, 0.99, 1} {
			c := tn.confidence(candidate{Span: pii.Span{Label: l}, prob: p, inside: p})
			if c < last || c <= 0 || c >= 1 {
				t.Errorf("%s: at probability %v the confidence is %v, before %v", l, p, c, last)
			}
			last = c
		}
	}
}

func TestReports(t *testing.T) {
	t.Parallel()
	tn := tuning{anyLabel: {
		Alone: Bounds{0.9, 0.5}, Small: Bounds{0.95, 0.5}, Beside: Bounds{0.5, 0.4},
	}}
	name := func(inside, prob float64, small bool) candidate {
		return candidate{pii.Span{Label: pii.PersonName}, prob, inside, small}
	}
	for _, row := range []struct {
		name     string
		c        candidate
		somebody bool
		want     bool
	}{
		{"private for sure, of doubtful kind", name(0.92, 0.5, false), false, true},
		{"of a kind too doubtful", name(0.99, 0.45, false), false, false},
		{"the same beside somebody", name(0.99, 0.45, false), true, true},
		{"not surely private", name(0.85, 0.8, false), false, false},
		{"the same beside somebody", name(0.85, 0.8, false), true, true},
		{"in small letters more is asked for", name(0.92, 0.9, true), false, false},
		{"in small letters, surely", name(0.96, 0.9, true), false, true},
		{"in small letters, beside somebody", name(0.6, 0.5, true), true, true},
		{"what its form decides", candidate{pii.Span{Label: pii.IBAN}, 1, 1, false}, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := tn.reports(row.c, row.somebody); got != row.want {
				t.Errorf("reported: %v, want %v", got, row.want)
			}
		})
	}
}

func TestSmall(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"anna": true, "Anna": false, "åsa": true, "山田": false, "김민수": false, "Γιώργος": false, "γιώργος": true,
		"أحمد": true, "@": false, "7th": false, "": false, "\xff": false,
	} {
		if got := small(text); got != want {
			t.Errorf("%q is small: %v, want %v", text, got, want)
		}
	}
}

func TestUnlikely(t *testing.T) {
	t.Parallel()
	tg := load(t)
	for _, row := range []struct {
		name, text, part string
		label            pii.Label
		want             bool
	}{
		{"a name", "ask Ines now", "Ines", pii.PersonName, false},
		{"an account name with its sign", "ask @ines now", "@ines", pii.PersonName, true},
		{"an account name behind its sign", "ask @ines now", "ines", pii.PersonName, true},
		{"an account name is a user name", "ask @ines now", "@ines", pii.Username, false},
		{"in text cut into words, the sign parts from it", "ask @ ineshalv now", "@", pii.PersonName, false},
		{"there the name may be a name", "ask @ ineshalv now", "ineshalv", pii.PersonName, false},
		{"but a plain word is none", "meet @ noon", "noon", pii.PersonName, true},
		{"nor is the sign before it", "meet @ noon", "@", pii.PersonName, true},
		{"nor before a number", "meet @ 5pm", "@", pii.PersonName, true},
		{"a sign alone", "me@", "@", pii.PersonName, true},
		{"the beginning of an identifier", "call Ines_id", "Ines", pii.PersonName, true},
		{"the end of an identifier", "call id_Ines", "Ines", pii.PersonName, true},
		{"a whole identifier", "call INES_ID", "INES_ID", pii.Organization, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			at := indexOf(t, row.text, row.part)
			if got := tg.unlikely(row.text, at, at+len(row.part), row.label); got != row.want {
				t.Errorf("unlikely: %v, want %v", got, row.want)
			}
		})
	}
}

func indexOf(t *testing.T, s, part string) int {
	t.Helper()
	for i := range len(s) - len(part) + 1 {
		if s[i:i+len(part)] == part {
			return i
		}
	}
	t.Fatalf("the row's part is not in its text")
	return 0
}
