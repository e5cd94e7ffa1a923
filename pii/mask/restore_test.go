package mask_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"weir/pii"
	"weir/pii/mask"
)

// fixed is a book with known tokens, so that tests can spell mangled ones.
func fixed() *mask.Book {
	return mask.NewBook(testKey, []mask.Entry{
		{Token: "PERSON_Q7K2M", Value: "Jane Doe", Label: pii.PersonName, Style: mask.StylePlaceholder},
		{Token: "PERSON_Q7K2MAB", Value: "JANE DOE", Label: pii.PersonName, Style: mask.StylePlaceholder},
		{Token: "PERSON_A2BCD", Value: `Ana "Nita" Prado`, Label: pii.PersonName, Style: mask.StylePlaceholder},
		{Token: "CARD_B3BCD", Value: "4242 4242 4242 4242", Label: pii.PaymentCard, Style: mask.StylePlaceholder},
		{Token: "CARDCODE_C4BCD", Value: "123", Label: pii.CardSecurityCode, Style: mask.StylePlaceholder},
		{Token: "DATE_D5BCD", Value: "3 May 2024", Label: pii.PersonalDate, Style: mask.StylePlaceholder},
		{Token: "PHONE_E6BCD", Value: "PERSON_Q7K2M", Label: pii.PhoneNumber, Style: mask.StylePlaceholder},
		{Token: "Nora Vance", Value: "Mia Stone", Label: pii.PersonName, Style: mask.StyleSurrogate},
		{Token: "Nora", Value: "Mia", Label: pii.PersonName, Style: mask.StyleSurrogate},
		{Token: "user_4711-x", Value: "svc-ledger", Label: pii.Username, Style: mask.StyleSurrogate},
	})
}

func TestRestore(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"as minted", "Hi PERSON_Q7K2M!", "Hi Jane Doe!"},
		{"longest first", "PERSON_Q7K2MAB and PERSON_Q7K2M", "JANE DOE and Jane Doe"},
		{"value that looks like a token is not read again", "call PHONE_E6BCD", "call PERSON_Q7K2M"},
		{"other case", "person_q7k2m, Person_Q7k2m", "Jane Doe, Jane Doe"},
		{"space", "PERSON Q7K2M", "Jane Doe"},
		{"hyphen", "PERSON-Q7K2M", "Jane Doe"},
		{"non-breaking hyphen", "PERSON\u2011Q7K2M", "Jane Doe"},
		{"markdown backslash", `PERSON\_Q7K2M`, "Jane Doe"},
		{"spaces around the underscore", "PERSON _ Q7K2M", "Jane Doe"},
		{"no separator", "PersonQ7K2M", "Jane Doe"},
		{"zero width beside the underscore", "PERSON\u200b_\u200bQ7K2M", "Jane Doe"},
		{"zero width within", "PER\u200bSON_Q7\u2060K2M", "Jane Doe"},
		{"plural", "both PERSON_Q7K2Ms", "both Jane Does"},
		{"plural in lower case", "both person_q7k2ms", "both Jane Does"},
		{"genitive", "PERSON_Q7K2M's and PERSON_Q7K2M’s", "Jane Doe's and Jane Doe’s"},
		{"ending of another language", "PERSON_Q7K2Mem, PERSON_Q7K2Mów", "Jane Doeem, Jane Doeów"},
		{"emphasis stays", "**PERSON_Q7K2M** _PERSON_Q7K2M_ `PERSON_Q7K2M`", "**Jane Doe** _Jane Doe_ `Jane Doe`"},
		{"in an identifier", "total_PERSON_Q7K2M_eur", "total_Jane Doe_eur"},
		{"in camel case", "userPERSON_Q7K2M", "userJane Doe"},
		{"beside a script without spaces", "联系PERSON_Q7K2M先生", "联系Jane Doe先生"},
		{"mangled beside a script without spaces", "联系person_q7k2m先生", "联系Jane Doe先生"},
		{"a stem that begins another", "CARD_B3BCD CARDCODE_C4BCD", "4242 4242 4242 4242 123"},
		{"in brackets", "[PERSON_Q7K2M](mailto:x)", "[Jane Doe](mailto:x)"},
		{"twice without space between", "PERSON_Q7K2M,PERSON_A2BCD", `Jane Doe,Ana "Nita" Prado`},
		{"at the very end", "PERSON_Q7K2M", "Jane Doe"},
		{"surrogate", "Ask Nora Vance.", "Ask Mia Stone."},
		{"surrogate, other case", "NORA VANCE", "Mia Stone"},
		{"shorter surrogate", "Nora said", "Mia said"},
		{"surrogate in code", "id=user_4711-x;", "id=svc-ledger;"},

		{"prose", "the person alone, a date 2024, card code", "the person alone, a date 2024, card code"},
		{"code without its stem", "Q7K2M", "Q7K2M"},
		{"other stem", "EMAIL_Q7K2M", "EMAIL_Q7K2M"},
		{"longer code", "PERSON_Q7K2MZ PERSON_Q7K2M7 PERSON_Q7K2MABC", "PERSON_Q7K2MZ PERSON_Q7K2M7 PERSON_Q7K2MABC"},
		{"shorter code", "PERSON_Q7K2", "PERSON_Q7K2"},
		{"long stem that ends in a short one", "BIRTHDATE_D5BCD", "BIRTHDATE_D5BCD"},
		{"word that ends in a stem", "mandate d5bcd", "mandate d5bcd"},
		{"ending too long", "PERSON_Q7K2Mishness", "PERSON_Q7K2Mishness"},
		{"too far apart", "PERSON _ _ _ _ Q7K2M", "PERSON _ _ _ _ Q7K2M"},
		{"on two lines", "PERSON\nQ7K2M", "PERSON\nQ7K2M"},
		{"surrogate within a word", "Noras Norah éNora", "Noras Norah éNora"},
		{"unknown token", "PERSON_ZZ7ZZ", "PERSON_ZZ7ZZ"},
	}
	r := fixed().Restorer()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _ := r.Restore(tt.in)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			streamed(t, r, mask.Plain, tt.in, tt.want)
		})
	}
}

// streamed checks that pieces of each small size give the same.
func streamed(t *testing.T, r *mask.Restorer, kind mask.Kind, in, want string) {
	t.Helper()
	for size := 1; size <= 7; size++ {
		s := r.Stream(kind)
		var b strings.Builder
		for i := 0; i < len(in); i += size {
			b.WriteString(s.Write(in[i:min(i+size, len(in))]))
		}
		b.WriteString(s.Flush())
		if b.String() != want {
			t.Errorf("pieces of %d bytes give %q, want %q", size, b.String(), want)
		}
	}
}

func TestRestoreJSON(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"value with quotes", `{"guest":"PERSON_A2BCD"}`, `{"guest":"Ana \"Nita\" Prado"}`},
		{"member name", `{"PERSON_A2BCD":1}`, `{"Ana \"Nita\" Prado":1}`},
		{"escaped underscore", `["PERSON\u005fQ7K2M"]`, `["Jane Doe"]`},
		{"escaped first letter", `["\u0050ERSON_Q7K2M"]`, `["Jane Doe"]`},
		{"escaped lower-case letter", `["\u0070erson_q7k2m"]`, `["Jane Doe"]`},
		{"escaped zero width", `["PERSON\u200b_Q7K2M"]`, `["Jane Doe"]`},
		{"markdown backslash, escaped", `["PERSON\\_Q7K2M"]`, `["Jane Doe"]`},
		{"markdown backslash, not escaped", `["PERSON\_Q7K2M"]`, `["Jane Doe"]`},
		{"behind an escape that ends in a letter", `["\nPERSON_Q7K2M\tperson_q7k2m\n"]`, `["\nJane Doe\tJane Doe\n"]`},
		{"behind an escaped letter", `["\u0041PERSON_Q7K2M"]`, `["\u0041PERSON_Q7K2M"]`},
		{"not across strings", `["PERSON_","Q7K2M"]`, `["PERSON_","Q7K2M"]`},
		{"bare, as a number was", `{"n":CARDCODE_C4BCD}`, `{"n":123}`},
		{"a quotation mark that is escaped", `["\"PERSON_A2BCD\""]`, `["\"Ana \"Nita\" Prado\""]`},
		{"backslashes before the end", `["\\","PERSON_Q7K2M"]`, `["\\","Jane Doe"]`},
		{"surrogate", `{"to":"Nora Vance"}`, `{"to":"Mia Stone"}`},
		{"surrogate with escapes", `{"to":"Nora\u0020Vance"}`, `{"to":"Mia Stone"}`},
		{"other escapes stay as written", `["\u00fc\/ PERSON_Q7K2M"]`, `["\u00fc\/ Jane Doe"]`},
	}
	r := fixed().Restorer()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _ := r.RestoreJSON(tt.in)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			streamed(t, r, mask.JSON, tt.in, tt.want)
			if jsontext.Value(tt.in).IsValid() && !jsontext.Value(got).IsValid() {
				t.Errorf("no longer JSON: %s", got)
			}
		})
	}
}
