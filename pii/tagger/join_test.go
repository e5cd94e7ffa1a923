package tagger

import (
	"context"
	"errors"
	"testing"

	"weir/pii"
)

// ruled finds the same spans in every text.
type ruled []pii.Span

func (r ruled) Classify(context.Context, pii.Text) ([]pii.Span, error) {
	return append([]pii.Span(nil), r...), nil
}

func has(spans []pii.Span, start, end int, rule string) bool {
	for _, sp := range spans {
		if sp.Start == start && sp.End == end && sp.Rule == rule {
			return true
		}
	}
	return false
}

func TestJoin(t *testing.T) {
	t.Parallel()
	tg := load(t)
	const text = "Could you ask Ines Halvorsen to call the office back tomorrow?" // the name is at 14-28
	for _, row := range []struct {
		name string
		rule pii.Span
		kept bool
	}{
		{"a checksum stays, whatever the tagger says", pii.Span{Start: 14, End: 28, Label: pii.NationalID, Rank: pii.RankChecksum, Score: 0.9}, true},
		{"a name cut by a cue yields to the tagger", pii.Span{Start: 10, End: 28, Label: pii.PersonName, Rank: pii.RankContext, Score: 0.7}, false},
		{"a place where the tagger is sure that nothing stands", pii.Span{Start: 37, End: 47, Label: pii.Location, Rank: pii.RankContext, Score: 0.6}, false},
		{"a password by its key is not the tagger's to drop", pii.Span{Start: 37, End: 47, Label: pii.Password, Rank: pii.RankContext, Score: 0.8}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.rule.Rule = "rule"
			spans := find(t, Join(ruled{row.rule}, tg), pii.Text{Value: text})
			if got := has(spans, row.rule.Start, row.rule.End, "rule"); got != row.kept {
				t.Errorf("kept %v, want %v", got, row.kept)
			}
			if !has(spans, 14, 28, "tagger") {
				t.Error("the tagger's own finding is gone")
			}
		})
	}
}

// TestRepeats holds that a name found for sure is found again where its
// surroundings say nothing.
func TestRepeats(t *testing.T) {
	t.Parallel()
	const s = "Zorvan, xZorvan Zorvan9 Zorvan"
	spans := []pii.Span{{Start: 0, End: 6, Label: pii.PersonName, Score: 0.9}}
	got := repeated(s, spans)
	if len(got) != 1 || got[0].Start != 24 || got[0].Rank != pii.RankList {
		t.Errorf("got %+v", got)
	}
	for name, sp := range map[string]pii.Span{
		"unsure":      {Start: 0, End: 6, Label: pii.PersonName, Score: 0.7},
		"too short":   {Start: 0, End: 3, Label: pii.PersonName, Score: 0.9},
		"not a name":  {Start: 0, End: 6, Label: pii.Password, Score: 0.9},
		"small print": {Start: 9, End: 15, Label: pii.PersonName, Score: 0.9},
	} {
		if again := repeated("Zorvan, xzorvan zorvan Zorvan", []pii.Span{sp}); name != "small print" && len(again) > 0 {
			t.Errorf("%s: %+v", name, again)
		}
	}
}

type failing struct{}

func (failing) Classify(context.Context, pii.Text) ([]pii.Span, error) {
	return nil, pii.ErrUnexamined
}

func TestJoinFails(t *testing.T) {
	t.Parallel()
	if _, err := Join(failing{}, load(t)).Classify(t.Context(), pii.Text{Value: "x"}); !errors.Is(err, pii.ErrUnexamined) {
		t.Errorf("got %v", err)
	}
}
