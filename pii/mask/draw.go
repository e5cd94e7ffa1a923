package mask

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/pii"
)

// draw is an endless sequence of numbers that only the key's owner can
// compute. It makes surrogates: the same value draws the same one.
type draw struct {
	key   *[32]byte
	seed  []string
	block [32]byte
	used  int
	next  int
}

func newDraw(key *[32]byte, seed ...string) *draw {
	return &draw{key: key, seed: seed, used: len(draw{}.block)}
}

// below returns a number from 0 to n-1, for n up to a few thousand: the bias
// of a 32-bit remainder is of no matter here.
func (d *draw) below(n int) int {
	if d.used+4 > len(d.block) {
		d.block = mac(d.key, append([]string{strconv.Itoa(d.next)}, d.seed...)...)
		d.next, d.used = d.next+1, 0
	}
	v := binary.BigEndian.Uint32(d.block[d.used:])
	d.used += 4
	return int(v % uint32(n))
}

// of returns one of list.
func (d *draw) of(list []string) string { return list[d.below(len(list))] }

// shape returns s with other letters and digits: the same case, the same
// punctuation, no leading zero where there was none.
func (d *draw) shape(s string) string {
	start := true
	return strings.Map(func(r rune) rune {
		begins := start
		start = !unicode.IsLetter(r) && !unicode.IsDigit(r)
		switch {
		case zeroWidth(r):
			return -1
		case unicode.IsDigit(r):
			if begins && r != '0' {
				return '1' + rune(d.below(9))
			}
			return '0' + rune(d.below(10))
		case unicode.IsUpper(r):
			return 'A' + rune(d.below(26))
		case unicode.IsLetter(r):
			return 'a' + rune(d.below(26))
		}
		return r
	}, s)
}

// digits returns s with its decimal digits replaced by those of ds, which are
// as many.
func digits(s string, ds []byte) string {
	i := 0
	return strings.Map(func(r rune) rune {
		if !unicode.IsDigit(r) {
			return r
		}
		i++
		return rune(ds[i-1])
	}, s)
}

// phone keeps the punctuation. North American and British numbers come from
// the ranges reserved for fiction, others keep two leading digits.
func (d *draw) phone(s string) string {
	var ds []byte
	for _, r := range s {
		if unicode.IsDigit(r) {
			ds = append(ds, byte('0'+d.below(10)))
		}
	}
	had := plainDigits(s)
	plus := strings.HasPrefix(strings.TrimSpace(s), "+")
	switch {
	case len(ds) == 11 && had[0] == '1', len(ds) == 10 && !plus && had[0] != '0':
		local := ds[len(ds)-10:]
		ds[0] = '1'
		local[0], local[1] = byte('2'+d.below(8)), byte('2'+d.below(7))
		copy(local[3:], "55501")
	case len(ds) == 12 && plus && strings.HasPrefix(had, "44"):
		copy(ds, "447700900") // Ofcom's range for drama
	case len(ds) == 11 && strings.HasPrefix(had, "0"):
		copy(ds, "07700900")
	default:
		copy(ds, had[:min(2, len(had))])
	}
	return digits(s, ds)
}

// plainDigits returns the digits of s in ASCII. Those of other scripts come
// out as 5: only their number matters then.
func plainDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r
		}
		if unicode.IsDigit(r) {
			return '5'
		}
		return -1
	}, s)
}

// card looks like a card number whose check digit is wrong.
func (d *draw) card(s string) string {
	ds := []byte(plainDigits(d.shape(s)))
	if len(ds) == 0 {
		return d.shape(s)
	}
	ds[0] = plainDigits(s)[0] // the network, so that a parser knows the shape
	if luhn(ds) {
		ds[len(ds)-1] = '0' + (ds[len(ds)-1]-'0'+1)%10
	}
	return digits(s, ds)
}

// luhn reports whether the last digit is the check digit of ISO/IEC 7812-1.
func luhn(ds []byte) bool {
	sum := 0
	for i, c := range ds {
		n := int(c - '0')
		if (len(ds)-i)%2 == 0 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// iban keeps the country and has wrong check digits.
func (d *draw) iban(s string) string {
	out := []byte(d.shape(s))
	if len(out) < 5 || len(out) != len(s) {
		return string(out)
	}
	copy(out, s[:2])
	for out[2], out[3] = '0', '0'; ; out[3]++ { // 00 is right for no IBAN, but look
		if !mod97(string(out)) {
			return string(out)
		}
	}
}

// mod97 reports whether the check digits of ISO 7064 agree.
func mod97(s string) bool {
	s = strings.Map(func(r rune) rune {
		if alnum(r) {
			return toUpper(r)
		}
		return -1
	}, s)
	rest := 0
	for _, c := range s[4:] + s[:4] {
		if upper(c) {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	return rest == 1
}

// ssn keeps the punctuation; no number was ever given out with the area 666.
func (d *draw) ssn(s string) string {
	ds := []byte(plainDigits(d.shape(s)))
	if len(ds) == 9 {
		copy(ds, "666")
		return digits(s, ds)
	}
	return d.shape(s)
}

// words replaces words of three letters or more by family names, and gives
// the rest another shape.
func (d *draw) words(s string, family []string) string {
	var b strings.Builder
	for _, w := range splitWords(s) {
		if utf8.RuneCountInString(w) >= 3 && strings.IndexFunc(w, unicode.IsDigit) < 0 && isName(w) {
			b.WriteString(likeCase(w, d.of(family)))
		} else {
			b.WriteString(d.shape(w))
		}
	}
	return b.String()
}

// noSurrogate reports labels whose values say something about a person: a
// made-up one would be a false statement, and the model would argue from it.
func noSurrogate(label pii.Label) bool {
	switch label {
	case pii.HealthData, pii.EthnicityOrNationality, pii.BeliefOrAffiliation, pii.SexualityOrGender, pii.CriminalRecord:
		return true
	}
	return false
}
