package gate

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/pii"
	"weir/policy"
)

// WholeStep stands for the step as a whole where labels are named, for policies
// that ask about a step and not about a finding.
const WholeStep = "step"

// Rewrites says that the cloud gets other text than the client wrote.
func (d *Decided) Rewrites() bool {
	for _, v := range d.verdicts {
		if v.Action == policy.Mask {
			return true
		}
	}
	return len(d.Examined.withheld)+len(d.withheldParts) > 0
}

// Count tells how many findings there are, by label and action.
func (d *Decided) Count(count func(label, action string, n int)) {
	type key struct {
		label  pii.Label
		action policy.Action
	}
	sum := map[key]int{}
	for n, f := range d.findings {
		sum[key{f.Label, d.actionOf(n)}]++
	}
	for k, n := range sum {
		count(string(k.label), string(k.action), n)
	}
}

// Masked counts what is masked, as "EMAIL_ADDRESS=2,PERSON_NAME=1". Empty if
// nothing is.
func (d *Decided) Masked() string {
	return d.tally(func(v Verdict) (string, bool) { return string(v.Label), v.Action == policy.Mask })
}

// Summary counts all findings by label and action, as
// "EMAIL_ADDRESS:mask=2,AGE:allow=1".
func (d *Decided) Summary() string {
	return d.tally(func(v Verdict) (string, bool) { return string(v.Label) + ":" + string(v.Action), true })
}

func (d *Decided) tally(name func(Verdict) (string, bool)) string {
	counts := map[string]int{}
	var order []string
	for _, v := range d.verdicts {
		n, ok := name(v)
		if !ok {
			continue
		}
		if counts[n] == 0 {
			order = append(order, n)
		}
		counts[n]++
	}
	var b strings.Builder
	for i, n := range order {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(n + "=" + strconv.Itoa(counts[n]))
	}
	return b.String()
}

// Excerpt is a finding in clear with some text around it, for the user's own
// screen and nothing else.
type Excerpt struct{ Label, Before, Text, After string }

// excerptAround is how much text around a finding is shown, in bytes.
const excerptAround = 40

// maxExcerpts bounds what one question shows.
const maxExcerpts = 20

// Excerpts returns the findings with the given action in clear.
func (d *Decided) Excerpts(a policy.Action) []Excerpt {
	var out []Excerpt
	for _, v := range d.verdicts {
		if v.Action != a || len(out) == maxExcerpts {
			continue
		}
		text := d.chat.Leaves()[v.Leaf].Value
		from, to := max(0, v.Start-excerptAround), min(len(text), v.End+excerptAround)
		for from < v.Start && !utf8.RuneStart(text[from]) {
			from++
		}
		for to > v.End && to < len(text) && !utf8.RuneStart(text[to]) {
			to--
		}
		out = append(out, Excerpt{string(v.Label), text[from:v.Start], text[v.Start:v.End], text[v.End:to]})
	}
	return out
}
