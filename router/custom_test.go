package router_test

import (
	"strings"
	"testing"

	"weir/internal/weirtest"
	"weir/pii"
	"weir/pii/custom"
	"weir/pii/rules"
)

// own is a scanner with the shipped recognizers and two of a user.
func own(t testing.TB) *pii.Scanner {
	t.Helper()
	shipped, err := rules.Default()
	if err != nil {
		t.Fatal(err)
	}
	set, err := custom.Compile([]custom.Recognizer{
		{ID: "staff-badge", Label: "STAFF_BADGE", Text: "badge number", Pattern: `\bSB-\d{6}\b`, Score: 0.9, Finds: []string{badgeNo}},
		{ID: "codenames", Label: "PROJECT", Text: "project name", Words: []string{"bluefin tuna"}, Score: 0.9, Finds: []string{"Bluefin-Tuna"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return pii.NewScanner(
		pii.ScannerOptions{Labels: set.Labels()},
		pii.Part{Name: "rules", Version: shipped.Version(), Classifier: shipped},
		pii.Part{Name: "own", Version: set.Version(), Classifier: set},
	)
}

const (
	badgeNo = "SB-004821"
	project = "Bluefin Tuna"
)

// A value of a user's label is masked by name, comes back in the reply, also
// where the model changed its case, and is looked for in the whole task.
func TestOwnLabelMasked(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", stream} {
		shout := weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: 3}}
		h := open(t, plan{cloud: shout, noLocal: true, scanner: own(t), policy: "actions: {STAFF_BADGE: mask, PROJECT: mask}\n"})
		text := "Is " + badgeNo + " on " + project + "? See STAFFBADGE_AAAAA and xx" + badgeNo
		a := h.post(user("gpt-x", text, mode))
		if a.status != 200 || a.header.Get("X-Weir-Placement") != "cloud-masked" || !strings.Contains(a.header.Get("X-Weir-Masked"), "STAFF_BADGE=") {
			t.Fatalf("status %d, headers %v, body %s", a.status, a.header, a.body)
		}
		got := received(h.cloud)
		if strings.Contains(got, "004821 ") || strings.Contains(got, project) || !strings.Contains(got, "STAFFBADGE_") || !strings.Contains(got, "PROJECT_") {
			t.Errorf("the cloud got %s", got)
		}
		if !strings.Contains(got, "stand for private values") {
			t.Errorf("the model is not told what the words are: %s", got)
		}
		if back := contentOf(t, a, mode != ""); back != text {
			t.Errorf("%q came back as %q", text, back)
		}
	}
}

// Without a setting a user's label stays on this machine, and the decision and
// the log say its name and nothing else of it.
func TestOwnLabelKept(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), local: echo(), scanner: own(t)})
	a := h.post(user("auto", "Who runs "+project+"?"))
	if a.status != 200 || a.header.Get("X-Weir-Placement") != "local" {
		t.Fatalf("status %d, headers %v, body %s", a.status, a.header, a.body)
	}
	if chats(h.cloud) != 0 || !strings.Contains(received(h.local), project) {
		t.Errorf("cloud calls %d; local got %s", chats(h.cloud), received(h.local))
	}
	dec := h.get("/v1/weir/decisions/" + a.header.Get("X-Weir-Decision"))
	if dec.status != 200 || !strings.Contains(dec.body, `"PROJECT"`) || !strings.Contains(dec.body, "unknown_label") || strings.Contains(dec.body, project) {
		t.Errorf("decision: %d %s", dec.status, dec.body)
	}
	later := h.post(`{"model":"cloud/gpt-x","messages":[{"role":"user","content":"Who runs ` + project + `?"},{"role":"assistant","content":"` +
		contentOf(t, a, false) + `"},{"role":"user","content":"And why is the sky blue?"}]}`)
	if later.status != 200 || strings.Contains(received(h.cloud), project) || !strings.Contains(received(h.cloud), "PROJECT_") {
		t.Errorf("later: %d; the cloud got %s", later.status, received(h.cloud))
	}
	if strings.Contains(h.logged(), project) {
		t.Error("the log holds the value")
	}
}

// A disguise does not hide a value of a user's label.
func TestOwnLabelDisguised(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true, scanner: own(t), policy: "actions: {PROJECT: mask, STAFF_BADGE: mask}\n"})
	for _, text := range []string{"Blue\\u200bfin Tuna", "Ｂｌｕｅｆｉｎ　Ｔｕｎａ", "bluefin%20tuna", "blu\u0435fin tuna"} {
		a := h.post(user("gpt-x", "On "+text+" again"))
		if a.status != 200 || !strings.Contains(a.header.Get("X-Weir-Masked"), "PROJECT=1") {
			t.Errorf("%q: %d %v", text, a.status, a.header)
		}
	}
}
