package router

import (
	"net/http"

	"weir/internal/gate"
	"weir/internal/wire"
)

// CheckResult is what POST /v1/weir/check answers: what would happen to a
// request. Nothing is sent, and nothing is stored.
type CheckResult struct {
	Action    string `json:"action"`
	Rule      string `json:"rule"`
	Reason    string `json:"reason"`
	Placement string `json:"placement"`
	Route     string `json:"route"`
	Code      string `json:"code,omitzero"`
	// Sensitivity is that of all findings together.
	Sensitivity CheckSensitivity `json:"sensitivity"`
	Findings    []CheckFinding   `json:"findings"`
	Opaque      []string         `json:"opaque"`
}

// CheckSensitivity is how private a request is as a whole, and what makes it so:
// labels and combinations of them.
type CheckSensitivity struct {
	Score   float64  `json:"score"`
	Class   string   `json:"class"`
	Because []string `json:"because"`
}

// CheckFinding is a finding and what would happen to it.
type CheckFinding struct {
	Pointer string  `json:"pointer"`
	Start   int     `json:"start"`
	End     int     `json:"end"`
	Label   string  `json:"label"`
	Score   float64 `json:"score"`
	By      string  `json:"recognizer"`
	Action  string  `json:"action"`
	Rule    string  `json:"rule"`
	Reason  string  `json:"reason"`
}

// check is POST /v1/weir/check: a dry run of a chat request.
func (s *Server) check(w http.ResponseWriter, r *http.Request) {
	x := s.newExchange(w, r)
	defer s.recover(x)
	out, err := s.dryRun(x)
	if err != nil {
		s.fail(x, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

func (s *Server) dryRun(x *exchange) (CheckResult, error) {
	ctx := x.r.Context()
	body, err := s.readBody(x.w, x.r)
	if err != nil {
		return CheckResult{}, err
	}
	chat, err := wire.ReadChat(body, s.opts.Limits.JSON)
	if err != nil {
		return CheckResult{}, err
	}
	if err := s.orient(ctx, x, chat); err != nil {
		return CheckResult{}, err
	}
	t, err := s.Tasks.Open(ctx, refOf(x, chat))
	if err != nil {
		return CheckResult{}, storeError("open the task", err)
	}
	x.decided = s.Gate.Decide(ctx, s.examine(ctx, chat, t), x.step(nil))
	return result(x.decided, Place(s.signals(ctx, x, x.decided))), nil
}

func result(d *gate.Decided, p Placement) CheckResult {
	names := map[Where]string{Nowhere: "none", Hold: "ask", OnCloud: "cloud", OnLocal: "local"}
	out := CheckResult{
		Action: string(d.Action()), Rule: d.Rule(), Reason: d.Reason(), Placement: names[p.Where], Route: p.Rule,
		Code: string(p.Code), Findings: []CheckFinding{}, Opaque: []string{},
	}
	if p.Where == OnCloud && d.Rewrites() {
		out.Placement = "cloud-masked"
	}
	s := d.Sensitivity()
	out.Sensitivity = CheckSensitivity{s.Score, string(s.Class), append([]string{}, s.Because...)}
	private := map[string]bool{}
	for _, v := range d.Verdicts() {
		if l := d.Chat().Leaves()[v.Leaf]; l.Kind == wire.Name {
			private[l.Value] = true
		}
	}
	for _, v := range d.Verdicts() {
		out.Findings = append(out.Findings, CheckFinding{
			Pointer: d.Chat().PointerWithout(v.Leaf, private), Start: v.Start, End: v.End, Label: string(v.Label), Score: v.Score,
			By: v.Finding.Rule, Action: string(v.Action), Rule: v.Rule, Reason: v.Reason,
		})
	}
	for _, o := range d.Chat().Opaque {
		out.Opaque = append(out.Opaque, o.Kind)
	}
	return out
}
