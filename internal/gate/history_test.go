package gate_test

import (
	"strings"
	"testing"

	"weir/internal/gate"
	"weir/internal/wire"
	"weir/pii"
	"weir/policy"
)

const image = `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"` + email + `"}}`

// What a turn was kept here for lets later turns go, masked; everything that
// belongs to the turn itself stays.
func TestWhichTurnsAreOver(t *testing.T) {
	t.Parallel()
	secret, answer := message("user", "It is "+ssn), message("assistant", "Noted.")
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":"{}"}}]}`
	result := `{"role":"tool","tool_call_id":"c1","content":"done"}`
	next := message("user", "Now tell me a joke")
	for name, tc := range map[string]struct {
		messages []string
		want     policy.Action
	}{
		"the same again":               {[]string{secret}, policy.KeepLocal},
		"its tool loop":                {[]string{secret, call, result}, policy.KeepLocal},
		"a second step of the loop":    {[]string{secret, call, result, call, result}, policy.KeepLocal},
		"an answer to be continued":    {[]string{secret, answer}, policy.KeepLocal},
		"more words before the answer": {[]string{secret, next}, policy.KeepLocal},
		"the next turn":                {[]string{secret, answer, next}, policy.Mask},
		"the next turn's loop":         {[]string{secret, answer, next, call, result}, policy.Mask},
		"after a loop":                 {[]string{secret, call, result, answer, next}, policy.Mask},
		"the value again":              {[]string{secret, answer, message("user", "I said "+ssn)}, policy.KeepLocal},
		"the same turn again, later":   {[]string{secret, answer, secret}, policy.KeepLocal},
		"another history":              {[]string{message("user", "Yes, "+ssn), answer, next}, policy.KeepLocal},
		"moved to the system text":     {[]string{message("system", "It is "+ssn), secret, answer, next}, policy.KeepLocal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setUp(t, known(), nil, gate.Options{})
			b.kept(chat(secret))
			if got := b.decided(chat(tc.messages...), nil).Action(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A turn with content that cannot be read stays here; later turns show a text in
// its place, whatever else was found in it.
func TestPartsAreWithheld(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{
		"image":   image,
		"file":    `{"type":"file","file":{"filename":"letter of ` + person + `.pdf","file_data":"data:application/pdf;base64,AAAA"}}`,
		"unknown": `{"type":"hologram","text":"` + person + `","more":[{"at":"` + email + `"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setUp(t, known(), nil, gate.Options{})
			turn := `{"role":"user","content":[{"type":"text","text":"See"},` + part + `]}`
			b.kept(chat(turn))
			got := b.cleared(chat(turn, message("assistant", "I see."), message("user", "Write to "+email)))
			for _, bad := range []string{email, person, "AAAA", part} {
				if strings.Contains(got, bad) {
					t.Errorf("%q is in %s", bad, got)
				}
			}
			if !strings.Contains(got, name+" withheld") {
				t.Errorf("nothing in its place: %s", got)
			}
		})
	}
}

// An answer that was written here is withheld however the client sends it back.
func TestAnswersAreWithheld(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]string{
		"as it was":        `{"role":"assistant","content":"Your number ends in 08."}`,
		"with a refusal":   `{"role":"assistant","content":"Your number ends in 08.","refusal":null}`,
		"with annotations": `{"role":"assistant","content":"Your number ends in 08.","annotations":[{"type":"x","title":"y"}],"id":"msg_1"}`,
		"with reasoning":   `{"role":"assistant","reasoning_content":"Ends in 08.","reasoning_details":[{"text":"Ends in 08."}],"content":"Your number ends in 08."}`,
		"in parts":         `{"role":"assistant","content":[{"type":"text","text":"Your number "},{"type":"text","text":"ends in 08."}]}`,
		"members turned":   `{"content":"Your number ends in 08.","name":"bot","role":"assistant"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setUp(t, known(), nil, gate.Options{})
			turn := message("user", "It is "+ssn)
			b.kept(chat(turn))
			b.remember(`{"choices":[{"index":0,"message":{"role":"assistant","content":"Your number ends in 08."}}]}`)
			got := b.cleared(chat(turn, back, message("user", "Thanks")))
			if strings.Contains(got, "ends in 08") || strings.Contains(got, "Ends in 08") || !strings.Contains(got, "withheld") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Calls of tools that were made here are withheld too, in both forms.
func TestCallsAreWithheld(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ answer, back string }{
		"tool call": {
			`"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"last\":\"08\",\"n\":123456}"}}]`,
			`"tool_calls":[{"type":"function","id":"c1","function":{"arguments":"{\"last\":\"08\",\"n\":123456}","name":"f"}}]`,
		},
		"function call": {
			`"function_call":{"name":"f","arguments":"{\"last\":\"08\",\"n\":123456}"}`,
			`"function_call":{"name":"f","arguments":"{\"last\":\"08\",\"n\":123456}"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setUp(t, known(), nil, gate.Options{})
			turn := message("user", "It is "+ssn)
			b.kept(chat(turn))
			b.remember(`{"choices":[{"index":0,"message":{"role":"assistant","content":null,` + tc.answer + `}}]}`)
			got := b.cleared(chat(turn, `{"role":"assistant","content":null,`+tc.back+`}`, message("assistant", "ok"), message("user", "Thanks")))
			if strings.Contains(got, `\"08\"`) || strings.Contains(got, "123456") {
				t.Errorf("got %s", got)
			}
			if _, err := wire.ReadChat([]byte(got), wire.Limits{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the user answered holds for the turn that it was about.
func TestAnswersHoldForTheirTurn(t *testing.T) {
	t.Parallel()
	turn, next := message("user", "What about "+illness+"?"), message("user", "And what else?")
	for _, tc := range []struct {
		answer policy.Action
		clear  bool
	}{{policy.Allow, true}, {policy.Mask, false}} {
		b := setUp(t, known(), nil, gate.Options{})
		d := b.decided(chat(turn), map[string]policy.Action{"HEALTH_DATA": tc.answer})
		if _, err := b.gate.Clear(t.Context(), d, b.receipt(d), sky); err != nil {
			t.Fatal(err)
		}
		got := b.cleared(chat(turn, message("assistant", "Rest."), next))
		if strings.Contains(got, illness) != tc.clear {
			t.Errorf("%s: %s", tc.answer, got)
		}
		if d := b.decided(chat(turn, message("assistant", "Rest."), message("user", "Again: "+illness)), nil); d.Action() != policy.AskUser {
			t.Errorf("%s: a new turn: %s", tc.answer, d.Action())
		}
	}
}

// A message is known by its text. What is new elsewhere in it (a name, a number, a
// member's name) was not decided with it, and what stood there then is decided
// again.
func TestNewValuesInKnownMessages(t *testing.T) {
	t.Parallel()
	answer, next := message("assistant", "Noted."), message("user", "Now a joke")
	for name, tc := range map[string]struct {
		first, later string // the first message, then and now
		want         policy.Action
	}{
		"nothing new":          {message("user", "It is "+ssn), message("user", "It is "+ssn), policy.Mask},
		"a name":               {message("user", "hi"), `{"role":"user","name":"` + ssn + `","content":"hi"}`, policy.KeepLocal},
		"a name beside":        {message("user", "It is "+ssn), `{"role":"user","name":"` + ssn + `","content":"It is ` + ssn + `"}`, policy.KeepLocal},
		"a number":             {message("user", "hi"), `{"role":"user","content":"hi","ref":7512349081}`, policy.KeepLocal},
		"the name of a member": {message("user", "hi"), `{"role":"user","content":"hi","` + ssn + `":true}`, policy.KeepLocal},
		"a mark of a cache":    {message("user", "hi"), `{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"` + ssn + `"}}]}`, policy.KeepLocal},
		"within arguments":     {message("user", "hi"), `{"role":"user","content":"hi"}`, policy.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := known()
			w["7512349081"] = pii.SocialSecurityNumber
			b := setUp(t, w, nil, gate.Options{})
			b.kept(chat(tc.first))
			if got := b.decided(chat(tc.later, answer, next), nil).Action(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
