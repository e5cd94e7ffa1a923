package policy_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/policy"
)

func TestADecisionIsRemembered(t *testing.T) {
	t.Parallel()
	p := load(t, policy.Options{})
	before := p.Cached()
	in := request(finding("HEALTH_DATA", "user"), finding("IBAN", "tool"))
	first := decide(t, p, in)
	if p.Cached() != before+1 {
		t.Fatalf("%d remembered after %d", p.Cached(), before)
	}
	// What the caller does to its copy is no concern of the next one.
	want := decide(t, p, in)
	for _, d := range []policy.Decision{first, decide(t, p, in)} {
		d.Findings[0].Action = policy.Allow
		d.Ask.OnTimeout = policy.Allow
		d.Ask.Choices[0] = policy.Allow
	}
	if diff := cmp.Diff(want, decide(t, p, in)); diff != "" {
		t.Errorf("a caller changed what is remembered:\n%s", diff)
	}
	if p.Cached() != before+1 {
		t.Errorf("the same input is remembered twice")
	}
}

func TestARememberedDecisionIsTheOneThatWouldBeMade(t *testing.T) {
	t.Parallel()
	p := load(t, policy.Options{})
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "input")
		fresh, err := p.Decide(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.Decide(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fresh, again); diff != "" {
			t.Fatalf("remembered differently:\n%s", diff)
		}
	})
}

func TestWhatMayChangeIsNotRemembered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body       string
		remembered bool
	}{
		"the clock":             {"x := time.now_ns()\n", false},
		"the clock in a rule":   {"step_rules contains x if {\n\tx := {\"action\": \"refuse\", \"rule\": \"r\", \"reason\": \"r\"}\n\ttime.now_ns() < 0\n}\n", false},
		"the clock by a with":   {"now := 1\n\nlate if time.weekday(now) == \"Monday\" with now as time.now_ns()\n", false},
		"a function over times": {"x if time.weekday(0) == \"Monday\"\n", true},
	} {
		p := load(t, policy.Options{Dir: dir("night.rego", "package weir.gate\n\n"+c.body)})
		decide(t, p, request())
		if got := p.Cached() >= 0; got != c.remembered {
			t.Errorf("%s: remembered is %v", name, got)
		}
	}
}

func TestTheMemoryOfDecisionsIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Replace(whole, "all is let through", strings.Repeat("x", 1000), 1)
	p := load(t, policy.Options{Dir: dir("gate.rego", long)})
	in := request()
	for range 50 {
		in.Findings = append(in.Findings, finding("IBAN", "user"))
	}
	const rounds = 300 // times 50 reasons of 1,000 bytes: 15 MB
	for i := range rounds {
		in.Findings[0].Count = i + 1
		decide(t, p, in)
	}
	if n := p.Cached(); n < 10 || n > rounds*3/4 {
		t.Errorf("%d decisions are remembered", n)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	p := load(t, policy.Options{})
	labels := []string{"EMAIL_ADDRESS", "PASSWORD", "HEALTH_DATA", "PAYMENT_CARD"}
	want := map[string]policy.Action{"EMAIL_ADDRESS": "mask", "PASSWORD": "refuse", "HEALTH_DATA": "ask_user", "PAYMENT_CARD": "keep_local"}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 40 {
				label := labels[(g+i)%len(labels)]
				in := request(finding(label, "user"))
				in.Findings[0].Count = 1 + i%7
				d, err := p.Decide(t.Context(), in)
				if err != nil || d.Action != want[label] {
					t.Errorf("%s: %s, %v", label, d.Action, err)
				}
				d.Findings[0].Reason = "" // ours to change
			}
		})
	}
	wg.Wait()
}
