package tagger

import (
	"context"
	"slices"
	"sort"

	"weir/pii"
)

// Joined runs recognizers and the tagger over a text and adds up what both say.
// It is safe for concurrent use if the recognizers are.
//
// The recognizers decide on everything that has check digits, a vendor's prefix
// or a parser. For names, places and what else is only words, a sure tagger
// decides: a recognizer's finding of these labels yields to the tagger's where
// they overlap, and is dropped where the tagger is sure that nothing stands.
// Places and organizations alone need more certainty than beside somebody they
// may belong to.
type Joined struct {
	rules  pii.Classifier
	tagger *Tagger
}

// Join puts recognizers and tagger together.
func Join(rules pii.Classifier, t *Tagger) *Joined { return &Joined{rules, t} }

// Classify finds the private values of t. The spans may overlap.
func (j *Joined) Classify(ctx context.Context, t pii.Text) ([]pii.Span, error) {
	ruled, err := j.rules.Classify(ctx, t)
	if err != nil {
		return nil, err
	}
	w, _ := j.tagger.work.Get().(*workspace)
	defer j.tagger.release(w)
	learned, err := j.tagger.classify(ctx, t, w)
	if err != nil {
		return nil, err
	}
	ruled = slices.DeleteFunc(ruled, func(r pii.Span) bool { return yields(r, learned, w) })
	somebody := slices.ContainsFunc(ruled, func(sp pii.Span) bool { return somebodys(sp.Label) }) || slices.ContainsFunc(learned, j.tagger.names)
	ruled = j.tagger.report(ruled, learned, somebody)
	return append(ruled, repeated(t.Value, ruled)...), nil
}

// somebodys reports a label whose values stand for somebody. An account name, an
// address on a network or a secret does so less than a name, a number or a home.
func somebodys(l pii.Label) bool {
	info, _ := pii.Lookup(l)
	return info.Direct && info.Coarse != "secret" && l != pii.Username && l != pii.PersonalURL && l != pii.IPAddress
}

// worded are the labels of values that are words, which the tagger knows best.
func worded(l pii.Label) bool {
	switch l {
	case pii.PersonName, pii.Location, pii.Organization, pii.PostalAddress, pii.Age, pii.HealthData,
		pii.EthnicityOrNationality, pii.BeliefOrAffiliation, pii.SexualityOrGender, pii.CriminalRecord:
		return true
	}
	return false
}

// yields reports that a recognizer's finding is left to the tagger.
func yields(r pii.Span, learned []candidate, w *workspace) bool {
	if r.Rank > pii.RankContext {
		return false
	}
	if !worded(r.Label) {
		// Of a number both found, the tagger may know better what it is.
		return slices.ContainsFunc(learned, func(l candidate) bool {
			return l.Start == r.Start && l.End == r.End && l.Label != r.Label && l.prob >= renamed
		})
	}
	for _, l := range learned {
		if l.Start < r.End && r.Start < l.End && l.prob >= overrule {
			return true
		}
	}
	return w.surelyOutside(r.Start, r.End)
}

const (
	// overrule is the probability from which the tagger's boundaries and label are
	// taken before a recognizer's.
	overrule = 0.8
	// renamed is the probability from which the tagger's label of a number is taken.
	renamed = 0.95
	// nothing is the log-probability of being outside above which the tagger is
	// sure.
	nothing = -0.02
)

// surelyOutside reports that the tagger is sure of all tokens of [start,end).
func (w *workspace) surelyOutside(start, end int) bool {
	start, end = start+w.key, end+w.key
	i := sort.Search(len(w.toks), func(i int) bool { return int(w.toks[i].End) > start })
	for ; i < len(w.toks) && int(w.toks[i].Start) < end; i++ {
		if w.outside[i] < nothing {
			return false
		}
	}
	return true
}
