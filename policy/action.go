package policy

// Action is what happens to a finding, to opaque content or to a whole step.
type Action string

// The actions, laxest first. [Strictest] orders them.
const (
	// Allow sends the content as it is.
	Allow Action = "allow"
	// Mask replaces the value by a placeholder that is restored in the reply.
	Mask Action = "mask"
	// AskUser holds the step until the user has chosen.
	AskUser Action = "ask_user"
	// KeepLocal lets the step go to a model on this device only.
	KeepLocal Action = "keep_local"
	// Refuse lets the step go to no model at all, one on this device included.
	Refuse Action = "refuse"
)

// rank orders the actions. One that is not known is stricter than all that are.
func (a Action) rank() int {
	switch a {
	case Allow:
		return 0
	case Mask:
		return 1
	case AskUser:
		return 2
	case KeepLocal:
		return 3
	case Refuse:
		return 4
	default:
		return 5
	}
}

// Valid reports whether a is one of the five actions.
func (a Action) Valid() bool { return a.rank() < 5 }

// Strictest returns the stricter of two actions: refuse before keep_local
// before ask_user before mask before allow. Something that is not an action
// counts as refuse.
func Strictest(a, b Action) Action {
	if a.rank() < b.rank() {
		a = b
	}
	if !a.Valid() {
		return Refuse
	}
	return a
}
