package rules

import "strings"

// americas holds the identifiers of the Americas.
func americas() map[string]check {
	return map[string]check{
		"ar_cuit": digitsCheck(11, arCUIT),
		"br_cnpj": digitsCheck(14, func(s string) bool {
			return !uniform(s) && mod11(s[:12], 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2) == int(s[12]-'0') &&
				mod11(s[:13], 6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2) == int(s[13]-'0')
		}),
		"br_cpf": digitsCheck(11, func(s string) bool {
			return !uniform(s) && mod11(s, 10, 9, 8, 7, 6, 5, 4, 3, 2) == int(s[9]-'0') &&
				mod11(s, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2) == int(s[10]-'0')
		}),
		"ca_bn":          func(s string) bool { return len(s) >= 9 && luhn(s[:9]) && (len(s) == 9 || len(s) == 15) },
		"ca_sin":         digitsCheck(9, luhn),
		"cl_rut":         clRUT,
		"co_nit":         coNIT,
		"mx_curp":        shaped("aaaaddddddaaaaaaxd", mxCURP),
		"us_aba_routing": digitsCheck(9, usABA),
		"us_dea":         shaped("axddddddd", usDEA),
		"us_ein":         digitsCheck(9, func(s string) bool { return !oneOf("00 07 08 09 17 18 19 28 29 49 69 70 78 79 89 96 97", s[:2]) }),
		"us_itin":        digitsCheck(9, usITIN),
		"us_mbi":         shaped("daxdaxdaadd", usMBI),
		"us_npi":         digitsCheck(10, func(s string) bool { return (s[0] == '1' || s[0] == '2') && luhn("80840"+s) }),
		"us_ssn":         digitsCheck(9, usSSN),
	}
}

// mod11 is the check digit that Brazil derives from a weighted sum.
func mod11(s string, weights ...int) int {
	return weighted(s, weights...) * 10 % 11 % 10
}

func arCUIT(s string) bool {
	return oneOf("20 23 24 27 30 33 34 50 51 55", s[:2]) &&
		"012345678990"[11-weighted(s, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)%11] == s[10]
}

func clRUT(s string) bool {
	if len(s) < 8 || len(s) > 9 || !digitsOnly(s[:len(s)-1]) {
		return false
	}
	sum := 0
	for i := range len(s) - 1 {
		sum += (i%6 + 2) * int(s[len(s)-2-i]-'0')
	}
	return "0K987654321"[sum%11] == s[len(s)-1]
}

func coNIT(s string) bool {
	if len(s) < 8 || len(s) > 16 || !digitsOnly(s) {
		return false
	}
	weights := [...]int{3, 7, 13, 17, 19, 23, 29, 37, 41, 43, 47, 53, 59, 67, 71}
	sum := 0
	for i := range len(s) - 1 {
		sum += weights[i] * int(s[len(s)-2-i]-'0')
	}
	return "01987654321"[sum%11] == s[len(s)-1]
}

func mxCURP(s string) bool {
	const states = "AS BC BS CC CH CL CM CS DF DG GR GT HG JC MC MN MS NE NL NT OC PL QR QT SL SP SR TC TL TS VZ YN ZS"
	if s[10] != 'H' && s[10] != 'M' && s[10] != 'X' || !oneOf(states, s[11:13]) || !ymd(s[4:10]) {
		return false
	}
	sum := 0
	for i := range 17 {
		v := alnumValue(s[i])
		if s[i] > 'N' {
			v++ // Ñ follows N in the alphabet
		}
		sum += v * (18 - i)
	}
	return (10-sum%10)%10 == int(s[17]-'0')
}

func usABA(s string) bool {
	return num(s) > 0 && weighted(s, 3, 7, 1, 3, 7, 1, 3, 7, 1)%10 == 0
}

func usDEA(s string) bool {
	if !strings.Contains("ABCDEFGHJKLMPRSTUX", s[:1]) {
		return false
	}
	return (weighted(s[2:], 1, 0, 1, 0, 1)+2*weighted(s[2:], 0, 1, 0, 1, 0, 1))%10 == int(s[8]-'0')
}

func usITIN(s string) bool {
	g := num(s[3:5])
	return s[0] == '9' && g >= 70 && g != 89 && g != 93
}

func usMBI(s string) bool {
	return s[0] != '0' && !strings.ContainsAny(s, "SLOIBZ")
}

func usSSN(s string) bool {
	if s[0] == '9' || s[:3] == "000" || s[:3] == "666" || s[3:5] == "00" || s[5:] == "0000" {
		return false
	}
	// Numbers that were printed in advertisements and never belonged to anyone else.
	return !oneOf("078051120 219099999 457555462 123456789 111111111", s)
}
