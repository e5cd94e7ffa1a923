package checkpoint

import (
	"fmt"
	"strings"
)

// Problems is everything that is wrong with a checkpoint, one sentence each,
// in the order in which the checkpoint was read. It is an error; use
// errors.As to get at the list.
type Problems struct {
	Dir  string
	List []string
}

// shown bounds how many problems Error prints: a wrong model has thousands,
// and the first ones tell the story.
const shown = 20

// Error prints the first problems and how many there are.
func (p *Problems) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is not the checkpoint this engine runs (%d problems):", p.Dir, len(p.List))
	if len(p.List) == 1 {
		b.Reset()
		fmt.Fprintf(&b, "%s is not the checkpoint this engine runs:", p.Dir)
	}
	for i, s := range p.List {
		if i == shown {
			fmt.Fprintf(&b, "\n  and %d more", len(p.List)-shown)
			break
		}
		b.WriteString("\n  " + s)
	}
	return b.String()
}

func (p *Problems) addf(format string, args ...any) {
	p.List = append(p.List, fmt.Sprintf(format, args...))
}

// err returns p if it holds a problem, else nil.
func (p *Problems) err() error {
	if len(p.List) == 0 {
		return nil
	}
	return p
}

// FormatError says that a path holds a model, but one of another kind than
// the engine runs.
type FormatError struct {
	Path string
	// Found names the format or model in words, as "a GGUF file".
	Found string
}

// Error says what was found and what is needed instead.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s holds %s; this engine runs only %s (MLX affine 4-bit, group 64): fetch it with \"weir engine pull\"",
		e.Path, e.Found, Repo)
}
