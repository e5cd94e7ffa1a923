package rules_test

import (
	"testing"

	"weir/pii"
)

// What was once taken wrongly, as a user would write it.
func TestFaultsOfOld(t *testing.T) {
	t.Parallel()
	set := shipped(t)
	scanner := pii.NewScanner(pii.ScannerOptions{}, pii.Part{Name: "rules", Version: set.Version(), Classifier: set})
	for _, row := range []struct {
		name, key, text string
		label           pii.Label // empty if nothing must be found
		value           string
	}{
		{"a postcode is not the number of a house", "", "Ci vediamo in Via Garibaldi 23, 10121 Torino.", pii.PostalAddress, "Via Garibaldi 23, 10121 Torino"},
		{"nor in French", "", "J'habite 10 avenue Victor Hugo, 69002 Lyon.", pii.PostalAddress, "10 avenue Victor Hugo, 69002 Lyon"},
		{"a number with a letter", "", "Rendez-vous 12 bis rue de Rivoli, 75001 Paris", pii.PostalAddress, "12 bis rue de Rivoli, 75001 Paris"},
		{"the number of an insurance", "", "NASS: 91 03577050 06.", pii.HealthInsuranceID, "91 03577050 06"},
		{"social security in Spain", "", "seguridad social 28/12345678/40", pii.SocialSecurityNumber, "28/12345678/40"},
		{"the dot of a legal form is its own", "", "She left Technotronic Inc. Then she moved.", pii.Organization, "Technotronic Inc."},
		{"at the end", "", "Notify: Umber Lumen S.A.", pii.Organization, "Umber Lumen S.A."},
		{"a form without a dot", "", "He joined Umber Lumen GmbH. Then he moved.", pii.Organization, "Umber Lumen GmbH"},
		{"a word in capitals is no legal form", "", "PAG NAKITA MONG MAY LUMALANDI SA CRUSH MO", "", ""},
		{"a customer number beside a tax office", "", "Tax office wrote to customer no. 867970082.", pii.AccountID, "867970082"},
		{"an employer number", "", "our EIN is 867970082", pii.TaxID, "867970082"},
		{"a Korean registration number is no phone", "", "call 850101-1234567", pii.NationalID, "850101-1234567"},
		{"a run of a build is no national number", "", "CI run 18274650123 took 7m32s", "", ""},
		{"an illness is no title", "", "MS Swimathon drawing to a close", "", ""},
		{"a ULID names a session", "session", "01HZX3K8Q4V5T6W7Y8Z9A0B1C2", "", ""},
		{"with a word before it", "session_id", "sess_01HZX3K8Q4V5T6W7Y8Z9A0B1C2", "", ""},
		{"a UUID too", "session", "f47ac10b-58cc-4372-a567-0e02b2c3d479", "", ""},
		{"a secret opens one", "session_token", "8f14e45fceea167a5a36dedd4bea25438f14e45f", pii.AuthToken, "8f14e45fceea167a5a36dedd4bea25438f14e45f"},
		{"the next parameter is none of it", "", `get("https://x.example/js?key=dhd0lCQVFRZ0ViVnpmUGWxhQW9KQWwr&bug=true")`, pii.APIKey, "dhd0lCQVFRZ0ViVnpmUGWxhQW9KQWwr"},
		{"nor the next field", "", "PW:Prl23Db#x,user:kim", pii.Password, "Prl23Db#x"},
		{"nor the mark of HTML", "", `<b>password: g1re0g2Pa5x&lt;/b&gt;`, pii.Password, "g1re0g2Pa5x"},
		{"quoted in HTML", "", `alert(&quot;password: &quot;g1re0g2Pa5x&quot;)`, pii.Password, "g1re0g2Pa5x"},
		{"an account before it", "", "ID/PW: kim/iPp0@GRq", pii.Password, "iPp0@GRq"},
		{"an option of a command", "", "login --user kim --password dipPr127Gg", pii.Password, "dipPr127Gg"},
		{"the secret of an OAuth client", "client_secret", "p8e-ibndcvsmAp9ZgPBZ606FSlYIZVlsZ-g5", pii.AuthToken, "p8e-ibndcvsmAp9ZgPBZ606FSlYIZVlsZ-g5"},
		{"an argument", "", `easy_setopt(curl, CURLOPT_PASSWORD, "KiASRCRiGF_x1");`, pii.Password, "KiASRCRiGF_x1"},
		{"the second of a definition", "", `define( 'PASSWORD' , '2Arh5dA1Sn0ywiVY' );`, pii.Password, "2Arh5dA1Sn0ywiVY"},
		{"a list of names", "", `fields = ["password", "username", "first_name"]`, "", ""},
		{"a key of a manual", "", "npm_NFX6dCpmIWvQ7megnY0AtQwkoKzWcEXAMPLE", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			spans, err := scanner.Scan(t.Context(), pii.Text{Key: row.key, Value: row.text})
			if err != nil {
				t.Fatal(err)
			}
			for _, sp := range spans {
				if sp.Label == row.label && row.text[sp.Start:sp.End] == row.value {
					return
				}
			}
			if row.label != "" || len(spans) > 0 {
				for _, sp := range spans {
					t.Errorf("found %s %q by %s", sp.Label, row.text[sp.Start:sp.End], sp.Rule)
				}
				t.Errorf("want %s %q", row.label, row.value)
			}
		})
	}
}
