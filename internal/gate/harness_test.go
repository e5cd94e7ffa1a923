package gate_test

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/audit"
	"weir/internal/gate"
	"weir/internal/seal"
	"weir/internal/store/sqlite"
	"weir/internal/task"
	"weir/internal/weirtest/leak"
	"weir/internal/wire"
	"weir/pii"
	"weir/policy"
)

func TestMain(m *testing.M) { leak.Main(m) }

// Values that the tests' classifier knows, one for each action of the shipped
// policy.
const (
	email    = "ann.lee@fjord.example"    // mask
	person   = "Ann Lee"                  // mask
	ssn      = "751-23-4908"              // keep_local
	password = "Tr0ub4dor-and-3"          // refuse
	illness  = "chronic plaque psoriasis" // ask_user
)

// words finds fixed values.
type words map[string]pii.Label

func known() words {
	return words{
		email: pii.EmailAddress, person: pii.PersonName, ssn: pii.SocialSecurityNumber,
		password: pii.Password, illness: pii.HealthData,
	}
}

func (w words) Scan(ctx context.Context, t pii.Text) (out []pii.Span, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for value, label := range w {
		for at := 0; ; {
			i := strings.Index(t.Value[at:], value)
			if i < 0 {
				break
			}
			out = append(out, pii.Span{Start: at + i, End: at + i + len(value), Label: label, Score: 1, Rank: pii.RankChecksum, Rule: "words"})
			at += i + len(value)
		}
	}
	slices.SortFunc(out, func(a, b pii.Span) int { return cmp.Or(a.Start-b.Start, b.End-a.End) })
	var kept []pii.Span
	for _, s := range out {
		if len(kept) == 0 || s.Start >= kept[len(kept)-1].End {
			kept = append(kept, s)
		}
	}
	return kept, nil
}

func (words) Version() string { return "words-1" }

// shipped is the policy as it is shipped. Preparing it takes a while.
var shipped = sync.OnceValues(func() (*policy.Policy, error) {
	return policy.Load(context.Background(), policy.Options{Timeout: time.Minute})
})

// bench is a gate with what it needs around it.
type bench struct {
	testing.TB
	gate  *gate.Gate
	tasks *task.Tasks
	audit *audit.Log
}

func setUp(t testing.TB, s gate.Scanner, d gate.Decider, opts gate.Options) *bench {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if d == nil {
		pol, err := shipped()
		must(err)
		d = pol
	}
	keys, err := seal.New([32]byte{7})
	must(err)
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
	must(err)
	t.Cleanup(func() { db.Close() })
	log, err := audit.New(t.Context(), db, keys)
	must(err)
	return &bench{t, gate.New(s, d, opts), task.New(db, keys, task.Options{}), log}
}

// examined reads a body and has the gate look at it.
func (b *bench) examined(body string) *gate.Examined {
	b.Helper()
	return b.examinedIn("t", body)
}

// examinedIn does so in the task of that id.
func (b *bench) examinedIn(id, body string) *gate.Examined {
	b.Helper()
	c, err := wire.ReadChat([]byte(body), wire.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	ref := task.Ref{Caller: "me", Explicit: id}
	for _, d := range c.Chain() {
		ref.Chain = append(ref.Chain, task.Digest(d))
	}
	for _, m := range c.Messages {
		ref.Messages = append(ref.Messages, task.Digest(m.Digest))
	}
	tk, err := b.tasks.Open(b.Context(), ref)
	if err != nil {
		b.Fatal(err)
	}
	return b.gate.Examine(b.Context(), c, tk)
}

func (b *bench) decided(body string, answers map[string]policy.Action) *gate.Decided {
	b.Helper()
	return b.gate.Decide(b.Context(), b.examined(body), gate.Step{
		Kind: "turn", Mode: "auto", Dialect: "chat", Upstream: "sky", Caller: "me", Answers: answers,
	})
}

func (b *bench) receipt(d *gate.Decided) audit.Receipt {
	b.Helper()
	r, err := b.audit.Append(b.Context(), d.Record("cloud", "sky", "cloud"))
	if err != nil {
		b.Fatal(err)
	}
	return r
}

var sky = gate.Target{Upstream: "sky", Model: "gpt-x"}

// cleared takes a body all the way and returns what would be sent.
func (b *bench) cleared(body string) string {
	b.Helper()
	d := b.decided(body, nil)
	out, err := b.gate.Clear(b.Context(), d, b.receipt(d), sky)
	if err != nil {
		b.Fatalf("clear %s: %v", body, err)
	}
	raw, err := out.Bytes("sky")
	if err != nil {
		b.Fatal(err)
	}
	return string(raw)
}

// clearedIn is cleared in the task of that id.
func (b *bench) clearedIn(id, body string) {
	b.Helper()
	d := b.gate.Decide(b.Context(), b.examinedIn(id, body), gate.Step{Kind: "turn", Mode: "auto", Dialect: "chat", Upstream: "sky", Caller: "me"})
	if _, err := b.gate.Clear(b.Context(), d, b.receipt(d), sky); err != nil {
		b.Fatalf("clear %s: %v", body, err)
	}
}

func (b *bench) kept(body string) string {
	b.Helper()
	d := b.decided(body, nil)
	out, err := b.gate.Keep(b.Context(), d, b.receipt(d), gate.Target{Upstream: "desk", Model: "gpt-x"})
	if err != nil {
		b.Fatalf("keep %s: %v", body, err)
	}
	raw, err := out.Bytes("desk")
	if err != nil {
		b.Fatal(err)
	}
	return string(raw)
}

// chat writes a request with the given messages.
func chat(messages ...string) string {
	return `{"model":"gpt-x","messages":[` + strings.Join(messages, ",") + `]}`
}

func message(role, content string) string {
	return `{"role":"` + role + `","content":"` + content + `"}`
}

// remember notes that an answer was written on this machine from what was kept
// here, as the router does.
func (b *bench) remember(answer string) {
	b.Helper()
	c, err := wire.ReadCompletion([]byte(answer))
	if err != nil {
		b.Fatal(err)
	}
	up := task.Update{Settled: map[task.Digest]task.Settled{}}
	for _, d := range c.Digests() {
		up.Settled[task.Digest(d)] = task.Settled{Placement: "local", Tainted: true}
	}
	if len(up.Settled) == 0 {
		b.Fatal("the answer is not known by anything")
	}
	if err := b.examined(chat(message("user", "x"))).Task().Commit(b.Context(), up); err != nil {
		b.Fatal(err)
	}
}
