package tagger

import "weir/pii"

// never is above every score.
const never = 2

// least is the score below which a finding of a label is not reported. Alone it
// takes more than in a text in which somebody is named for sure: a text is
// wrongly held to be private by its surest finding, and what else it holds costs
// nothing more.
//
// The numbers were chosen on documents that training did not see, so that one
// clean document in a hundred is flagged; the card has the figures.
func least(l pii.Label, somebody bool) float64 {
	switch l {
	case pii.EmailAddress, pii.IBAN, pii.PaymentCard, pii.IPAddress, pii.CryptoWallet:
		return never // their form says more than their surroundings
	case pii.PrivateKey, pii.ConnectionString, pii.APIKey, pii.AuthToken:
		return 0.8 // in a table of hexadecimal numbers, somebody changes nothing
	}
	if somebody {
		return 0.45
	}
	switch l {
	case pii.Location, pii.Organization, pii.Age, pii.PersonalDate:
		return 0.98
	case pii.PersonName:
		return 0.93
	}
	return 0.9
}
