package mask

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/pii"
)

// Limits of a surrogate. A shorter one than that would stand in texts by
// chance, and restoring would put a value there.
const (
	minSurrogate = 6 // letters and digits
	maxAttempts  = 64
)

// surrogate mints a stand-in of the shape of value. Where none would be
// believable and safe it is a placeholder after all.
func (b *Book) surrogate(value string, label pii.Label, free func(string) bool) string {
	normal := normalise(label, value)
	for attempt := range maxAttempts {
		d := newDraw(&b.key, "surrogate", strconv.Itoa(attempt), string(label), normal)
		token := b.standIn(d, value, label, attempt)
		if token == "" || !utf8.ValidString(token) {
			break
		}
		if free(token) {
			return token
		}
	}
	return b.placeholder(value, label, free)
}

// standIn draws one candidate, "" if there is none for such a value.
func (b *Book) standIn(d *draw, value string, label pii.Label, attempt int) string {
	token := ""
	switch label {
	case pii.PersonName:
		return b.nameFor(value, attempt)
	case pii.PostalAddress, pii.Location, pii.Organization:
		token = d.words(value, names().family)
	case pii.EmailAddress:
		token = b.email(d, value)
	case pii.PhoneNumber:
		token = d.phone(value)
	case pii.PaymentCard:
		token = d.card(value)
	case pii.IBAN:
		token = d.iban(value)
	case pii.SocialSecurityNumber:
		token = d.ssn(value)
	case pii.IPAddress:
		token = d.ip(value)
	case pii.PersonalURL:
		token = b.url(d, value)
	case pii.DateOfBirth, pii.PersonalDate:
		token = shiftDate(value, b.days()+attempt)
	case pii.Age:
		token = d.numbers(value)
	case pii.PrivateKey:
		token = d.pem(value)
	default:
		if !noSurrogate(label) {
			token = d.shape(value)
		}
	}
	if count(token) < minSurrogate {
		return ""
	}
	return token
}

// count returns the number of letters and digits.
func count(s string) int {
	n := 0
	for _, r := range s {
		if letterOrDigit(r) {
			n++
		}
	}
	return n
}

// days is what the task's dates move by: one to six years, so that the year of a
// birth moves too.
func (b *Book) days() int {
	d := newDraw(&b.key, "days")
	return 366 + d.below(5*365)
}

// domain returns a reserved domain (RFC 2606) that stands for host.
func (b *Book) domain(host string) string {
	d := newDraw(&b.key, "domain", strings.ToLower(host))
	return strings.ToLower(d.of(names().family)) + ".example"
}

func (b *Book) email(d *draw, value string) string {
	_, host, _ := strings.Cut(value, "@")
	n := names()
	return strings.ToLower(d.of(n.given)) + "." + strings.ToLower(d.of(n.family)) + strconv.Itoa(10+d.below(90)) + "@" + b.domain(host)
}

// url keeps the scheme and the shape of what follows the host.
func (b *Book) url(d *draw, value string) string {
	scheme, rest, ok := strings.Cut(value, "://")
	if !ok {
		scheme, rest = "", value
	} else {
		scheme += "://"
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	return scheme + b.domain(rest[:end]) + d.shape(rest[end:])
}

// ip draws from the ranges reserved for documentation, RFC 5737 and 3849.
func (d *draw) ip(value string) string {
	addr, err := netip.ParseAddr(value)
	suffix := ""
	if prefix, perr := netip.ParsePrefix(value); perr == nil {
		addr, err, suffix = prefix.Addr(), nil, "/"+strconv.Itoa(prefix.Bits())
	}
	if err != nil {
		return ""
	}
	if addr.Is4() {
		net := [...]string{"192.0.2.", "198.51.100.", "203.0.113."}[d.below(3)]
		return net + strconv.Itoa(1+d.below(254)) + suffix
	}
	b := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	for _, i := range [...]int{4, 5, 14, 15} {
		b[i] = byte(d.below(256))
	}
	return netip.AddrFrom16(b).String() + suffix
}

// numbers changes digits only.
func (d *draw) numbers(value string) string {
	if strings.IndexFunc(value, unicode.IsDigit) < 0 {
		return ""
	}
	return digits(value, []byte(plainDigits(d.shape(value))))
}

// pem keeps the lines that say what kind of key it is.
func (d *draw) pem(value string) string {
	lines := strings.SplitAfter(value, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "-----") {
			lines[i] = d.shape(line)
		}
	}
	return strings.Join(lines, "")
}
