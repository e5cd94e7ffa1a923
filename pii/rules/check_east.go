package rules

// europeEast holds the identifiers of central and eastern Europe, Turkey and
// Israel.
func europeEast() map[string]check {
	return map[string]check{
		"bg_egn":      digitsCheck(10, bgEGN),
		"cz_rc":       czRC,
		"hr_oib":      digitsCheck(11, mod11x10),
		"il_idnr":     digitsCheck(9, func(s string) bool { return num(s) > 0 && luhn(s) }),
		"pl_nip":      digitsCheck(10, func(s string) bool { return weighted(s, 6, 5, 7, 2, 3, 4, 5, 6, 7)%11 == int(s[9]-'0') }),
		"pl_pesel":    digitsCheck(11, plPESEL),
		"pl_regon":    plREGON,
		"ro_cnp":      digitsCheck(13, roCNP),
		"ru_inn":      ruINN,
		"tr_tckimlik": digitsCheck(11, trTCK),
		"ua_rntrc": digitsCheck(10, func(s string) bool {
			return ((weighted(s, -1, 5, 7, 9, 4, 6, 10, 5, 7)%11+11)%11)%10 == int(s[9]-'0')
		}),
	}
}

func bgEGN(s string) bool {
	m := num(s[2:4])
	if m > 40 {
		m -= 40
	} else if m > 20 {
		m -= 20
	}
	return day(num(s[:2]), m, num(s[4:6])) && weighted(s, 2, 4, 8, 5, 10, 9, 7, 3, 6)%11%10 == int(s[9]-'0')
}

func czRC(s string) bool {
	if len(s) != 9 && len(s) != 10 || !digitsOnly(s) {
		return false
	}
	// Women have 50 added to the month; 20 more is an overflow since 2004.
	m := num(s[2:4]) % 50
	if m > 20 {
		m -= 20
	}
	if !day(num(s[:2]), m, num(s[4:6])) {
		return false
	}
	if len(s) == 9 {
		return num(s[:2]) < 54 && s[6:] != "000"
	}
	return num(s[:9])%11%10 == int(s[9]-'0')
}

func plPESEL(s string) bool {
	return day(num(s[:2]), num(s[2:4])%20, num(s[4:6])) && weighted(s, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)%10 == 0
}

func plREGON(s string) bool {
	if len(s) != 9 && len(s) != 14 || !digitsOnly(s) {
		return false
	}
	if weighted(s, 8, 9, 2, 3, 4, 5, 6, 7)%11%10 != int(s[8]-'0') {
		return false
	}
	return len(s) == 9 || weighted(s, 2, 4, 8, 5, 0, 9, 7, 3, 6, 1, 2, 4, 8)%11%10 == int(s[13]-'0')
}

func roCNP(s string) bool {
	c := weighted(s, 2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9) % 11
	if c == 10 {
		c = 1
	}
	county := num(s[7:9])
	return s[0] != '0' && ymd(s[1:7]) && county > 0 && (county <= 52 || county == 70 || county >= 80 && county <= 83) && c == int(s[12]-'0')
}

func ruINN(s string) bool {
	switch {
	case !digitsOnly(s):
		return false
	case len(s) == 10:
		return weighted(s, 2, 4, 10, 3, 5, 9, 4, 6, 8)%11%10 == int(s[9]-'0')
	case len(s) == 12:
		return weighted(s, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)%11%10 == int(s[10]-'0') &&
			weighted(s, 3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)%11%10 == int(s[11]-'0')
	}
	return false
}

func trTCK(s string) bool {
	odd := weighted(s, 1, 0, 1, 0, 1, 0, 1, 0, 1)
	even := weighted(s, 0, 1, 0, 1, 0, 1, 0, 1)
	return s[0] != '0' && (odd*7-even+100)%10 == int(s[9]-'0') && (odd+even+int(s[9]-'0'))%10 == int(s[10]-'0')
}
