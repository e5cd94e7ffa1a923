package eval

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// Counts are the sums from which all figures follow.
type Counts struct {
	Documents     int `json:"documents,omitzero"`
	Gold          int `json:"gold"`
	Found         int `json:"found"`
	Right         int `json:"right"`
	Whole         int `json:"whole"` // gold spans of which every byte is covered
	GoldBytes     int `json:"gold_bytes"`
	LeakBytes     int `json:"leak_bytes"`
	Clean         int `json:"clean,omitzero"`          // documents without anything private
	Flagged       int `json:"flagged,omitzero"`        // of those, with a finding
	FlaggedDirect int `json:"flagged_direct,omitzero"` // of those, with a finding of a direct label
	Recurring     int `json:"recurring,omitzero"`      // values that occur more than once
	Consistent    int `json:"consistent,omitzero"`     // of those, covered everywhere
}

func (c *Counts) join(d Counts) {
	c.Documents += d.Documents
	c.Gold += d.Gold
	c.Found += d.Found
	c.Right += d.Right
	c.Whole += d.Whole
	c.GoldBytes += d.GoldBytes
	c.LeakBytes += d.LeakBytes
	c.Clean += d.Clean
	c.Flagged += d.Flagged
	c.FlaggedDirect += d.FlaggedDirect
	c.Recurring += d.Recurring
	c.Consistent += d.Consistent
}

// Precision is the part of the findings that is exactly right.
func (c Counts) Precision() float64 { return ratio(c.Right, c.Found) }

// Recall is the part of the gold spans that is found exactly.
func (c Counts) Recall() float64 { return ratio(c.Right, c.Gold) }

// F1 is the harmonic mean of both.
func (c Counts) F1() float64 { return ratio(2*c.Right, c.Gold+c.Found) }

// Leak is the part of the private bytes that no finding covers.
func (c Counts) Leak() float64 { return ratio(c.LeakBytes, c.GoldBytes) }

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// Report is what a run came to.
type Report struct {
	Coarse  bool               `json:"coarse,omitzero"`
	Total   Counts             `json:"total"`
	Sources map[string]*Counts `json:"sources"`
	Labels  map[string]*Counts `json:"labels"`
	Tiers   map[string]*Counts `json:"tiers"`
	Speed   Speed              `json:"speed"`
}

// Speed is how fast the documents were scanned, one after another.
type Speed struct {
	KBPerSecond float64 `json:"kb_per_second"`
	// MSPer100Words counts words as runs without blanks; text of scripts that
	// write none makes it look slow.
	MSPer100Words float64 `json:"ms_per_100_words"`
	// P50 and P99 are the times of a document in milliseconds per 1,000 bytes,
	// over the documents of at least 500 bytes.
	P50 float64 `json:"p50_ms_per_kb"`
	P99 float64 `json:"p99_ms_per_kb"`
}

func newReport(opts Options) *Report {
	return &Report{Coarse: opts.Coarse, Sources: map[string]*Counts{}, Labels: map[string]*Counts{}, Tiers: map[string]*Counts{}}
}

func entry(m map[string]*Counts, key string) *Counts {
	if m[key] == nil {
		m[key] = &Counts{}
	}
	return m[key]
}

func (r *Report) label(l string) *Counts  { return entry(r.Labels, l) }
func (r *Report) source(s string) *Counts { return entry(r.Sources, s) }
func (r *Report) tier(t int) *Counts      { return entry(r.Tiers, "tier "+strconv.Itoa(t)) }

func (r *Report) time(docs []Doc, took []time.Duration) {
	var total time.Duration
	bytes, words := 0, 0
	var perKB []float64
	for i, d := range docs {
		total += took[i]
		bytes += len(d.Text)
		blank := true
		for _, c := range []byte(d.Text) {
			if space := c <= ' '; space != blank {
				blank = space
				if !space {
					words++
				}
			}
		}
		if len(d.Text) >= 500 {
			perKB = append(perKB, took[i].Seconds()*1e6/float64(len(d.Text)))
		}
	}
	if total > 0 {
		r.Speed.KBPerSecond = float64(bytes) / 1000 / total.Seconds()
	}
	if words > 0 {
		r.Speed.MSPer100Words = total.Seconds() * 1e5 / float64(words)
	}
	if slices.Sort(perKB); len(perKB) > 0 {
		r.Speed.P50, r.Speed.P99 = perKB[len(perKB)/2], perKB[len(perKB)*99/100]
	}
}

// Print writes the report as tables.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	head := "docs\tgold\tP\tR\tF1\tleak\tclean\tflagged\tdirect\tconsistent\t"
	for _, part := range []struct {
		name   string
		rows   map[string]*Counts
		recall bool
	}{{"source", r.Sources, false}, {"label", r.Labels, false}, {"tier", r.Tiers, true}, {"", map[string]*Counts{"all": &r.Total}, false}} {
		fmt.Fprintf(t, "%s\t%s\n", part.name, head)
		for _, name := range slices.Sorted(maps.Keys(part.rows)) {
			c := part.rows[name]
			precision, f1 := fmt.Sprintf("%.3f", c.Precision()), fmt.Sprintf("%.3f", c.F1())
			if part.recall {
				precision, f1 = "-", "-" // findings belong to no tier
			}
			fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%.3f\t%s\t%.3f\t%d\t%s\t%s\t%s\t\n", name, c.Documents, c.Gold, precision, c.Recall(), f1, c.Leak(),
				c.Clean, percent(c.Flagged, c.Clean), percent(c.FlaggedDirect, c.Clean), percent(c.Consistent, c.Recurring))
		}
		fmt.Fprintln(t, "\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%.0f KB/s, %.3f ms per 100 words; per KB of text: p50 %.2f ms, p99 %.2f ms\n",
		r.Speed.KBPerSecond, r.Speed.MSPer100Words, r.Speed.P50, r.Speed.P99)
	return err
}

func percent(a, b int) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*ratio(a, b))
}

// Change is how a row differs between two reports.
type Change struct {
	Kind string `json:"kind"` // source, label, tier or total
	Name string `json:"name"`
	Old  Counts `json:"old"`
	New  Counts `json:"new"`
}

// Compare returns the rows that differ, the largest change of F1 first.
func Compare(before, after *Report) []Change {
	var out []Change
	for _, part := range []struct {
		kind   string
		before map[string]*Counts
		after  map[string]*Counts
	}{
		{"total", map[string]*Counts{"all": &before.Total}, map[string]*Counts{"all": &after.Total}},
		{"source", before.Sources, after.Sources},
		{"label", before.Labels, after.Labels},
		{"tier", before.Tiers, after.Tiers},
	} {
		names := maps.Clone(part.before)
		if names == nil {
			names = map[string]*Counts{}
		}
		maps.Copy(names, part.after)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			ch := Change{Kind: part.kind, Name: name}
			if c := part.before[name]; c != nil {
				ch.Old = *c
			}
			if c := part.after[name]; c != nil {
				ch.New = *c
			}
			if ch.Old != ch.New {
				out = append(out, ch)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(b.size(), a.size()) })
	return out
}

func (c Change) size() float64 {
	d := c.New.F1() - c.Old.F1()
	return max(d, -d)
}

// PrintChanges writes changes as a table.
func PrintChanges(w io.Writer, changes []Change) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "\t\tF1\t\tleak\t\tclean flagged")
	for _, c := range changes {
		fmt.Fprintf(t, "%s\t%s\t%.3f -> %.3f\t%+.3f\t%.3f -> %.3f\t%+.3f\t%s -> %s\n", c.Kind, c.Name,
			c.Old.F1(), c.New.F1(), c.New.F1()-c.Old.F1(), c.Old.Leak(), c.New.Leak(), c.New.Leak()-c.Old.Leak(),
			percent(c.Old.Flagged, c.Old.Clean), percent(c.New.Flagged, c.New.Clean))
	}
	return t.Flush()
}
