package rules

import (
	"strconv"
	"strings"
)

// europeWest holds the identifiers of western and southern Europe.
func europeWest() map[string]check {
	return map[string]check{
		"at_vnr":            digitsCheck(10, atVNR),
		"be_nn":             digitsCheck(11, beNN),
		"ch_ahv":            digitsCheck(13, func(s string) bool { return s[:3] == "756" && ean13(s) }),
		"de_kvnr":           shaped("addddddddd", deKVNR),
		"de_rvnr":           shaped("ddddddddaddd", deRVNR),
		"de_steuer_id":      digitsCheck(11, deSteuerID),
		"de_ust_id":         func(s string) bool { return len(s) == 11 && s[:2] == "DE" && digitsCheck(9, deVAT)(s[2:]) },
		"es_cif":            esCIF,
		"es_dni":            shaped("dddddddda", func(s string) bool { return esLetter(s[:8]) == s[8] }),
		"es_nie":            shaped("addddddda", esNIE),
		"fr_nif":            digitsCheck(13, func(s string) bool { return s[0] <= '3' }),
		"fr_nir":            frNIR,
		"fr_siren":          digitsCheck(9, luhn),
		"fr_siret":          digitsCheck(14, func(s string) bool { return luhn(s[:9]) && luhn(s) }),
		"gb_dl":             gbDL,
		"gb_nhs":            digitsCheck(10, gbNHS),
		"gb_nino":           shaped("aadddddda", gbNINO),
		"gb_utr":            digitsCheck(10, gbUTR),
		"gr_afm":            digitsCheck(9, grAFM),
		"gr_amka":           digitsCheck(11, func(s string) bool { return dmy(s) && luhn(s) }),
		"ie_pps":            iePPS,
		"it_codice_fiscale": itCF,
		"it_iva":            digitsCheck(11, itIVA),
		"nl_bsn":            digitsCheck(9, nlBSN),
		"pt_cc":             shaped("dddddddddxxd", ptCC),
		"pt_nif":            digitsCheck(9, ptNIF),
	}
}

func ean13(s string) bool { return weighted(s, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1)%10 == 0 }

func atVNR(s string) bool {
	// The birth date has months above 12 where a day ran out of numbers.
	if s[0] == '0' || num(s[4:6]) < 1 || num(s[4:6]) > 31 {
		return false
	}
	return weighted(s, 3, 7, 9, 0, 5, 8, 4, 2, 1, 6)%11 == int(s[3]-'0')
}

func beNN(s string) bool {
	n, key := num(s[:9]), num(s[9:])
	// Months are raised by 20 or 40 in numbers for people without residence.
	if num(s[2:4])%20 > 12 || num(s[4:6]) > 31 {
		return false
	}
	return 97-n%97 == key || 97-(2_000_000_000+n)%97 == key
}

func deKVNR(s string) bool {
	v := int(s[0]-'A') + 1
	expanded := string([]byte{byte('0' + v/10), byte('0' + v%10)}) + s[1:9]
	return crossSum(expanded, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2)%10 == int(s[9]-'0')
}

func deRVNR(s string) bool {
	if d := num(s[2:4]) % 50; d < 1 || d > 31 || num(s[4:6]) > 12 {
		return false
	}
	v := int(s[8]-'A') + 1
	expanded := s[:8] + string([]byte{byte('0' + v/10), byte('0' + v%10)}) + s[9:11]
	return crossSum(expanded, 2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)%10 == int(s[11]-'0')
}

// crossSum sums the digits of the products.
func crossSum(s string, weights ...int) int {
	sum := 0
	for i, w := range weights {
		p := w * int(s[i]-'0')
		sum += p/10 + p%10
	}
	return sum
}

func deSteuerID(s string) bool {
	if s[0] == '0' || !mod11x10(s) {
		return false
	}
	// One digit of the first ten stands twice or three times, the others once.
	repeated := 0
	for d := '0'; d <= '9'; d++ {
		n := strings.Count(s[:10], string(d))
		if n > 3 {
			return false
		}
		if n > 1 {
			repeated++
		}
	}
	return repeated == 1
}

func deVAT(s string) bool { return s[0] != '0' && mod11x10(s) }

func esLetter(digits string) byte { return "TRWAGMYFPDXBNJZSQVHLCKE"[num(digits)%23] }

func esNIE(s string) bool {
	if s[0] < 'X' || s[0] > 'Z' {
		return false
	}
	return esLetter(string('0'+s[0]-'X')+s[1:8]) == s[8]
}

func esCIF(s string) bool {
	if len(s) != 9 || !strings.Contains("ABCDEFGHJNPQRSUVW", s[:1]) || !digitsOnly(s[1:8]) {
		return false
	}
	sum := 0
	for i := 1; i < 8; i++ {
		d := int(s[i] - '0')
		if i%2 == 1 {
			d *= 2
			d = d/10 + d%10
		}
		sum += d
	}
	c := (10 - sum%10) % 10
	digit, letter := byte('0'+c), "JABCDEFGHI"[c]
	switch {
	case strings.Contains("PQSNRW", s[:1]):
		return s[8] == letter
	case strings.Contains("ABEH", s[:1]):
		return s[8] == digit
	}
	return s[8] == letter || s[8] == digit
}

func frNIR(s string) bool {
	if len(s) != 15 || s[0] < '1' || s[0] > '8' {
		return false
	}
	// Corsica's departments are 2A and 2B.
	n := strings.Replace(strings.Replace(s[:13], "2A", "19", 1), "2B", "18", 1)
	if !digitsOnly(n) || !digitsOnly(s[13:]) || n != s[:13] && s[5] != '2' {
		return false
	}
	if m := num(s[3:5]); m == 0 || m > 12 && m < 20 || m > 42 && m < 50 {
		return false
	}
	v, _ := strconv.Atoi(n)
	return 97-v%97 == num(s[13:])
}

func gbDL(s string) bool {
	if len(s) < 16 || len(s) > 18 {
		return false
	}
	for i, c := range []byte(s[:16]) {
		digit := c <= '9'
		switch {
		case i < 5 && digit && c != '9', i >= 5 && i <= 10 && !digit:
			return false
		case i == 11 && digit, i == 12 && digit && c != '9', i >= 14 && digit:
			return false
		}
	}
	if s[0] <= '9' {
		return false
	}
	m := num(s[6:8])
	return m%50 >= 1 && m%50 <= 12 && m/50 <= 1 && num(s[8:10]) >= 1 && num(s[8:10]) <= 31
}

func gbNHS(s string) bool {
	return !uniform(s) && weighted(s, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)%11 == 0
}

func gbNINO(s string) bool {
	if strings.ContainsAny(s[:2], "DFIQUV") || s[1] == 'O' || s[8] > 'D' {
		return false
	}
	return !oneOf("BG GB KN NK NT TN ZZ", s[:2])
}

func gbUTR(s string) bool {
	return "21987654321"[weighted(s[1:], 6, 7, 8, 9, 10, 5, 4, 3, 2)%11] == s[0]
}

func grAFM(s string) bool {
	return !uniform(s) && weighted(s, 256, 128, 64, 32, 16, 8, 4, 2)%11%10 == int(s[8]-'0')
}

func iePPS(s string) bool {
	if len(s) != 8 && len(s) != 9 || !digitsOnly(s[:7]) || s[7] <= '9' {
		return false
	}
	sum := weighted(s, 8, 7, 6, 5, 4, 3, 2)
	if len(s) == 9 {
		if s[8] < 'A' {
			return false
		}
		if s[8] != 'W' {
			sum += 9 * (int(s[8]-'A') + 1)
		}
	}
	return "WABCDEFGHIJKLMNOPQRSTUV"[sum%23] == s[7]
}

func itCF(s string) bool {
	if len(s) != 16 {
		return false
	}
	// Digits may be written as letters when two people would share a code.
	const asDigit = "LMNPQRSTUV"
	odd := [...]int{1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23}
	sum := 0
	for i := range 15 {
		c := s[i]
		numeric := i == 6 || i == 7 || i == 9 || i == 10 || i >= 12
		if numeric && c > '9' && !strings.Contains(asDigit, string(c)) || !numeric && c <= '9' {
			return false
		}
		v := int(c - '0')
		if c > '9' {
			v = int(c - 'A')
		}
		if i%2 == 0 {
			v = odd[v]
		}
		sum += v
	}
	return strings.Contains("ABCDEHLMPRST", s[8:9]) && s[15] == byte('A'+sum%26)
}

func itIVA(s string) bool {
	office := num(s[7:10])
	return num(s[:7]) > 0 && (office >= 1 && office <= 100 || oneOf("120 121 888 999", s[7:10])) && luhn(s)
}

func nlBSN(s string) bool {
	return num(s) > 0 && (weighted(s, 9, 8, 7, 6, 5, 4, 3, 2)-int(s[8]-'0'))%11 == 0
}

func ptCC(s string) bool {
	sum := 0
	for i := range 12 {
		v := alnumValue(s[i])
		if i%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0
}

func ptNIF(s string) bool {
	return s[0] != '0' && s[0] != '4' && (11-weighted(s, 9, 8, 7, 6, 5, 4, 3, 2)%11)%11%10 == int(s[8]-'0')
}
