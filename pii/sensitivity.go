package pii

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Class says in a word how sensitive a conversation is.
type Class string

// The classes, least first.
const (
	// ClassNone is a conversation that is about nobody in particular.
	ClassNone Class = "none"
	// ClassPersonal is about somebody.
	ClassPersonal Class = "personal"
	// ClassSensitive would harm somebody if it were read.
	ClassSensitive Class = "sensitive"
)

// The scores from which on a conversation has a class.
const (
	personalFrom  = 0.1
	sensitiveFrom = 0.5
)

// Sensitivity is how private a conversation is as a whole.
type Sensitivity struct {
	// Score is in [0,1], to two decimals.
	Score float64
	Class Class
	// Because names the terms that gave the score, the weightiest first: labels
	// and combinations, see [Terms].
	Because []string
}

// Term is a number of the formula, and where it comes from.
type Term struct {
	// Name is what the number is of.
	Name string
	// Labels are those that it is about.
	Labels []Label
	// Weight is the term's own score, in (0,1).
	Weight float64
	// Source says where the number comes from.
	Source string
}

// Groups of labels with one weight. A label of the user's own counts as one that
// must not leave, since that is what happens to it by default.
const (
	groupSecret  = "secret"
	groupFixed   = "fixed identifier"
	groupSpecial = "special category"
	groupMoney   = "account"
	groupContact = "contact"
	groupTrace   = "trace"
	groupQuasi   = "quasi-identifier"
)

// Terms returns the numbers of [Assess]: groups of labels, then combinations.
// The order of the groups is that of NIST SP 800-122 section 3.2, which ranks by
// how directly data identifies, how harmful its field is, and how much there is;
// their sizes are our judgement, chosen so that one value of the first three
// groups alone is sensitive, and one of the others is not.
func Terms() []Term {
	return []Term{
		{groupSecret, []Label{Password, APIKey, AuthToken, PrivateKey, ConnectionString, CardSecurityCode}, 0.7, "usable by whoever reads it; judgement"},
		{groupFixed, []Label{
			SocialSecurityNumber, NationalID, TaxID, PassportNumber, DriverLicense, PaymentCard, MedicalRecordNumber, HealthInsuranceID,
		}, 0.6, "NIST SP 800-122 3.2.3: hard to revoke, opens other records; judgement"},
		{groupSpecial, []Label{HealthData, EthnicityOrNationality, BeliefOrAffiliation, SexualityOrGender, CriminalRecord}, 0.55, "GDPR articles 9 and 10; judgement"},
		{groupMoney, []Label{IBAN, BankAccount}, 0.3, "can be debited; judgement"},
		{groupContact, []Label{PersonName, DateOfBirth, EmailAddress, PhoneNumber, PostalAddress}, 0.2, "NIST SP 800-122 3.2.1: identifies directly; judgement"},
		{groupTrace, []Label{Username, CryptoWallet, IPAddress, DeviceID, PersonalURL, VehicleID, AccountID}, 0.15, "identifies with the help of a register; judgement"},
		{groupQuasi, []Label{Age, Location, Organization, PersonalDate}, 0.05, "identifies nobody alone; judgement"},

		{"somebody's special category", nil, 0.5, "GDPR article 9 beside article 4(1): the person is known; judgement"},
		{"birth date, gender, address", []Label{DateOfBirth, SexualityOrGender, PostalAddress}, 0.87, "Sweeney 2000: unique for 87 % of the US population by ZIP code (Golle 2006: 63 %)"},
		{"birth date, gender, place", []Label{DateOfBirth, SexualityOrGender, Location}, 0.53, "Sweeney 2000: unique for 53 % of the US population by place"},
		{"somebody's circumstances", nil, 0.15, "two kinds of quasi-identifier beside a direct one; judgement"},
		{"three quasi-identifiers", nil, 0.15, "of different kinds, k-anonymity's concern (Samarati and Sweeney 1998); judgement"},
		{"four quasi-identifiers", nil, 0.2, "the same; judgement"},
	}
}

// ofMore is the part of a term's weight that each further value of a label has:
// NIST SP 800-122 3.2.2 counts quantity; the size is our judgement.
const ofMore = 0.25

// Assess says how sensitive a conversation is in which so many different values
// were found of each label.
//
// With w the weight of a label's group, n values of it leave (1-w)(1-w/4)^(n-1)
// unsaid; a combination of weight w that is there leaves 1-w; the score is one
// less the product of all. So the order does not matter, nothing that is added
// lowers the score, and it stays within [0,1].
func Assess(values map[Label]int) Sensitivity {
	terms := Terms()
	var found []contribution
	for _, l := range slices.Sorted(maps.Keys(values)) {
		if n := values[l]; n > 0 {
			w := weightOf(terms, l)
			found = append(found, contribution{string(l), (1 - w) * math.Pow(1-w*ofMore, float64(n-1))})
		}
	}
	for _, t := range terms {
		if holds(t, terms, values) {
			found = append(found, contribution{t.Name, 1 - t.Weight})
		}
	}
	// By weight, so that the product does not depend on the order either.
	slices.SortFunc(found, func(a, b contribution) int { return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.name, b.name)) })
	out, left := Sensitivity{Class: ClassNone}, 1.0
	for _, c := range found {
		left *= c.left
		out.Because = append(out.Because, c.name)
	}
	out.Score = math.Round((1-left)*100) / 100
	switch {
	case out.Score >= sensitiveFrom:
		out.Class = ClassSensitive
	case out.Score >= personalFrom:
		out.Class = ClassPersonal
	}
	return out
}

// Values are the different values of each label. Letter case and the space around
// and within a value make it no other.
type Values map[Label]map[string]bool

// Add adds a value.
func (v Values) Add(l Label, value string) {
	if v[l] == nil {
		v[l] = map[string]bool{}
	}
	v[l][strings.ToLower(strings.Join(strings.Fields(value), " "))] = true
}

// Counts returns how many there are of each label.
func (v Values) Counts() map[Label]int {
	out := make(map[Label]int, len(v))
	for l, values := range v {
		out[l] = len(values)
	}
	return out
}

// Format prints how many there are and none of them.
func (v Values) Format(f fmt.State, _ rune) { fmt.Fprint(f, v.Counts()) }

// contribution is what a term leaves unsaid.
type contribution struct {
	name string
	left float64
}

func weightOf(terms []Term, l Label) float64 {
	own := 0.0
	for _, t := range terms[:groups] {
		if slices.Contains(t.Labels, l) {
			return t.Weight
		}
		if t.Name == groupFixed {
			own = t.Weight
		}
	}
	return own
}

// groups is how many of the terms are groups of labels.
const groups = 7

// holds says that a combination is there.
func holds(t Term, terms []Term, values map[Label]int) bool {
	kinds := func(group string) (n int) {
		for _, g := range terms[:groups] {
			for _, l := range g.Labels {
				if g.Name == group && values[l] > 0 {
					n++
				}
			}
		}
		return n
	}
	switch t.Name {
	case "somebody's special category":
		return kinds(groupContact) > 0 && kinds(groupSpecial) > 0
	case "somebody's circumstances":
		return kinds(groupContact)+kinds(groupTrace)+kinds(groupFixed) > 0 && kinds(groupQuasi) >= 2
	case "three quasi-identifiers":
		return kinds(groupQuasi) >= 3
	case "four quasi-identifiers":
		return kinds(groupQuasi) >= 4
	case "birth date, gender, address", "birth date, gender, place":
		return !slices.ContainsFunc(t.Labels, func(l Label) bool { return values[l] == 0 })
	}
	return false
}
