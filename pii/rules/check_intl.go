package rules

import "strings"

// international holds what banks, telephones and vehicles are known by.
func international() map[string]check {
	return map[string]check{
		"bic":         bic,
		"card":        card,
		"card_common": func(s string) bool { return card(s) && commonCard(s) },
		"iban":        iban,
		"iccid":       func(s string) bool { return (len(s) == 19 || len(s) == 20) && s[:2] == "89" && luhn(s) },
		"imei":        digitsCheck(15, func(s string) bool { return !uniform(s) && luhn(s) }),
		"isin":        isin,
		"lei":         func(s string) bool { return len(s) == 20 && digitsOnly(s[18:]) && mod97(s) == 1 },
		"luhn":        luhn,
		"plate":       plate,
		"vat":         vat,
		"vin":         vin,
	}
}

// ibanLengths is the register of countries and lengths.
const ibanLengths = "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30"

func ibanLen(country string) int {
	for i := 0; i+4 <= len(ibanLengths); i += 4 {
		if ibanLengths[i:i+2] == country {
			return num(ibanLengths[i+2 : i+4])
		}
	}
	return 0
}

func iban(s string) bool {
	if len(s) < 15 || !digitsOnly(s[2:4]) || ibanLen(s[:2]) != len(s) {
		return false
	}
	return mod97(s[4:]+s[:4]) == 1 && num(s[2:4]) >= 2
}

// card tests issuer range, length and the Luhn digit.
func card(s string) bool {
	n := len(s)
	if n < 13 || n > 19 || !digitsOnly(s) {
		return false
	}
	p2, p4 := num(s[:2]), num(s[:4])
	ok := false
	switch {
	case s[0] == '4':
		ok = n == 13 || n == 16 || n == 19
	case p2 >= 51 && p2 <= 55, p4 >= 2221 && p4 <= 2720:
		ok = n == 16
	case p2 == 34 || p2 == 37:
		ok = n == 15
	case p4 == 6011, p2 == 65, p4 >= 6440 && p4 <= 6499:
		ok = n >= 16
	case p2 == 35:
		ok = n >= 16
	case p2 == 62, p2 == 81:
		ok = n >= 16
	case p2 == 36, p2 == 38, p2 == 39, p4 >= 3000 && p4 <= 3059:
		ok = n == 14 || n == 16 || n == 19
	case p2 == 50, p2 >= 56 && p2 <= 69, p4 >= 2200 && p4 <= 2204:
		ok = n >= 15
	}
	return ok && luhn(s)
}

// commonCard leaves out issuers and lengths that are seldom seen, so that the
// number may stand without a word about cards.
func commonCard(s string) bool {
	switch {
	case s[:2] == "62":
		return true
	case s[0] == '3':
		return len(s) == 14 && s[1] != '7' && s[1] != '4' || len(s) == 15 || len(s) == 16 && s[1] == '5'
	case s[0] == '4', s[0] == '2', s[0] == '5' && s[1] >= '1' && s[1] <= '5', s[:4] == "6011", s[:2] == "65", s[:2] == "64":
		return len(s) == 16
	}
	return false
}

func bic(s string) bool {
	return (len(s) == 8 || len(s) == 11) && letters(s[:6]) && country(s[4:6])
}

func isin(s string) bool {
	if len(s) != 12 || !letters(s[:2]) {
		return false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if v := alnumValue(s[i]); v > 9 {
			b.WriteByte(byte('0' + v/10))
			b.WriteByte(byte('0' + v%10))
		} else {
			b.WriteByte(s[i])
		}
	}
	return luhn(b.String()) && (country(s[:2]) || s[:2] == "XS" || s[:2] == "EU")
}

// country reports an ISO 3166 code.
func country(s string) bool {
	const all = "ADAEAFAGAIALAMAOAQARASATAUAWAXAZBABBBDBEBFBGBHBIBJBLBMBNBOBQBRBSBTBVBWBYBZCACCCDCFCGCHCICKCLCMCNCOCRCUCVCWCXCYCZDEDJDKDMDODZECEEEGEHERESETFIFJFKFMFOFRGAGBGDGEGFGGGHGIGLGMGNGPGQGRGSGTGUGWGYHKHMHNHRHTHUIDIEILIMINIOIQIRISITJEJMJOJPKEKGKHKIKMKNKPKRKWKYKZLALBLCLILKLRLSLTLULVLYMAMCMDMEMFMGMHMKMLMMMNMOMPMQMRMSMTMUMVMWMXMYMZNANCNENFNGNINLNONPNRNUNZOMPAPEPFPGPHPKPLPMPNPRPSPTPWPYQARERORSRURWSASBSCSDSESGSHSISJSKSLSMSNSOSRSSSTSVSXSYSZTCTDTFTGTHTJTKTLTMTNTOTRTTTVTWTZUAUGUMUSUYUZVAVCVEVGVIVNVUWFWSXKYEYTZAZMZW"
	for i := 0; i+2 <= len(all); i += 2 {
		if all[i:i+2] == s {
			return true
		}
	}
	return false
}

func vin(s string) bool {
	if len(s) != 17 || strings.ContainsAny(s, "IOQ") || s[:2] == "0X" || digitsOnly(s) || letters(s) {
		return false
	}
	const value = "12345678 12345 7 923456789" // A to Z without I, O, Q
	sum := 0
	for i, w := range [...]int{8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2} {
		v := int(s[i] - '0')
		if s[i] >= 'A' {
			v = int(value[s[i]-'A'] - '0')
		}
		sum += w * v
	}
	return "0123456789X"[sum%11] == s[8]
}

// vat tests the European VAT numbers whose check digits are published and are
// the same as another identifier's.
func vat(s string) bool {
	if len(s) < 4 {
		return false
	}
	west, east := europeWest(), europeEast()
	n := s[2:]
	switch s[:2] {
	case "AT":
		return len(n) == 9 && n[0] == 'U' && digitsOnly(n[1:]) && (10-(crossSum(n[1:], 1, 2, 1, 2, 1, 2, 1)+4)%10)%10 == int(n[8]-'0')
	case "BE":
		return len(n) == 10 && digitsOnly(n) && n[0] <= '1' && 97-num(n[:8])%97 == num(n[8:])
	case "DE":
		return west["de_ust_id"](s)
	case "EL", "GR":
		return west["gr_afm"](n)
	case "ES":
		return west["es_cif"](n) || west["es_dni"](n) || west["es_nie"](n)
	case "FR":
		return len(n) == 11 && digitsOnly(n) && luhn(n[2:]) && (12+3*(num(n[2:])%97))%97 == num(n[:2])
	case "HR":
		return east["hr_oib"](n)
	case "IT":
		return west["it_iva"](n)
	case "NL":
		return len(n) == 12 && n[9] == 'B' && digitsOnly(n[:9]) && (nlBSN(n[:9]) || mod97(s) == 1)
	case "PL":
		return east["pl_nip"](n)
	case "PT":
		return west["pt_nif"](n)
	case "SE":
		return len(n) == 12 && digitsOnly(n) && n[10:] == "01" && luhn(n[:10])
	case "EE", "LT", "LV", "FI", "DK":
		return len(n) >= 8 && digitsOnly(n) && len(n) <= 11
	}
	return false
}

// plate tests the length of a licence plate only: its shape is the country's
// own affair. A list as K1 K2 K3 is none.
func plate(s string) bool {
	changes := 0
	for i := 1; i < len(s); i++ {
		if (s[i] <= '9') != (s[i-1] <= '9') {
			changes++
		}
	}
	return len(s) >= 5 && len(s) <= 10 && changes <= 4
}
