package rules

import "strings"

// asiaPacific holds the identifiers of Asia, the Pacific and Africa.
func asiaPacific() map[string]check {
	return map[string]check{
		"au_abn": digitsCheck(11, func(s string) bool {
			return s[0] != '0' && (weighted(s, 10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)-10)%89 == 0
		}),
		"au_medicare": func(s string) bool {
			return (len(s) == 10 || len(s) == 11) && digitsOnly(s) && s[0] >= '2' && s[0] <= '6' &&
				weighted(s, 1, 3, 7, 9, 1, 3, 7, 9)%10 == int(s[8]-'0')
		},
		"au_tfn":      digitsCheck(9, func(s string) bool { return weighted(s, 1, 4, 3, 7, 5, 8, 6, 9, 10)%11 == 0 }),
		"cn_ric":      cnRIC,
		"in_aadhaar":  digitsCheck(12, func(s string) bool { return s[0] >= '2' && !palindrome(s) && verhoeff(s) }),
		"in_gstin":    shaped("ddaaaaaddddaxax", inGSTIN),
		"in_ifsc":     func(s string) bool { return len(s) == 11 && s[4] == '0' && letters(s[:4]) },
		"in_pan":      shaped("aaaaadddda", func(s string) bool { return strings.Contains("ABCFGHJLPT", s[3:4]) && s[5:9] != "0000" }),
		"jp_houjin":   digitsCheck(13, jpHoujin),
		"jp_mynumber": digitsCheck(12, jpMyNumber),
		"kr_brn":      digitsCheck(10, krBRN),
		"kr_rrn":      digitsCheck(13, krRRN),
		"kr_rrn_date": digitsCheck(13, func(s string) bool { return ymd(s) && s[6] >= '1' && s[6] <= '4' }),
		"my_nric":     digitsCheck(12, myNRIC),
		"nz_ird":      nzIRD,
		"sg_nric":     shaped("addddddda", sgNRIC),
		"sg_uen":      sgUEN,
		"th_pin": digitsCheck(13, func(s string) bool {
			return s[0] != '0' && s[0] != '9' && (11-weighted(s, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11)%10 == int(s[12]-'0')
		}),
		"za_idnr": digitsCheck(13, func(s string) bool { return ymd(s) && s[10] <= '2' && luhn(s) }),
	}
}

func letters(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return true
}

func palindrome(s string) bool {
	for i := range len(s) / 2 {
		if s[i] != s[len(s)-1-i] {
			return false
		}
	}
	return true
}

func cnRIC(s string) bool {
	if len(s) != 18 || !digitsOnly(s[:17]) || s[0] == '0' || s[0] > '8' {
		return false
	}
	if y := num(s[6:10]); y < 1850 || y > 2100 || !day(y, num(s[10:12]), num(s[12:14])) {
		return false
	}
	c := weighted(s, 7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2) % 11
	return "10X98765432"[c] == s[17]
}

func inGSTIN(s string) bool {
	if st := num(s[:2]); st < 1 || st > 38 && st != 97 && st != 99 || s[13] != 'Z' {
		return false
	}
	sum := 0
	for i := range 14 {
		p := alnumValue(s[i]) * (i%2 + 1)
		sum += p/36 + p%36
	}
	return alnumValue(s[14]) == (36-sum%36)%36
}

func jpHoujin(s string) bool {
	sum := 0
	for i := range 12 {
		sum += int(s[12-i]-'0') * (i%2 + 1)
	}
	return 9-sum%9 == int(s[0]-'0')
}

func jpMyNumber(s string) bool {
	c := weighted(s, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2) % 11
	if c <= 1 {
		return s[11] == '0'
	}
	return 11-c == int(s[11]-'0')
}

// krBRN tests the parts only: check digits are not assigned throughout.
func krBRN(s string) bool {
	return num(s[:3]) > 100 && num(s[3:5]) > 0 && num(s[5:9]) > 0
}

func krRRN(s string) bool {
	return ymd(s) && num(s[7:9]) <= 96 && (11-weighted(s, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)%11)%10 == int(s[12]-'0')
}

func myNRIC(s string) bool {
	place := num(s[6:8])
	return ymd(s) && place > 0 && !oneOf("17 18 19 20 69 70 73 80 81 94 95 96 97", s[6:8])
}

func nzIRD(s string) bool {
	if len(s) == 8 {
		s = "0" + s
	}
	if len(s) != 9 || !digitsOnly(s) || num(s) < 10_000_000 || num(s) > 150_000_000 {
		return false
	}
	c := -weighted(s, 3, 2, 7, 6, 5, 4, 3, 2)%11 + 11
	if c%11 == 10 {
		c = -weighted(s, 7, 4, 3, 2, 5, 2, 7, 6)%11 + 11
	}
	return c%11 == int(s[8]-'0')
}

func sgNRIC(s string) bool {
	sum := weighted(s[1:], 2, 7, 6, 5, 4, 3, 2)
	switch s[0] {
	case 'S':
		return "JZIHGFEDCBA"[sum%11] == s[8]
	case 'T':
		return "JZIHGFEDCBA"[(sum+4)%11] == s[8]
	case 'F':
		return "XWUTRQPNMLK"[sum%11] == s[8]
	case 'G':
		return "XWUTRQPNMLK"[(sum+4)%11] == s[8]
	case 'M':
		return "KLJNPQRTUWX"[10-(sum+3)%11] == s[8]
	}
	return false
}

func sgUEN(s string) bool {
	switch {
	case len(s) == 9 && digitsOnly(s[:8]):
		return "XMKECAWLJDB"[weighted(s, 10, 4, 9, 3, 8, 2, 7, 1)%11] == s[8]
	case len(s) == 10 && digitsOnly(s[:9]):
		return "ZKCMDNERGWH"[weighted(s, 10, 8, 6, 4, 9, 7, 5, 3, 1)%11] == s[9]
	case len(s) == 10 && strings.Contains("RST", s[:1]) && digitsOnly(s[1:3]) && letters(s[3:4]) && digitsOnly(s[5:9]):
		const alphabet = "ABCDEFGHJKLMNPQRSTUVWX0123456789"
		sum := 0
		for i, w := range [...]int{4, 3, 5, 3, 10, 2, 2, 5, 7} {
			sum += w * strings.IndexByte(alphabet, s[i])
		}
		return alphabet[((sum-5)%11+11)%11] == s[9]
	}
	return false
}
