package mask_test

import (
	"strings"
	"testing"

	"weir/pii"
	"weir/pii/mask"
)

func TestShow(t *testing.T) {
	b := mask.NewBook(testKey, nil)
	for _, v := range []struct {
		l pii.Label
		v string
	}{
		{pii.PersonName, "Jane Doe"},
		{pii.PersonName, "JANE DOE"},
		{pii.PersonName, "Doe"},
		{pii.PersonName, "Dr. J. van der Heuvel-Smith"},
		{pii.PersonName, "sophia quintero"},
		{pii.PersonName, "欧阳文静"},
		{pii.EmailAddress, "mira.koval@lumen.example"},
		{pii.PhoneNumber, "+1 415 555 0137"},
		{pii.PhoneNumber, "+14155550137"},
		{pii.PhoneNumber, "(415) 555-0132"},
		{pii.PhoneNumber, "+44 20 7946 0958"},
		{pii.PhoneNumber, "06 39 98 12 34"},
		{pii.IBAN, "DE89 3704 0044 0532 0130 00"},
		{pii.PaymentCard, "4242 4242 4242 4242"},
		{pii.SocialSecurityNumber, "078-05-1120"},
		{pii.IPAddress, "203.0.113.7"},
		{pii.IPAddress, "2001:db8::1"},
		{pii.PersonalURL, "https://www.linkedin.example/in/mira-koval?x=1"},
		{pii.DateOfBirth, "14 Feb 1979"},
		{pii.PersonalDate, "3 May 2024"},
		{pii.PersonalDate, "2024-05-03"},
		{pii.PostalAddress, "12 Mill Lane, Leeds LS6 2AB"},
		{pii.Organization, "Onyx Cobalt Clinic"},
		{pii.Username, "@kvasir_ops"},
		{pii.AccountID, "CUST-004821"},
		{pii.Age, "83 years old"},
		{pii.Age, "83"},
		{pii.HealthData, "type 2 diabetes"},
		{pii.CardSecurityCode, "123"},
		{pii.Location, "Oslo"},
	} {
		e, err := b.Issue(v.v, v.l, mask.StyleSurrogate, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(v.v, " -> ", e.Token)
		got, _ := b.Restorer().Restore("x " + e.Token + ".")
		if got != "x "+v.v+"." {
			t.Errorf("restored %q", got)
		}
	}
	_ = strings.ToUpper
}
