package rules

import "strings"

// europeNorth holds the identifiers of the Nordic and Baltic countries.
func europeNorth() map[string]check {
	return map[string]check{
		"dk_cpr":           digitsCheck(10, dkCPR),
		"ee_ik":            digitsCheck(11, balticID),
		"fi_hetu":          fiHETU,
		"lt_ak":            digitsCheck(11, balticID),
		"lv_pk":            digitsCheck(11, lvPK),
		"no_fodselsnummer": digitsCheck(11, noFNR),
		"se_personnummer":  sePNR,
	}
}

// dkCPR tests the date only: check digits ended in 2007. A number that has not
// been born yet is refused by its century digit.
func dkCPR(s string) bool {
	y := num(s[4:6])
	switch c := s[6]; {
	case c >= '5' && c <= '8' && y >= 58:
		y += 1800
	case c <= '3', (c == '4' || c == '9') && y >= 37:
		y += 1900
	default:
		y += 2000
	}
	return y <= 2026 && day(y, num(s[2:4]), num(s[:2]))
}

func balticID(s string) bool {
	if s[0] < '1' || s[0] > '8' || !ymd(s[1:7]) {
		return false
	}
	c := weighted(s, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1) % 11
	if c == 10 {
		c = weighted(s, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3) % 11 % 10
	}
	return c == int(s[10]-'0')
}

func lvPK(s string) bool {
	if s[:2] == "32" {
		return true // issued since 2017, without date and check digit
	}
	return dmy(s) && (1+weighted(s, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9))%11%10 == int(s[10]-'0')
}

// fiHETU takes the century sign as a letter too, since the compact form drops
// the signs - and +.
func fiHETU(s string) bool {
	body, last := s, byte(0)
	if len(s) < 10 || len(s) > 11 {
		return false
	}
	last = s[len(s)-1]
	body = s[:len(s)-1]
	if len(s) == 11 {
		if !strings.Contains("ABCDEFUVWXY", s[6:7]) {
			return false
		}
		body = s[:6] + s[7:10]
	}
	if !digitsOnly(body) || !dmy(body) || num(body[6:]) < 2 {
		return false
	}
	return "0123456789ABCDEFHJKLMNPRSTUVWXY"[num(body)%31] == last
}

func noFNR(s string) bool {
	d, m := num(s[:2]), num(s[2:4])
	if d > 40 {
		d -= 40
	}
	m %= 40
	if !day(num(s[4:6]), m, d) {
		return false
	}
	return weighted(s, 3, 7, 6, 1, 8, 9, 4, 5, 2, 1)%11 == 0 && weighted(s, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)%11 == 0
}

func sePNR(s string) bool {
	if len(s) == 12 && (s[:2] == "19" || s[:2] == "20" || s[:2] == "18") {
		s = s[2:]
	}
	if len(s) != 10 || !digitsOnly(s) {
		return false
	}
	// Coordination numbers have 60 added to the day.
	return day(num(s[:2]), num(s[2:4]), (num(s[4:6])-1)%60+1) && luhn(s)
}
