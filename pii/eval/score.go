package eval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/pii"
)

// Scanner finds the private values of a text, sorted and without overlaps.
type Scanner interface {
	Scan(ctx context.Context, t pii.Text) ([]pii.Span, error)
}

// Options may be left zero.
type Options struct {
	// Coarse folds all labels to the nine published categories.
	Coarse bool
	// Labels restricts scoring to these.
	Labels []pii.Label
}

// tierOf groups labels by what their loss costs: 1 credentials, cards,
// government and health numbers, 2 what names or reaches a person, 3 the rest.
func tierOf(l pii.Label) int {
	switch l {
	case pii.Password, pii.APIKey, pii.AuthToken, pii.PrivateKey, pii.ConnectionString, pii.PaymentCard, pii.CardSecurityCode,
		pii.SocialSecurityNumber, pii.NationalID, pii.TaxID, pii.PassportNumber, pii.DriverLicense, pii.IBAN, pii.BankAccount,
		pii.CryptoWallet, pii.MedicalRecordNumber, pii.HealthInsuranceID:
		return 1
	case pii.PersonName, pii.EmailAddress, pii.PhoneNumber, pii.PostalAddress, pii.DateOfBirth, pii.Username, pii.AccountID,
		pii.IPAddress, pii.DeviceID, pii.PersonalURL, pii.VehicleID:
		return 2
	}
	return 3
}

// Run has all documents scanned and scored.
func Run(ctx context.Context, s Scanner, docs []Doc, cov Coverage, opts Options) (*Report, error) {
	r := newReport(opts)
	var took []time.Duration
	for i := range docs {
		d := &docs[i]
		begin := time.Now()
		found, err := s.Scan(ctx, pii.Text{Value: d.Text})
		if err != nil {
			return nil, fmt.Errorf("scan document %s: %w", d.ID, err)
		}
		took = append(took, time.Since(begin))
		r.add(d, found, cov, opts)
	}
	r.time(docs, took)
	return r, nil
}

// add scores one document.
func (r *Report) add(d *Doc, found []pii.Span, cov Coverage, opts Options) {
	name := func(l pii.Label) string {
		if opts.Coarse {
			info, _ := pii.Lookup(l)
			return info.Coarse
		}
		return string(l)
	}
	counts := func(l pii.Label) bool {
		return l != "" && cov.covers(d.Source, l) && (len(opts.Labels) == 0 || slices.Contains(opts.Labels, l))
	}
	clean := len(d.Spans) == 0
	one := Counts{Documents: 1}
	taken := make([]bool, len(found))
	for _, g := range d.Spans {
		if !counts(g.Label) {
			continue
		}
		hit := Counts{Gold: 1, GoldBytes: g.End - g.Start}
		hit.LeakBytes = hit.GoldBytes - covered(found, g.Start, g.End)
		if hit.LeakBytes == 0 {
			hit.Whole = 1
		}
		i := slices.IndexFunc(found, func(p pii.Span) bool { return p.Start == g.Start && p.End == g.End && name(p.Label) == name(g.Label) })
		if i >= 0 {
			hit.Right, hit.Found = 1, 1
			taken[i] = true
		}
		one.join(hit)
		r.label(name(g.Label)).join(hit)
		r.tier(tierOf(g.Label)).join(hit)
	}
	for i, p := range found {
		if taken[i] || !counts(p.Label) || outside(d.Spans, p) {
			continue
		}
		one.join(Counts{Found: 1})
		r.label(name(p.Label)).join(Counts{Found: 1})
		if info, _ := pii.Lookup(p.Label); clean && info.Direct {
			one.FlaggedDirect = 1
		}
	}
	if clean {
		one.Clean = 1
		if one.Found > 0 {
			one.Flagged = 1
		}
	}
	one.Recurring, one.Consistent = recurring(d, found, counts)
	r.Total.join(one)
	r.source(d.Source).join(one)
}

// covered counts the bytes of [start,end) that lie in findings.
func covered(found []pii.Span, start, end int) int {
	n := 0
	for _, p := range found {
		n += max(0, min(p.End, end)-max(p.Start, start))
	}
	return n
}

// outside reports a finding on something that is marked as outside the labels.
func outside(gold []Span, p pii.Span) bool {
	return slices.ContainsFunc(gold, func(g Span) bool { return g.Label == "" && p.Start < g.End && g.Start < p.End })
}

// recurring counts the values that occur more than once, and those of which
// every occurrence is covered.
func recurring(d *Doc, found []pii.Span, counts func(pii.Label) bool) (all, whole int) {
	type value struct{ n, covered int }
	values := map[string]*value{}
	for _, g := range d.Spans {
		if !counts(g.Label) {
			continue
		}
		key := string(g.Label) + "\x00" + strings.ToLower(d.Text[g.Start:g.End])
		v := values[key]
		if v == nil {
			v = &value{}
			values[key] = v
		}
		v.n++
		if covered(found, g.Start, g.End) == g.End-g.Start {
			v.covered++
		}
	}
	for _, v := range values {
		if v.n > 1 {
			all++
			if v.covered == v.n {
				whole++
			}
		}
	}
	return all, whole
}
