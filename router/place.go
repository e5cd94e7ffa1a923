package router

import (
	"weir/internal/wire"
	"weir/policy"
)

// Mode is what the client asked for.
type Mode string

// The modes.
const (
	Auto      Mode = "auto"  // Weir places each step
	WantCloud Mode = "cloud" // the cloud, as far as the gate lets it
	WantLocal Mode = "local" // never leaves the machine
)

// Where is where a step runs.
type Where uint8

// The places.
const (
	Nowhere Where = iota // refused; Placement.Code says why
	Hold                 // the user must be asked first
	OnCloud
	OnLocal
)

// Side is what is known of the upstream that a step would use on one side.
type Side struct {
	Configured, Healthy   bool
	Tools, Schema, Vision bool
	Context               int // tokens; 0 is unknown
}

// Signals is what the place of a step depends on, and all it depends on.
type Signals struct {
	Mode   Mode
	Action policy.Action
	// Unexamined says that the classifier failed, Undecided that the policy
	// did. Action is then keep_local, and they name the error if there is no
	// place here.
	Unexamined, Undecided bool
	// Needs.
	Tools, Schema, Vision bool
	Tokens                int // prompt and answer, estimated
	// MaskDamage is the masked share of the user's text, in [0,1].
	MaskDamage float64
	// AsksMasked says that the question is about a masked value itself.
	AsksMasked bool
	// Side request: a title, tags or a summary for the client's own use.
	SideRequest bool
	// Loop says that the request ends in tool results, Last where the loop's
	// last step ran.
	Loop bool
	Last Where
	// Hard says that the request looks too hard for a small model.
	Hard         bool
	Cloud, Local Side
}

// Placement is where a step runs and by which rule. Code is the error if it
// runs nowhere.
type Placement struct {
	Where Where
	Rule  string
	Code  wire.Code
}

// Limits of the rules below.
const (
	// MaxMaskDamage is the masked share of a text above which the cloud would
	// answer to holes.
	MaxMaskDamage = 0.15
	// unknownContext is what a local server of unknown context length is
	// trusted with: some cut silently.
	unknownContext = 8192
)

// Place decides where a step runs. It is a pure function; the first rule that
// applies wins. What policy keeps here never goes to the cloud, whatever fails.
func Place(s Signals) Placement {
	switch s.Action {
	case policy.Refuse:
		return Placement{Nowhere, "refused", wire.CodePolicyRefused}
	case policy.AskUser:
		if s.Mode != WantLocal {
			return Placement{Hold, "ask", ""}
		}
		return s.onLocal("mode_local")
	case policy.KeepLocal:
		return s.onLocal("keep_local")
	case policy.Allow, policy.Mask:
	default:
		return s.onLocal("unknown_action")
	}
	switch s.Mode {
	case WantLocal:
		return s.onLocal("mode_local")
	case WantCloud:
		if !s.Cloud.Configured {
			return Placement{Nowhere, "mode_cloud", wire.CodeCloudNotConfigured}
		}
		return Placement{OnCloud, "mode_cloud", ""}
	case Auto:
	}
	return s.free()
}

// free places a step that may run on either side.
func (s Signals) free() Placement {
	cloud, local := s.usable(s.Cloud), s.usable(s.Local) && s.fits()
	switch {
	case !s.Cloud.Configured && !s.Local.Configured:
		return Placement{Nowhere, "no_upstream", wire.CodeCloudNotConfigured}
	case !cloud && !local:
		// Neither is known to be able: let the likelier one say so itself.
		return s.lastResort()
	case !local:
		return Placement{OnCloud, s.whyNotLocal(), ""}
	case !cloud:
		return Placement{OnLocal, s.whyNotCloud(), ""}
	case s.Loop && (s.Last == OnCloud || s.Last == OnLocal):
		return Placement{s.Last, "loop", ""}
	case s.SideRequest:
		return Placement{OnLocal, "side", ""}
	case s.AsksMasked:
		return Placement{OnLocal, "asks_masked", ""}
	case s.MaskDamage > MaxMaskDamage:
		return Placement{OnLocal, "mask_damage", ""}
	case s.Hard:
		return Placement{OnCloud, "hard", ""}
	}
	return Placement{OnLocal, "easy", ""}
}

func (s Signals) usable(side Side) bool {
	return side.Configured && side.Healthy && s.able(side)
}

func (s Signals) able(side Side) bool {
	return (!s.Tools || side.Tools) && (!s.Schema || side.Schema) && (!s.Vision || side.Vision) &&
		(side.Context == 0 || s.Tokens <= side.Context)
}

// fits says that the request fits a local server even if it is silent about its
// context length.
func (s Signals) fits() bool { return s.Local.Context != 0 || s.Tokens <= unknownContext }

func (s Signals) whyNotLocal() string {
	switch {
	case !s.Local.Configured:
		return "no_local"
	case !s.Local.Healthy:
		return "local_down"
	case !s.able(s.Local):
		return "local_unable"
	}
	return "context"
}

func (s Signals) whyNotCloud() string {
	switch {
	case !s.Cloud.Configured:
		return "no_cloud"
	case !s.Cloud.Healthy:
		return "cloud_down"
	}
	return "cloud_unable"
}

func (s Signals) lastResort() Placement {
	if s.Cloud.Configured && (s.Cloud.Healthy || !s.Local.Configured) {
		return Placement{OnCloud, "last_resort", ""}
	}
	if !s.Local.Configured {
		return Placement{OnCloud, "last_resort", ""}
	}
	return Placement{OnLocal, "last_resort", ""}
}

// onLocal places a step that must stay here, or says why it cannot.
func (s Signals) onLocal(rule string) Placement {
	switch {
	case !s.Local.Configured && s.Unexamined:
		return Placement{Nowhere, rule, wire.CodeClassifierUnavailable}
	case !s.Local.Configured && s.Undecided:
		return Placement{Nowhere, rule, wire.CodePolicyUnavailable}
	case !s.Local.Configured:
		return Placement{Nowhere, rule, wire.CodeLocalNotConfigured}
	case !s.able(s.Local):
		return Placement{Nowhere, rule, wire.CodeLocalUnable}
	}
	// An unhealthy server is tried all the same: there is nowhere else to go,
	// and its own failure says more than our memory of one.
	return Placement{OnLocal, rule, ""}
}
