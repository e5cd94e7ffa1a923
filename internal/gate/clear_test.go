package gate_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/audit"
	"weir/internal/gate"
	"weir/internal/wire"
	"weir/pii"
	"weir/policy"
)

// Nothing but a decision that was recorded makes a request that can be sent, and
// it can be sent only where it was decided for.
func TestMisuse(t *testing.T) {
	t.Parallel()
	b := setUp(t, known(), nil, gate.Options{})
	body := chat(message("user", "Write to "+email))
	d := b.decided(body, nil)
	if _, err := b.gate.Clear(t.Context(), d, audit.Receipt{}, sky); err == nil {
		t.Error("cleared without a record")
	}
	if _, err := b.gate.Keep(t.Context(), d, audit.Receipt{}, sky); err == nil {
		t.Error("kept without a record")
	}
	var none gate.Cleared
	if _, err := none.Bytes(""); err == nil {
		t.Error("bytes of a request that no gate made")
	}
	var local gate.Kept
	if _, err := local.Bytes(""); err == nil {
		t.Error("bytes of a request that no gate made")
	}
	out, err := b.gate.Clear(t.Context(), d, b.receipt(d), sky)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Bytes("elsewhere"); err == nil {
		t.Error("bytes for another upstream")
	}
	if s := fmt.Sprintf("%v %+v %#v %s", out, out, out, out); strings.Contains(s, "Write") {
		t.Errorf("printing shows content: %s", s)
	}
	for text, action := range map[string]policy.Action{ssn: policy.KeepLocal, password: policy.Refuse, illness: policy.AskUser} {
		d := b.decided(chat(message("user", "It is "+text)), nil)
		if d.Action() != action {
			t.Fatalf("%s: %s", action, d.Action())
		}
		if _, err := b.gate.Clear(t.Context(), d, b.receipt(d), sky); err == nil {
			t.Errorf("%s: cleared", action)
		}
		if _, err := b.gate.Keep(t.Context(), d, b.receipt(d), sky); (err == nil) != (action != policy.Refuse) {
			t.Errorf("%s: keep: %v", action, err)
		}
	}
}

// What is not masked stays byte for byte as the client wrote it.
func TestOnlyFindingsChange(t *testing.T) {
	t.Parallel()
	b := setUp(t, known(), nil, gate.Options{NoNote: true})
	body := `{ "model" : "gpt-x","zz":[1.50, {"k":null}], "messages":[{"content":"h\u00e9 \/ ` + email + ` \u0041\/, ` + person + `\n\ud83d\ude00", "role":"user"}],"n" : 1 }`
	got := b.cleared(body)
	tokens := placeholder.FindAllString(got, -1)
	if len(tokens) != 2 {
		t.Fatalf("got %s", got)
	}
	if back := strings.NewReplacer(tokens[0], email, tokens[1], person).Replace(got); back != body {
		t.Errorf("got  %s\nwant %s", back, body)
	}
}

var placeholder = regexp.MustCompile(`\b[A-Z]+_[A-Z2-7]{5,}\b`)

// A placeholder must be a word of its own, else it cannot be told from what is
// beside it and stays in the answer.
func TestPlaceholdersStandFree(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"letters in front":        "xxx" + person + " is here",
		"capitals in front":       "MR" + person + " is here",
		"letters behind":          person + "sson is here",
		"digits behind":           person + "123",
		"underscores":             "_" + person + "_x",
		"two values touch":        person + email,
		"the same value twice":    person + person,
		"three in a row":          person + person + person + "x",
		"a letter of a script":    "é" + person + "é",
		"inside a word":           "pre" + person + "post",
		"looks like a token":      "EMAIL_" + person,
		"before a placeholder":    person + "_AAAAA",
		"zero width in between":   "a\u200b" + person + "\u200bb",
		"a token's look in front": "PERSON_AAAAA" + person + " is here",
		"and one apart":           "PERSON_AAAAA " + person + " is here",
		"and one behind":          person + "PERSON_AAAAA",
		"with a digit":            "PERSON_Q7K2M" + person,
		"of another label":        "EMAIL_AAAAA" + person + " EMAIL_AAAAA" + email,
		"twice":                   "PERSON_AAAAAPERSON_AAAAA" + person,
		"joined by an underscore": "PERSON_AAAAA_" + person,
		"a name like a stem":      "PERSON_AAAAAPersonx and " + person,
		"a value made by a token": "AAAAAperson_aaaaa" + person,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := known()
			w["Person"], w["AAAAA"] = pii.PersonName, pii.Username
			b := setUp(t, w, nil, gate.Options{})
			d := b.decided(chat(message("user", text)), nil)
			out, err := b.gate.Clear(t.Context(), d, b.receipt(d), sky)
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := out.Bytes("sky")
			c, err := wire.ReadChat(raw, wire.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			for i, l := range c.Leaves() {
				if p := c.Places[i]; p.Source == "user" && p.Field == "content" {
					if strings.Contains(l.Value, person) || strings.Contains(l.Value, email) {
						t.Errorf("not masked: %q", l.Value)
					}
					if back, _ := out.Restorer().Restore(l.Value); back != text {
						t.Errorf("%q came back as %q", l.Value, back)
					}
				}
			}
		})
	}
}

// Whatever is glued to what looks like a placeholder, a request that would be
// masked is masked, comes back whole, and is never stopped for a leak that is
// none.
func TestGluedTextNeverStopsARequest(t *testing.T) {
	t.Parallel()
	w := words{
		"LEE": pii.PersonName, "Lena": pii.PersonName, "ANN LEE": pii.PersonName, "Person": pii.PersonName, "王芳": pii.PersonName,
		"A2B3C4": pii.AccountID, "AAAAA": pii.Username, "Bo": pii.PersonName, "lee": pii.Username, email: pii.EmailAddress,
	}
	part := rapid.SampledFrom([]string{
		"PERSON_AAAAA", "EMAIL_AAAAA", "PERSON_Q7K2M", "LEE", "Lena", "ANN LEE", "Person", "王芳", "lee", "A2B3C4", "Bo", email,
		" ", ",", "_", "'s", "x", "PERSON", "AAAAA", "person_aaaaa", ".", "-", "Lee",
	})
	b := setUp(t, w, nil, gate.Options{})
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		text := strings.Join(rapid.SliceOfN(part, 1, 6).Draw(rt, "text"), "")
		d := b.gate.Decide(b.Context(), b.examinedIn(fmt.Sprint(n), chat(message("user", text))), gate.Step{Kind: "turn", Mode: "auto", Dialect: "chat", Upstream: "sky", Caller: "me"})
		out, err := b.gate.Clear(b.Context(), d, b.receipt(d), sky)
		if err != nil {
			rt.Fatalf("%q: %v", text, err)
		}
		raw, err := out.Bytes("sky")
		if err != nil {
			rt.Fatal(err)
		}
		c, err := wire.ReadChat(raw, wire.Limits{})
		if err != nil {
			rt.Fatal(err)
		}
		for i, l := range c.Leaves() {
			if p := c.Places[i]; p.Source == "user" && p.Field == "content" {
				if back, _ := out.Restorer().Restore(l.Value); back != text {
					rt.Fatalf("%q went as %q and came back as %q", text, l.Value, back)
				}
			}
		}
	})
}

// overlapping is a classifier whose finds depend on the text around.
type overlapping struct{ words }

func (o overlapping) Scan(ctx context.Context, t pii.Text) ([]pii.Span, error) {
	if strings.HasPrefix(t.Value, "short: Ann") {
		return []pii.Span{{Start: 7, End: 10, Label: pii.Username, Score: 1, Rank: pii.RankContext, Rule: "short"}}, nil
	}
	return o.words.Scan(ctx, t)
}

// A value that is found in one text is masked whole in others, also where only a
// part of it was found there.
func TestValueFoundInPart(t *testing.T) {
	t.Parallel()
	b := setUp(t, overlapping{known()}, nil, gate.Options{})
	got := b.cleared(chat(message("user", "long: "+person), message("user", "short: "+person+" it is")))
	if strings.Contains(got, "Lee") || strings.Contains(got, "Ann") {
		t.Errorf("got %s", got)
	}
}

// The last check looks at the finished bytes, whatever went wrong before it.
func TestLastCheck(t *testing.T) {
	t.Parallel()
	// A policy that masks a value in one place and lets it through in another.
	split := decider(func(in policy.Input) policy.Decision {
		d := policy.Decision{Action: policy.Mask, Rule: "r", Reason: "r"}
		for _, f := range in.Findings {
			a := policy.Mask
			if f.Source == "system" {
				a = policy.Allow
			}
			d.Findings = append(d.Findings, policy.FindingDecision{Action: a, Style: "placeholder", Rule: "r", Reason: "r"})
		}
		return d
	})
	b := setUp(t, known(), split, gate.Options{})
	for _, written := range []string{email, `ann.lee\u0040fjord.example`, `YW5uLmxlZUBmam9yZC5leGFtcGxl`, `ann.lee%40fjord.example`} {
		d := b.decided(chat(message("system", "x "+written), message("user", "Write to "+email)), nil)
		_, err := b.gate.Clear(t.Context(), d, b.receipt(d), sky)
		if err == nil || wire.AsError(err).Code != wire.CodeLeakPrevented || strings.Contains(err.Error(), email) {
			t.Errorf("%s: %v", written, err)
		}
	}
}

// Words that Weir itself writes, and the name of a model, are no leak: people
// are called Claude.
func TestOwnWordsAreNoLeak(t *testing.T) {
	t.Parallel()
	for value, text := range map[string]string{
		"private values":      "the band private values plays",
		"Claude":              "my friend Claude called",
		"user's device":       "it is user's device",
		"EMAIL_3ZWBA":         "my name is EMAIL_3ZWBA",
		"placeholder is fine": "placeholder is fine",
	} {
		b := setUp(t, words{value: pii.PersonName}, nil, gate.Options{})
		body := `{"model":"claude-x","messages":[` + message("user", text) + `]}`
		d := b.decided(body, nil)
		out, err := b.gate.Clear(t.Context(), d, b.receipt(d), gate.Target{Upstream: "sky", Model: "claude-x"})
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		raw, _ := out.Bytes("sky")
		if !strings.Contains(string(raw), `"model":"claude-x"`) || strings.Contains(string(raw), text) {
			t.Errorf("%s: %s", value, raw)
		}
	}
}

// The note goes into the text of the first system message, or into one of its
// own.
func TestNote(t *testing.T) {
	t.Parallel()
	b := setUp(t, known(), nil, gate.Options{})
	ask := message("user", "Write to "+email)
	for name, tc := range map[string]struct{ system, want string }{
		"none":           {"", `"messages":[{"role":"system","content":"Words like`},
		"text":           {`{"role":"system","content":"Be kind."}`, `"messages":[{"role":"system","content":"Be kind.\n\nWords like`},
		"developer":      {`{"role":"developer","content":"Be kind."}`, `"messages":[{"role":"developer","content":"Be kind.\n\nWords like`},
		"empty":          {`{"role":"system","content":""}`, `"messages":[{"role":"system","content":"\n\nWords like`},
		"parts":          {`{"role":"system","content":[{"type":"text","text":"Be kind."}]}`, `"messages":[{"role":"system","content":"Words like`},
		"JSON text":      {`{"role":"system","content":"{\"be\":\"kind\"}"}`, `"messages":[{"role":"system","content":"Words like`},
		"ends in a find": {`{"role":"system","content":"You are ` + person + `"}`, `PERSON_`},
		"is a find":      {`{"role":"system","content":"` + person + `"}`, `PERSON_`},
		"null":           {`{"role":"system","content":null}`, `Words like`},
	} {
		messages := ask
		if tc.system != "" {
			messages = tc.system + "," + ask
		}
		got := b.cleared(chat(messages))
		if !strings.Contains(got, tc.want) || strings.Count(got, "Words like") != 1 {
			t.Errorf("%s: %s", name, got)
		}
		if _, err := wire.ReadChat([]byte(got), wire.Limits{}); err != nil {
			t.Errorf("%s: not a chat: %v", name, err)
		}
	}
	if got := b.cleared(chat(message("user", "nothing"))); strings.Contains(got, "Words like") {
		t.Errorf("a note without need: %s", got)
	}
}

// Masking works on a body that is adapted to the upstream too.
func TestAdaptedAndMasked(t *testing.T) {
	t.Parallel()
	b := setUp(t, known(), nil, gate.Options{})
	body := `{"model":"gpt-x","max_completion_tokens":5,"user":"` + email + `","metadata":{"weir_task":"` + email + `","team":"` + person + `"},"messages":[` +
		`{"role":"developer","content":[{"type":"text","text":"for ` + person + `"},{"type":"text","text":"at ` + email + `"}]},` + message("user", "go") + `]}`
	d := b.decided(body, nil)
	out, err := b.gate.Clear(t.Context(), d, b.receipt(d), gate.Target{Upstream: "sky", Model: "other", Profile: wire.Profile{
		DeveloperToSystem: true, MaxTokensField: "max_tokens", FlattenText: true, Drop: []string{"user"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := out.Bytes("sky")
	got := string(raw)
	for _, bad := range []string{email, person, "weir_", "developer", "max_completion_tokens", `"user":"`} {
		if strings.Contains(got, bad) {
			t.Errorf("%q is in %s", bad, got)
		}
	}
	for _, want := range []string{`"model":"other"`, `"max_tokens":5`, `"team":"PERSON_`, `for PERSON_`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if _, err := wire.ReadChat(raw, wire.Limits{}); err != nil {
		t.Error(err)
	}
}

// A number within JSON in a string can be masked, as a whole: half a number is
// none.
func TestNumbersAreMaskedWhole(t *testing.T) {
	t.Parallel()
	b := setUp(t, words{"4930": pii.AccountID, "7755": pii.PhoneNumber}, nil, gate.Options{NoNote: true})
	got := b.cleared(chat(`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"n\":4930117755}"}}]}`, message("user", "go")))
	if !regexp.MustCompile(`"arguments":"\{\\"n\\":\\"[A-Z]+_[A-Z2-7]+\\"\}"`).MatchString(got) {
		t.Errorf("got %s", got)
	}
	d := b.decided(`{"model":"gpt-x","seed":4930117755,`+chat(message("user", "go"))[len(`{"model":"gpt-x",`):], nil)
	if d.Action() != policy.KeepLocal {
		t.Errorf("a number of the protocol: %s", d.Action())
	}
}

// A user may quote a placeholder that the task issued: it is a text like any
// other, and comes back as it is.
func TestQuotedPlaceholder(t *testing.T) {
	t.Parallel()
	b := setUp(t, known(), nil, gate.Options{NoNote: true})
	token := placeholder.FindString(b.cleared(chat(message("user", "Write to "+email))))
	for _, text := range []string{"What is " + token + "?", "What is " + strings.ToLower(token) + ", " + person + "?"} {
		d := b.decided(chat(message("user", text)), nil)
		out, err := b.gate.Clear(t.Context(), d, b.receipt(d), sky)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		raw, _ := out.Bytes("sky")
		if back, _ := out.Restorer().Restore(string(raw)); strings.Contains(string(raw), token) || !strings.Contains(back, text) {
			t.Errorf("%s came back as %s", text, back)
		}
	}
}
