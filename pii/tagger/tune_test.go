//go:build tune

package tagger

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/pii"
	"weir/pii/eval"
	"weir/pii/rules"
)

// The recipe in train/README.md runs these two: the first chooses, on the part
// that tunes; the second measures, on the part that reports.
var (
	tunePart   = flag.String("tune", "", "documents to tune on")
	reportPart = flag.String("report", "", "documents to report from")
)

// sample is a document with all that may be found in it.
type sample struct {
	source string
	clean  bool
	gold   []eval.Span
	ruled  []pii.Span
	all    []candidate
}

func samples(t *testing.T, tg *Tagger, part string) ([]sample, eval.Coverage) {
	t.Helper()
	docs, cov, err := eval.Read(part)
	if err != nil {
		t.Fatal(err)
	}
	set, err := rules.Default()
	if err != nil {
		t.Fatal(err)
	}
	var out []sample
	w := new(workspace)
	for _, d := range docs {
		text := pii.Text{Value: d.Text}
		ruled, err := set.Classify(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		all, err := tg.classify(t.Context(), text, w)
		if err != nil {
			t.Fatal(err)
		}
		ruled = slices.DeleteFunc(ruled, func(r pii.Span) bool { return yields(r, all, w) })
		out = append(out, sample{d.Source, len(d.Spans) == 0, d.Spans, ruled, slices.DeleteFunc(all, func(c candidate) bool {
			return !covers(cov, d.Source, c.Label) || slices.ContainsFunc(d.Spans, func(g eval.Span) bool { return g.Label == "" && c.Start < g.End && g.Start < c.End })
		})})
	}
	return out, cov
}

func covers(cov eval.Coverage, source string, l pii.Label) bool {
	labels, ok := cov[source]
	return !ok || slices.Contains(labels, l)
}

func (s sample) right(c pii.Span) bool {
	return slices.ContainsFunc(s.gold, func(g eval.Span) bool { return g.Start == c.Start && g.End == c.End && g.Label == c.Label })
}

// news are the sources of running text of today, whose clean documents bound what
// may be flagged; old ones only name persons.
var news = map[string]bool{
	"btc": true, "germeval14": true, "stockmark_ja": true, "uner_da": true, "uner_en": true, "uner_sv": true, "uner_zh": true, "wnut17": true,
	"europeana_fr": false, "europeana_nl": false,
}

// figures are what a tuning comes to: F1 of names of persons on news, of all names
// there, of names of persons everywhere, and the part of clean news flagged.
type figures struct{ person, all, everywhere, flagged float64 }

// worth weighs what is hardest, names of persons in news, most.
func (f figures) worth() float64 { return f.person + f.all/4 + f.everywhere/4 }

func measure(tg *Tagger, docs []sample, cov eval.Coverage) figures {
	var person, all, everywhere tally
	clean, flagged := 0, 0
	for _, s := range docs {
		today, is := news[s.source]
		somebody := slices.ContainsFunc(s.ruled, func(sp pii.Span) bool { return somebodys(sp.Label) }) || slices.ContainsFunc(s.all, tg.names)
		out := tg.report(nil, s.all, somebody)
		for _, r := range s.ruled {
			if covers(cov, s.source, r.Label) {
				out = append(out, r)
			}
		}
		if s.clean && today {
			clean++
			if len(out) > 0 {
				flagged++
			}
		}
		everywhere.add(s, out, true)
		if is {
			person.add(s, out, true)
			all.add(s, out, false)
		}
	}
	return figures{person.f1(), all.f1(), everywhere.f1(), float64(flagged) / float64(clean)}
}

// tally counts spans.
type tally struct{ gold, found, right int }

// add counts a document's spans, of persons only or of every label.
func (c *tally) add(s sample, out []pii.Span, persons bool) {
	for _, g := range s.gold {
		if g.Label == pii.PersonName || !persons && g.Label != "" {
			c.gold++
		}
	}
	for _, sp := range out {
		if persons && sp.Label != pii.PersonName {
			continue
		}
		c.found++
		if s.right(sp) {
			c.right++
		}
	}
}

func (c tally) f1() float64 { return 2 * float64(c.right) / float64(c.gold+c.found) }

// mostFlagged is the part of clean documents that may be flagged.
const mostFlagged = 0.01

func TestTune(t *testing.T) {
	tg := load(t)
	docs, cov := samples(t, tg, *tunePart)
	var best figures
	var chosen [3]Tuning
	labels := [3]pii.Label{pii.PersonName, pii.Location, pii.Organization}
	for names := range namesAlone {
		for _, place := range quasiAlone {
			for _, org := range quasiAlone {
				*tg.tuning[labels[0]] = names
				for i, q := range [...]Bounds{place, org} {
					*tg.tuning[labels[1+i]] = Tuning{Alone: q, Small: q, Beside: Bounds{0.5, 0.4}}
				}
				f := measure(tg, docs, cov)
				if f.flagged > mostFlagged || f.worth() <= best.worth() {
					continue
				}
				best = f
				for i, l := range labels {
					chosen[i] = *tg.tuning[l]
				}
				t.Logf("persons %.4f, all %.4f, persons everywhere %.4f, flagged %.4f: persons %v, places alone %v, organizations alone %v", f.person, f.all, f.everywhere, f.flagged, names, place, org)
			}
		}
	}
	if best.person == 0 {
		t.Fatal("nothing keeps to what may be flagged")
	}
	for i, l := range labels {
		*tg.tuning[l] = chosen[i]
	}
	calibrate(t, tg, docs)
	b, err := json.Marshal(tg.tuning, jsontext.WithIndent(" "), json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("weights/tuning.json", append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// namesAlone yields what is tried for names of persons.
func namesAlone(yield func(Tuning) bool) {
	for _, alone := range [...]float64{0.95, 0.97, 0.98, 0.985, 0.99, 0.993, 0.995} {
		for _, small := range [...]float64{0.98, 0.99, 0.995, 0.998, 0.999} {
			for _, beside := range [...]float64{0.3, 0.4, 0.5} {
				if small >= alone && !yield(Tuning{Alone: Bounds{alone, 0.3}, Small: Bounds{small, 0.3}, Beside: Bounds{0.5, beside}}) {
					return
				}
			}
		}
	}
}

// quasiAlone is what is tried for places, and for organizations.
var quasiAlone = [...]Bounds{{0.9, 0.8}, {0.98, 0.9}, {0.99, 0.9}, {0.995, 0.95}, {0.998, 0.97}, {0.999, 0.98}, {never, never}}

// never is above every probability.
const never = 2

// fewest is how many findings a label needs to be calibrated by itself.
const fewest = 60

// calibrate fits how sure findings are, for each label that has enough.
func calibrate(t *testing.T, tg *Tagger, docs []sample) {
	t.Helper()
	by := map[pii.Label][]point{}
	for _, s := range docs {
		for _, c := range s.all {
			if tg.tuning.reports(c, true) {
				p := point{1, odds(c.prob), odds(c.inside), s.right(c.Span)}
				by[c.Label] = append(by[c.Label], p)
				by[anyLabel] = append(by[anyLabel], p)
			}
		}
	}
	for l, points := range by {
		if len(points) < fewest {
			continue
		}
		if tg.tuning[l] == nil {
			v := *tg.tuning[anyLabel]
			tg.tuning[l] = &v
		}
		tg.tuning[l].Confidence = fit(points)
	}
}

type point struct {
	one, label, inside float64
	right              bool
}

// fit is logistic regression with a little weight on the prior that a probability
// is what it says, by gradient descent.
func fit(points []point) [3]float64 {
	const prior, rate, steps = 2.0, 0.5, 4000
	start := [3]float64{0, 1, 0}
	w := start
	for range steps {
		var g [3]float64
		for _, p := range points {
			x := [3]float64{p.one, p.label, p.inside}
			e := 1 / (1 + math.Exp(-(w[0] + w[1]*x[1] + w[2]*x[2])))
			if p.right {
				e--
			}
			for i := range g {
				g[i] += e * x[i]
			}
		}
		for i := range w {
			w[i] -= rate / float64(len(points)) / 8 * (g[i] + prior*(w[i]-start[i]))
		}
	}
	for i := range w {
		w[i] = math.Round(w[i]*1000) / 1000
	}
	return w
}

// TestReport prints how far the confidence is from the part that is right.
func TestReport(t *testing.T) {
	tg := load(t)
	docs, _ := samples(t, tg, *reportPart)
	type bin struct{ n, right, sum float64 }
	bins := map[pii.Label]*[10]bin{}
	for _, s := range docs {
		somebody := slices.ContainsFunc(s.ruled, func(sp pii.Span) bool { return somebodys(sp.Label) }) || slices.ContainsFunc(s.all, tg.names)
		for _, sp := range tg.report(nil, s.all, somebody) {
			for _, l := range [...]pii.Label{sp.Label, anyLabel} {
				if bins[l] == nil {
					bins[l] = new([10]bin)
				}
				b := &bins[l][min(9, int(sp.Score*10))]
				b.n, b.sum = b.n+1, b.sum+sp.Score
				if s.right(sp) {
					b.right++
				}
			}
		}
	}
	labels := make([]pii.Label, 0, len(bins))
	for l := range bins {
		labels = append(labels, l)
	}
	slices.SortFunc(labels, func(a, b pii.Label) int { return cmp.Compare(a, b) })
	for _, l := range labels {
		n, off := 0.0, 0.0
		for _, b := range bins[l] {
			n, off = n+b.n, off+math.Abs(b.right-b.sum)
		}
		fmt.Printf("%s: %.0f findings, ECE %.3f\n", l, n, off/n)
	}
}
