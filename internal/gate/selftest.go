package gate

import (
	"context"
	"errors"

	"weir/pii"
	"weir/pii/mask"
)

var errSelfTest = errors.New("gate self-test: a masked text did not come back whole")

// SelfTest masks a text with a known value in it and restores it. A gate that
// cannot do this must not be trusted with more.
func (g *Gate) SelfTest(ctx context.Context) error {
	const text = "Write to self.test@weir.example about it."
	spans, err := g.scanner.Scan(ctx, pii.Text{Value: text})
	if err != nil {
		return err
	}
	book := mask.NewBook([32]byte{1}, nil)
	masked, end := "", 0
	for _, sp := range spans {
		e, err := book.Issue(text[sp.Start:sp.End], sp.Label, mask.StylePlaceholder, nil)
		if err != nil {
			return err
		}
		masked, end = masked+text[end:sp.Start]+e.Token, sp.End
	}
	masked += text[end:]
	back, _ := book.Restorer().Restore(masked)
	if masked == text || back != text {
		return errSelfTest
	}
	return nil
}
