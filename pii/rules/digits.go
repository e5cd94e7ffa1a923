package rules

import "strings"

// The functions of this file are the arithmetic that check digits are made of.
// They take compact values: no separators, upper case, ASCII.

func digitsOnly(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) > 0
}

// num returns the value of a short run of digits.
func num(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// alnumValue is 0-9 for digits and 10-35 for letters.
func alnumValue(c byte) int {
	if c >= 'A' {
		return int(c-'A') + 10
	}
	return int(c - '0')
}

// weighted sums the products of characters and weights.
func weighted(s string, weights ...int) int {
	sum := 0
	for i, w := range weights {
		sum += w * alnumValue(s[i])
	}
	return sum
}

// luhn is the mod 10 test of payment cards.
func luhn(s string) bool {
	if !digitsOnly(s) {
		return false
	}
	sum := 0
	double := false
	for i := len(s) - 1; i >= 0; i-- {
		d := int(s[i] - '0')
		if double {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
		double = !double
	}
	return sum%10 == 0
}

// mod97 is the remainder of ISO 7064 mod 97-10, with letters as two digits.
func mod97(s string) int {
	r := 0
	for i := 0; i < len(s); i++ {
		v := alnumValue(s[i])
		if v > 9 {
			r = (r*100 + v) % 97
		} else {
			r = (r*10 + v) % 97
		}
	}
	return r
}

// mod11x10 is ISO 7064 mod 11,10 over the whole value, check digit included.
func mod11x10(s string) bool {
	p := 10
	for i := 0; i < len(s)-1; i++ {
		p = (p + int(s[i]-'0')) % 10
		if p == 0 {
			p = 10
		}
		p = p * 2 % 11
	}
	return (p+int(s[len(s)-1]-'0'))%10 == 1
}

// verhoeff is the test over the dihedral group of order ten.
func verhoeff(s string) bool {
	const mul = "0123456789" + "1234067895" + "2340178956" + "3401289567" + "4012395678" +
		"5987604321" + "6598710432" + "7659821043" + "8765932104" + "9876543210"
	const perm = "0123456789" + "1576283094" + "5803796142" + "8916043527" + "9453126870" +
		"4286573901" + "2793806415" + "7046913258"
	c := 0
	for i := 0; i < len(s); i++ {
		d := int(s[len(s)-1-i] - '0')
		c = int(mul[c*10+int(perm[i%8*10+d]-'0')] - '0')
	}
	return c == 0
}

// day reports a date that exists; a two-digit year may be any of its century.
func day(y, m, d int) bool {
	if m < 1 || m > 12 || d < 1 {
		return false
	}
	last := 31
	switch m {
	case 4, 6, 9, 11:
		last = 30
	case 2:
		last = 28
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) || y < 100 && y%4 == 0 {
			last = 29
		}
	}
	return d <= last
}

// ymd and dmy report two-digit dates at the start of s.
func ymd(s string) bool { return day(num(s[:2]), num(s[2:4]), num(s[4:6])) }
func dmy(s string) bool { return day(num(s[4:6]), num(s[2:4]), num(s[:2])) }

// oneOf reports that s is one of the words of list.
func oneOf(list, s string) bool {
	return strings.Contains(" "+list+" ", " "+s+" ")
}

// uniform reports a value made of one repeated character.
func uniform(s string) bool {
	return strings.Count(s, s[:1]) == len(s)
}
