package router_test

import (
	"testing"

	"pgregory.net/rapid"

	"weir/internal/wire"
	"weir/policy"
	"weir/router"
)

// A request that may run on either of two sides that can do everything.
func free() router.Signals {
	able := router.Side{Configured: true, Healthy: true, Tools: true, Schema: true, Vision: true}
	return router.Signals{Mode: router.Auto, Action: policy.Allow, Tokens: 100, Cloud: able, Local: able}
}

// Rows stand in the order of the rules: each row's change wins over those of all
// later rows.
func TestPlace(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*router.Signals)
		where  router.Where
		rule   string
		code   wire.Code
	}{
		{"refused, whatever else", func(s *router.Signals) { s.Action, s.Mode, s.Hard = policy.Refuse, router.WantLocal, true }, router.Nowhere, "refused", wire.CodePolicyRefused},
		{"ask", func(s *router.Signals) { s.Action = policy.AskUser }, router.Hold, "ask", ""},
		{"ask, though the cloud is wanted", func(s *router.Signals) { s.Action, s.Mode = policy.AskUser, router.WantCloud }, router.Hold, "ask", ""},
		{"ask, but it stays here anyway", func(s *router.Signals) { s.Action, s.Mode = policy.AskUser, router.WantLocal }, router.OnLocal, "mode_local", ""},
		{"kept here", func(s *router.Signals) { s.Action = policy.KeepLocal }, router.OnLocal, "keep_local", ""},
		{"kept here, though the cloud is wanted", func(s *router.Signals) { s.Action, s.Mode = policy.KeepLocal, router.WantCloud }, router.OnLocal, "keep_local", ""},
		{"kept here, though the server is down", func(s *router.Signals) { s.Action, s.Local.Healthy = policy.KeepLocal, false }, router.OnLocal, "keep_local", ""},
		{"kept here, in a loop of the cloud", func(s *router.Signals) { s.Action, s.Loop, s.Last = policy.KeepLocal, true, router.OnCloud }, router.OnLocal, "keep_local", ""},
		{"kept here, no server", func(s *router.Signals) { s.Action, s.Local = policy.KeepLocal, router.Side{} }, router.Nowhere, "keep_local", wire.CodeLocalNotConfigured},
		{"not examined, no server", func(s *router.Signals) { s.Action, s.Local, s.Unexamined = policy.KeepLocal, router.Side{}, true }, router.Nowhere, "keep_local", wire.CodeClassifierUnavailable},
		{"no decision, no server", func(s *router.Signals) { s.Action, s.Local, s.Undecided = policy.KeepLocal, router.Side{}, true }, router.Nowhere, "keep_local", wire.CodePolicyUnavailable},
		{"kept here, no tools", func(s *router.Signals) { s.Action, s.Tools, s.Local.Tools = policy.KeepLocal, true, false }, router.Nowhere, "keep_local", wire.CodeLocalUnable},
		{"kept here, no schema", func(s *router.Signals) { s.Action, s.Schema, s.Local.Schema = policy.KeepLocal, true, false }, router.Nowhere, "keep_local", wire.CodeLocalUnable},
		{"kept here, no vision", func(s *router.Signals) { s.Action, s.Vision, s.Local.Vision = policy.KeepLocal, true, false }, router.Nowhere, "keep_local", wire.CodeLocalUnable},
		{"kept here, too long", func(s *router.Signals) { s.Action, s.Tokens, s.Local.Context = policy.KeepLocal, 9000, 8000 }, router.Nowhere, "keep_local", wire.CodeLocalUnable},
		{"an action nobody knows", func(s *router.Signals) { s.Action, s.Mode = "shrug", router.WantCloud }, router.OnLocal, "unknown_action", ""},
		{"no action", func(s *router.Signals) { s.Action, s.Local = "", router.Side{} }, router.Nowhere, "unknown_action", wire.CodeLocalNotConfigured},
		{"local is wanted", func(s *router.Signals) { s.Mode, s.Hard = router.WantLocal, true }, router.OnLocal, "mode_local", ""},
		{"local is wanted, none there", func(s *router.Signals) { s.Mode, s.Local = router.WantLocal, router.Side{} }, router.Nowhere, "mode_local", wire.CodeLocalNotConfigured},
		{"cloud is wanted", func(s *router.Signals) { s.Mode, s.SideRequest = router.WantCloud, true }, router.OnCloud, "mode_cloud", ""},
		{"cloud is wanted, masked", func(s *router.Signals) { s.Mode, s.Action, s.MaskDamage = router.WantCloud, policy.Mask, 0.9 }, router.OnCloud, "mode_cloud", ""},
		{"cloud is wanted, none there", func(s *router.Signals) { s.Mode, s.Cloud = router.WantCloud, router.Side{} }, router.Nowhere, "mode_cloud", wire.CodeCloudNotConfigured},
		{"nothing is there", func(s *router.Signals) { s.Cloud, s.Local = router.Side{}, router.Side{} }, router.Nowhere, "no_upstream", wire.CodeCloudNotConfigured},
		{"no local server", func(s *router.Signals) { s.Local, s.SideRequest = router.Side{}, true }, router.OnCloud, "no_local", ""},
		{"local server down", func(s *router.Signals) { s.Local.Healthy = false }, router.OnCloud, "local_down", ""},
		{"local server knows no tools", func(s *router.Signals) { s.Local.Tools, s.Tools = false, true }, router.OnCloud, "local_unable", ""},
		{"longer than an unknown server is trusted with", func(s *router.Signals) { s.Tokens = 9000 }, router.OnCloud, "context", ""},
		{"no cloud", func(s *router.Signals) { s.Cloud, s.Hard = router.Side{}, true }, router.OnLocal, "no_cloud", ""},
		{"cloud down", func(s *router.Signals) { s.Cloud.Healthy, s.Hard = false, true }, router.OnLocal, "cloud_down", ""},
		{"cloud sees no images", func(s *router.Signals) { s.Cloud.Vision, s.Vision = false, true }, router.OnLocal, "cloud_unable", ""},
		{"both down", func(s *router.Signals) { s.Cloud.Healthy, s.Local.Healthy = false, false }, router.OnLocal, "last_resort", ""},
		{"only a cloud, and down", func(s *router.Signals) { s.Cloud.Healthy, s.Local = false, router.Side{} }, router.OnCloud, "last_resort", ""},
		{"neither is able", func(s *router.Signals) { s.Tools, s.Cloud.Tools, s.Local.Tools = true, false, false }, router.OnCloud, "last_resort", ""},
		{"a loop stays in the cloud", func(s *router.Signals) { s.Loop, s.Last, s.AsksMasked = true, router.OnCloud, true }, router.OnCloud, "loop", ""},
		{"a loop stays here", func(s *router.Signals) { s.Loop, s.Last, s.Hard = true, router.OnLocal, true }, router.OnLocal, "loop", ""},
		{"a loop that nobody remembers", func(s *router.Signals) { s.Loop, s.Hard = true, true }, router.OnCloud, "hard", ""},
		{"a title", func(s *router.Signals) { s.SideRequest, s.Hard = true, true }, router.OnLocal, "side", ""},
		{"about a masked value", func(s *router.Signals) { s.Action, s.AsksMasked, s.Hard = policy.Mask, true, true }, router.OnLocal, "asks_masked", ""},
		{"mostly masked", func(s *router.Signals) { s.Action, s.MaskDamage, s.Hard = policy.Mask, 0.16, true }, router.OnLocal, "mask_damage", ""},
		{"a little masked", func(s *router.Signals) { s.Action, s.MaskDamage, s.Hard = policy.Mask, 0.15, true }, router.OnCloud, "hard", ""},
		{"hard", func(s *router.Signals) { s.Hard = true }, router.OnCloud, "hard", ""},
		{"easy", func(*router.Signals) {}, router.OnLocal, "easy", ""},
	} {
		s := free()
		tc.change(&s)
		if got := router.Place(s); got != (router.Placement{Where: tc.where, Rule: tc.rule, Code: tc.code}) {
			t.Errorf("%s: got %+v", tc.name, got)
		}
	}
}

func side() *rapid.Generator[router.Side] {
	return rapid.Custom(func(t *rapid.T) router.Side {
		yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
		return router.Side{
			Configured: yes("configured"), Healthy: yes("healthy"), Tools: yes("tools"), Schema: yes("schema"), Vision: yes("vision"),
			Context: rapid.SampledFrom([]int{0, 0, 100, 10_000}).Draw(t, "context"),
		}
	})
}

func signals() *rapid.Generator[router.Signals] {
	return rapid.Custom(func(t *rapid.T) router.Signals {
		yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
		return router.Signals{
			Mode:       rapid.SampledFrom([]router.Mode{router.Auto, router.WantCloud, router.WantLocal, "", "other"}).Draw(t, "mode"),
			Action:     rapid.SampledFrom([]policy.Action{policy.Allow, policy.Mask, policy.AskUser, policy.KeepLocal, policy.Refuse, "", "ALLOW", "other"}).Draw(t, "action"),
			Unexamined: yes("unexamined"), Undecided: yes("undecided"), Tools: yes("needs tools"), Schema: yes("needs schema"), Vision: yes("needs vision"),
			Tokens:     rapid.IntRange(0, 20_000).Draw(t, "tokens"),
			MaskDamage: rapid.Float64Range(0, 1).Draw(t, "damage"), AsksMasked: yes("asks masked"), SideRequest: yes("side"), Loop: yes("loop"),
			Last: rapid.SampledFrom([]router.Where{router.Nowhere, router.Hold, router.OnCloud, router.OnLocal, 9}).Draw(t, "last"),
			Hard: yes("hard"), Cloud: side().Draw(t, "cloud"), Local: side().Draw(t, "local"),
		}
	})
}

// Whatever else is true: only what is allowed or masked goes to the cloud, a
// place is one that is there, and whatever runs nowhere says why.
func TestPlaceNeverLetsOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := signals().Draw(t, "signals")
		p := router.Place(s)
		if p != router.Place(s) {
			t.Fatal("not a function")
		}
		free := s.Action == policy.Allow || s.Action == policy.Mask
		switch p.Where {
		case router.OnCloud:
			if !free || s.Mode == router.WantLocal || !s.Cloud.Configured {
				t.Fatalf("on the cloud: %+v", p)
			}
		case router.OnLocal:
			if s.Action == policy.Refuse || !s.Local.Configured {
				t.Fatalf("on this machine: %+v", p)
			}
		case router.Hold:
			if s.Action != policy.AskUser {
				t.Fatalf("held: %+v", p)
			}
		case router.Nowhere:
			if p.Code == "" {
				t.Fatalf("no reason: %+v", p)
			}
		default:
			t.Fatalf("%+v", p)
		}
		if p.Rule == "" {
			t.Fatalf("no rule: %+v", p)
		}
	})
}
