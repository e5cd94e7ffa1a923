package router_test

import (
	"strings"
	"testing"
)

// The score is of the whole conversation, each value once, and is shown where a
// decision is shown.
func TestSensitivity(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), local: echo()})
	for text, want := range map[string]string{
		"What is a monad?":         `"sensitivity":{"score":0,"class":"none","because":[]}`,
		"Write to " + email:        `"sensitivity":{"score":0.2,"class":"personal","because":["EMAIL_ADDRESS"]}`,
		email + " and " + email:    `"score":0.2,`,
		person + " has " + illness: `"sensitivity":{"score":0.82,"class":"sensitive","because":["HEALTH_DATA","somebody's special category","PERSON_NAME"]}`,
	} {
		if a := h.postTo("/v1/weir/check", user("gpt-x", text)); a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%q: %d %s, want %s", text, a.status, a.body, want)
		}
	}
	a := h.post(`{"model":"gpt-x","messages":[{"role":"user","content":"I am ` + person + `"},{"role":"assistant","content":"Hello"},{"role":"user","content":"mail ` + email + ` to ` + person + `"}]}`)
	dec := h.get("/v1/weir/decisions/" + a.header.Get("X-Weir-Decision"))
	if !strings.Contains(dec.body, `"sensitivity":{"score":0.36,"class":"personal"}`) {
		t.Errorf("decision: %s", dec.body)
	}
	a = h.post(user("gpt-x", "What is a functor?"))
	if dec := h.get("/v1/weir/decisions/" + a.header.Get("X-Weir-Decision")); strings.Contains(dec.body, "sensitivity") {
		t.Errorf("decision on nothing: %s", dec.body)
	}
}

// A policy may keep a conversation that adds up to much, though each value alone
// would be masked.
func TestSensitivityDecides(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), local: echo(), policy: "sensitivity: {sensitive: keep_local}\n"})
	if a := h.post(user("gpt-x", "Write to "+email)); a.header.Get("X-Weir-Placement") != "cloud-masked" {
		t.Errorf("one address: %v", a.header)
	}
	var many []string
	for _, name := range strings.Fields("ann bea cid dan eve fay gus hal ida jon kim lea max ned ola pam") {
		many = append(many, name+"."+email)
	}
	h2 := open(t, plan{cloud: echo(), local: echo(), scanner: own(t), policy: "sensitivity: {sensitive: keep_local}\n"})
	a := h2.post(user("gpt-x", "Write to "+strings.Join(many, ", ")))
	if a.header.Get("X-Weir-Placement") != "local" || chats(h2.cloud) != 0 {
		t.Errorf("many addresses: %d %v", a.status, a.header)
	}
}
