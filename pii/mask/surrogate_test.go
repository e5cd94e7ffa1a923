package mask_test

import (
	"errors"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/pii"
	"weir/pii/mask"
)

func TestSurrogateShape(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		label pii.Label
		value string
		want  string // a pattern
	}{
		{"two words", pii.PersonName, "Jane Doe", `[A-Z][a-z]+ [A-Z][a-z]+`},
		{"capitals", pii.PersonName, "JANE DOE", `[A-Z]+ [A-Z]+`},
		{"lower case", pii.PersonName, "sophia quintero", `[a-z]+ [a-z]+`},
		{"title, initial, particle, hyphen", pii.PersonName, "Dr. J. van der Heuvel-Smith", `Dr\. [A-Z]\. van der [A-Z][a-z]+-[A-Z][a-z]+`},
		{"another script", pii.PersonName, "欧阳文静", `[A-Z][a-z]+`},
		{"an escape in a name leaves no part behind", pii.PersonName, "Jane%20Doe", `[A-Z][a-z]+%[1-9][0-9][A-Z][a-z]{2}`},
		{"e-mail", pii.EmailAddress, "mira.koval@lumen.example", `[a-z]+\.[a-z]+[0-9]{2}@[a-z]+\.example`},
		{"North American phone", pii.PhoneNumber, "+1 (415) 555-0137", `\+1 \([2-9]\d\d\) 555-01\d\d`},
		{"the same without a country", pii.PhoneNumber, "415.555.0137", `[2-9]\d\d\.555\.01\d\d`},
		{"British phone", pii.PhoneNumber, "+44 20 7946 0958", `\+44 77 0090 0\d\d\d`},
		{"other phone", pii.PhoneNumber, "06 39 98 12 34", `06 \d\d \d\d \d\d \d\d`},
		{"IBAN", pii.IBAN, "DE89 3704 0044 0532 0130 00", `DE0\d \d{4} \d{4} \d{4} \d{4} \d\d`},
		{"card", pii.PaymentCard, "4242-4242-4242-4242", `4\d{3}-\d{4}-\d{4}-\d{4}`},
		{"social security", pii.SocialSecurityNumber, "078-05-1120", `666-\d\d-\d{4}`},
		{"IPv4", pii.IPAddress, "10.1.2.3", `(192\.0\.2|198\.51\.100|203\.0\.113)\.\d+`},
		{"IPv6", pii.IPAddress, "fd00::12", `2001:db8:[0-9a-f:]+`},
		{"network", pii.IPAddress, "10.1.2.0/24", `(192\.0\.2|198\.51\.100|203\.0\.113)\.\d+/24`},
		{"URL", pii.PersonalURL, "https://social.invalid/in/mira?x=1", `https://[a-z]+\.example/[a-z]{2}/[a-z]{4}\?[a-z]=\d`},
		{"address", pii.PostalAddress, "12 Mill Lane, Leeds", `\d\d [A-Z][a-z]+ [A-Z][a-z]+, [A-Z][a-z]+`},
		{"account", pii.AccountID, "CUST-004821", `[A-Z]{4}-\d{6}`},
		{"handle", pii.Username, "@kvasir_ops", `@[a-z]{6}_[a-z]{3}`},
		{"age keeps its words", pii.Age, "83 years old", `\d\d years old`},
		{"key keeps its frame", pii.PrivateKey, "-----BEGIN KEY-----\nMIIabc09\n-----END KEY-----", `-----BEGIN KEY-----\n[A-Z]{3}[a-z]{3}\d\d\n-----END KEY-----`},

		{"too short to be told from chance", pii.Age, "83", `AGE_[A-Z2-7]{5}`},
		{"a security code too", pii.CardSecurityCode, "123", `CARDCODE_[A-Z2-7]{5}`},
		{"a statement about a person", pii.HealthData, "type 2 diabetes", `HEALTH_[A-Z2-7]{5}`},
		{"a date that cannot be read", pii.PersonalDate, "the ides of March", `DATE_[A-Z2-7]{5}`},
		{"nothing to change", pii.Username, "~~~~~~~~", `USERNAME_[A-Z2-7]{5}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := mask.NewBook(testKey, nil)
			e := issue(t, b, tt.value, tt.label, mask.StyleSurrogate)
			if !regexp.MustCompile(`^` + tt.want + `$`).MatchString(e.Token) {
				t.Errorf("%q has the surrogate %q", tt.value, e.Token)
			}
			if got, _ := b.Restorer().Restore("see " + e.Token + "."); got != "see "+tt.value+"." {
				t.Errorf("restored to %q", got)
			}
			again := mask.NewBook(testKey, nil)
			if other := issue(t, again, tt.value, tt.label, mask.StyleSurrogate); other != e {
				t.Errorf("another run gives %q", other.Token)
			}
		})
	}
}

func TestSurrogateNumbersAreInvalid(t *testing.T) {
	t.Parallel()
	luhn := func(s string) bool {
		sum, double := 0, false
		for i := len(s) - 1; i >= 0; i-- {
			if s[i] < '0' || s[i] > '9' {
				continue
			}
			d := int(s[i] - '0')
			if double {
				d = d*2/10 + d*2%10
			}
			sum, double = sum+d, !double
		}
		return sum%10 == 0
	}
	rapid.Check(t, func(t *rapid.T) {
		b := mask.NewBook(testKey, nil)
		card := rapid.StringMatching(`4[0-9]{3}( [0-9]{4}){3}`).Draw(t, "card")
		e, err := b.Issue(card, pii.PaymentCard, mask.StyleSurrogate, nil)
		if err != nil {
			t.Fatal(err)
		}
		if luhn(e.Token) {
			t.Fatalf("%s is a valid card", e.Token)
		}
		addr := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "ip"))).String()
		if e, err = b.Issue(addr, pii.IPAddress, mask.StyleSurrogate, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := netip.ParseAddr(e.Token); err != nil || e.Token == addr {
			t.Fatalf("%s is no other address", e.Token)
		}
	})
}

// The time between two dates is what a model reasons about.
func TestSurrogateDatesMoveTogether(t *testing.T) {
	t.Parallel()
	b := mask.NewBook(testKey, nil)
	moved := func(value, layout string) time.Time {
		e := issue(t, b, value, pii.PersonalDate, mask.StyleSurrogate)
		d, err := time.Parse(layout, e.Token)
		if err != nil {
			t.Fatalf("%q became %q: %v", value, e.Token, err)
		}
		return d
	}
	a := moved("2024-05-03", "2006-01-02")
	for value, layout := range map[string]string{
		"13 May 2024": "2 January 2006", "May 13, 2024": "January 2, 2006", "13.05.2024": "02.01.2006", "05/13/2024": "01/02/2006",
		"13/05/2024": "02/01/2006", "13 MAY 2024": "2 January 2006",
	} {
		if days := moved(value, layout).Sub(a).Hours() / 24; days != 10 {
			t.Errorf("%q is %v days away, want 10", value, days)
		}
	}
}

func TestSurrogatesOfOneNameBelongTogether(t *testing.T) {
	t.Parallel()
	b := mask.NewBook(testKey, nil)
	full := issue(t, b, "Jane Doe", pii.PersonName, mask.StyleSurrogate).Token
	given, family, _ := strings.Cut(full, " ")
	if got := issue(t, b, "Doe", pii.PersonName, mask.StyleSurrogate).Token; got != family {
		t.Errorf("Doe is %q beside %q", got, full)
	}
	if got := issue(t, b, "JANE DOE", pii.PersonName, mask.StyleSurrogate).Token; got != strings.ToUpper(full) {
		t.Errorf("capitals are %q beside %q", got, full)
	}
	// Also after a restart, and for a part that was never masked alone.
	back := mask.NewBook(testKey, b.Entries())
	got, _ := back.Restorer().Restore(given + " left, " + strings.ToUpper(family) + " stayed, " + full + " and " + strings.ToUpper(full))
	if got != "Jane left, DOE stayed, Jane Doe and JANE DOE" {
		t.Errorf("restored to %q", got)
	}
}

func TestSurrogatesAreDistinct(t *testing.T) {
	t.Parallel()
	b := mask.NewBook(testKey, nil)
	seen := map[string]bool{}
	for i := range 150 { // of 213 given names
		e := issue(t, b, "Person"+string(rune('a'+i%26))+string(rune('a'+i/26)), pii.PersonName, mask.StyleSurrogate)
		if seen[strings.ToUpper(e.Token)] {
			t.Fatalf("%q stands for two names", e.Token)
		}
		seen[strings.ToUpper(e.Token)] = true
	}
}

func TestSurrogateAvoidsRealValuesAndTaken(t *testing.T) {
	t.Parallel()
	first := issue(t, mask.NewBook(testKey, nil), "Jane Doe", pii.PersonName, mask.StyleSurrogate).Token
	b := mask.NewBook(testKey, nil)
	issue(t, b, first, pii.PersonName, mask.StylePlaceholder) // a real person of that name
	if got := issue(t, b, "Jane Doe", pii.PersonName, mask.StyleSurrogate).Token; strings.EqualFold(got, first) {
		t.Error("a surrogate is a real value")
	}
	given, _, _ := strings.Cut(first, " ")
	b = mask.NewBook(testKey, nil)
	e, err := b.Issue("Jane Doe", pii.PersonName, mask.StyleSurrogate, mask.Taken("as "+strings.ToLower(given)+" says"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(e.Token, given) {
		t.Error("a surrogate holds a name that the text holds")
	}
	if _, err = b.Issue("Ana Prado", pii.PersonName, mask.StyleSurrogate, func(string) bool { return true }); !errors.Is(err, mask.ErrNoToken) {
		t.Errorf("got %v", err)
	}
}
