package main

import (
	"fmt"
	"strings"

	"weir/pii"
)

// identifier draws numbers, secrets and addresses on a network. Check digits
// are left to chance: the recognizers judge them, the tagger learns what stands
// around them.
func (g *generator) identifier(name string) (part, bool) {
	one := func(l pii.Label, patterns ...string) (part, bool) { return part{g.oneOf(patterns...), l}, true }
	switch name {
	case "phone":
		return one(pii.PhoneNumber, phoneForms[g.lang]...)
	case "email":
		return part{g.email(), pii.EmailAddress}, true
	case "dob":
		return part{g.date(1930, 2012), pii.DateOfBirth}, true
	case "date":
		return part{g.date(1995, 2026), pii.PersonalDate}, true
	case "user":
		return part{g.user(), pii.Username}, true
	case "usern":
		return part{strings.TrimPrefix(g.user(), "@"), pii.Username}, true
	case "pw":
		return part{g.password(), pii.Password}, true
	case "pin":
		return one(pii.Password, "####", "######")
	case "apikey":
		return one(pii.APIKey, "sk-%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%", "ghp_%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%", "AIza%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%", "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~", "%%%%%%%%%%%%%%%%%%%%%%%%", "key-~~~~~~~~~~~~~~~~~~~~~~~~", "AKIA****************")
	case "tok":
		return one(pii.AuthToken, "eyJ%%%%%%%%%%%%%%%%%%%%.eyJ%%%%%%%%%%%%%%%%%%%%%%%%%%.%%%%%%%%%%%%%%%%%%%%%%%%%%%", "ya29.%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%", "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~", "%%%%%%%%%%%%%%%%%%%%%%%%%%")
	case "dsn":
		return part{g.form(g.words("postgres|mysql|mongodb+srv|redis|amqp") + "://?????:%%%%%%%%%%@db." + g.words("internal|corp|prod") + ".example:####/" + g.words("app|users|orders")), pii.ConnectionString}, true
	case "ip":
		if g.rng.IntN(4) == 0 {
			return one(pii.IPAddress, "2001:db8:~~~~::~~~~", "fe80::~~~~:~~~~:~~~~:~~~~", "2001:db8:~~~:~~~~:~~~~:~~~~:~~~~:~~~~")
		}
		return part{fmt.Sprintf("%d.%d.%d.%d", 11+g.rng.IntN(212), g.rng.IntN(256), g.rng.IntN(256), 1+g.rng.IntN(254)), pii.IPAddress}, true
	case "mac":
		return one(pii.DeviceID, "~~:~~:~~:~~:~~:~~", "~~-~~-~~-~~-~~-~~")
	case "imei":
		return one(pii.DeviceID, "35#############", "86#############")
	case "url":
		return part{g.words("https://www.linkedin.com/in/|linkedin.com/in/|https://github.com/|twitter.com/|https://instagram.com/|facebook.com/|https://www.strava.com/athletes/|t.me/") + strings.TrimPrefix(g.user(), "@"), pii.PersonalURL}, true
	case "plate":
		return one(pii.VehicleID, "@@## @@@", "@-@@ ####", "@@@ ####", "#@@@###", "@@ ### @@", "####@@@", "@@-###-@@", "@@@-####", "@@@@#####", "##-@@-##")
	case "vin":
		return one(pii.VehicleID, "*****************")
	case "iban":
		return one(pii.IBAN, "DE## #### #### #### #### ##", "FR## #### #### #### #### #### ###", "ES## #### #### #### #### ####", "GB## @@@@ #### #### #### ##", "PL##########################", "NL## @@@@ #### #### ##", "IT## @### #### #### #### #### ###", "GR## #### #### #### #### #### ###")
	case "card":
		return one(pii.PaymentCard, "4### #### #### ####", "5###-####-####-####", "4###############", "3### ###### #####", "5###############", "6011 #### #### ####")
	case "cvc":
		return one(pii.CardSecurityCode, "###", "####")
	case "exp":
		return part{fmt.Sprintf("%02d/%d", 1+g.rng.IntN(12), 25+g.rng.IntN(9)), pii.CardSecurityCode}, true
	case "bank":
		return one(pii.BankAccount, "########", "##########", "############", "#########", "#######")
	case "sort":
		return one(pii.BankAccount, "##-##-##", "######")
	case "ssn":
		switch g.lang {
		case "fr":
			return one(pii.SocialSecurityNumber, "# ## ## ## ### ### ##", "###############", "1 ## ## ## ### ###")
		case "de":
			return one(pii.SocialSecurityNumber, "## ###### @ ###", "########@###")
		case "nl":
			return one(pii.SocialSecurityNumber, "#########")
		case "el":
			return one(pii.SocialSecurityNumber, "###########", "###### #####", "######-#####")
		}
		return one(pii.SocialSecurityNumber, "###-##-####", "#########", "### ## ####", "@@ ## ## ## @", "### ### ###")
	case "natid":
		return one(pii.NationalID, natForms[g.lang]...)
	case "tax":
		switch g.lang {
		case "it":
			return one(pii.TaxID, "@@@@@@##@##@###@")
		case "pl":
			return one(pii.TaxID, "##########", "###-###-##-##", "#########")
		case "de":
			return one(pii.TaxID, "## ### ### ###", "###########", "DE#########")
		case "el":
			return one(pii.TaxID, "#########", "EL#########")
		}
		return one(pii.TaxID, "##-#######", "9##-7#-####", "@@@@@####@", "##########", "GB### #### ##")
	case "passport":
		return one(pii.PassportNumber, "#########", "@########", "@@#######", "C********", "@@######")
	case "dl":
		return one(pii.DriverLicense, "@#######", "@@@@@######@@#@@", "########", "@###-####-####", "#####/##/####", "@############", "#########")
	case "mrn":
		return one(pii.MedicalRecordNumber, "MRN-######", "#######", "########", "###-##-####", "@#######", "H######")
	case "hid":
		return one(pii.HealthInsuranceID, "### ### ####", "#@@#-@@#-@@##", "@#########", "##########", "@@@#########", "## ######## ##")
	case "wallet":
		return one(pii.CryptoWallet, "0x~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~", "bc1q??????????????????????????????????????", "1%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%")
	case "acct":
		return one(pii.AccountID, "CUST-######", "EMP-#####", "POL-####-####", "########", "#########", "@@-#######", "@@@#####", "ST######", "#-####-####", "@#####")
	}
	return part{}, false
}

func (g *generator) user() string {
	p := g.person()
	a, b := lowerASCII(p.first), lowerASCII(p.last)
	if a == "" || b == "" {
		a, b = g.form("????"), g.form("?????")
	}
	w := strings.ToLower(pick(g.rng, orgWords))
	u := pick(g.rng, []string{a + b, a + "." + b, a[:1] + b, a + g.form("##"), a + "_" + b, w + g.form("###"), w + "_" + a, "svc-" + w, "xx" + a + "xx", a + "_the_" + w, w + a, b + g.form("####"), title(a) + title(b), a + "-" + w})
	if g.rng.IntN(3) == 0 {
		return "@" + u
	}
	return u
}

func (g *generator) email() string {
	return strings.TrimPrefix(g.user(), "@") + "@" + g.words("gmail.com|outlook.com|yahoo.com|web.de|example.com|mail.example|"+strings.ToLower(pick(g.rng, orgWords))+".example|"+strings.ToLower(pick(g.rng, orgWords))+".com")
}

func (g *generator) password() string {
	w, v := pick(g.rng, orgWords), pick(g.rng, orgWords)
	return pick(g.rng, []string{
		w + g.form("##") + "!", strings.ToLower(w) + g.form("####"), g.form("%%%%%%%%%%"), g.form("%%%%#%%@%") + "#", w + "-" + v + "-" + g.form("##"), strings.ToLower(w) + "-" + strings.ToLower(v) + "-" + strings.ToLower(pick(g.rng, orgWords)),
		w + g.words("!|@|#|$|*|&") + g.form("####"), g.form("%%%%") + g.words("!|@|#|$|%|^") + g.form("%%%%%"), "hunter" + g.form("#"), "Summer" + g.form("20##") + "!", strings.ToLower(w) + "_" + g.form("###"), g.form("????????"), "P@ss" + g.form("####"),
		strings.ReplaceAll(strings.ToLower(w), "o", "0") + "&" + g.form("##"),
	})
}

var fillers = map[string]string{
	"mr":    "Mr|Mrs|Ms|Mr.|Ms.|Mrs.|Dr|Dr.|Prof.|Professor|Miss",
	"title": "Head of Sales|Managing Director|Senior Engineer|Account Manager|CEO|Office Manager|HR Business Partner|Attorney at Law",
	"job":   "nurse|teacher|software engineer|driver|accountant|plumber|chief executive|lawyer|chef|electrician|designer|mayor|spokesman|coach|professor",
	"word":  "budget|project|release|invoice|roadmap|garden|signal|render|cache|billing|weather|payment|table|network|lighthouse|forest|update|parser|handler|widget|backup|travel|safety|privacy",
	"lib":   "numpy|react|django|postgres|redis|kubernetes|tensorflow|spring-boot|express|pandas|rails|vue|kafka|terraform|golang|rust|nginx|ubuntu|openssl|jackson|lodash|pytest|webpack|flask|laravel|angular|java|python|julia|ruby|scala|swift|jenkins|apache|grafana|elastic",
	"corp":  "Apple|Google|Microsoft|Amazon|Tesla|Samsung|Netflix|Intel|Nvidia|Toyota|Siemens|IKEA|Nike|Adobe|Oracle|IBM|Sony|Spotify|Airbus|Boeing|Ford|Mercedes|McDonald's|Dell|Lenovo",
	"food":  "lasagna|tomato soup|pancakes|paella|pad thai|chicken curry|goulash|risotto|hummus|ramen|tiramisu|falafel|moussaka",
	"KEY":   "API_KEY|OPENAI_API_KEY|STRIPE_SECRET|ACCESS_KEY|SERVICE_TOKEN|APP_SECRET",
}

var days = map[string]string{
	"en": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|tomorrow|next week|5 May|June 3", "de": "Montag|Dienstag|Mittwoch|Freitag|3. Mai|12. März", "fr": "lundi|mardi|mercredi|vendredi|3 mai", "es": "lunes|martes|viernes|3 de mayo", "it": "lunedì|martedì|venerdì|3 maggio", "pt": "segunda-feira|terça|sexta",
	"nl": "maandag|dinsdag|vrijdag|3 mei", "pl": "poniedziałek|wtorek|piątek", "el": "Δευτέρα|Τρίτη|Παρασκευή", "sv": "måndag|tisdag|fredag|3 maj", "da": "mandag|tirsdag|fredag|3. maj", "ja": "月曜日|火曜日|金曜日|5月3日", "ko": "월요일|화요일|금요일|5월 3일", "zh": "星期一|星期二|周五|5月3日",
}

// filler draws what is nobody's in particular.
func (g *generator) filler(name string) string {
	switch name {
	case "day":
		return g.byLang(days)
	case "place", "placeO":
		if g.rng.IntN(3) == 0 || len(g.pool.city) == 0 {
			return pick(g.rng, countries[g.countrySet()])
		}
		return g.city()
	case "year":
		return fmt.Sprint(1960 + g.rng.IntN(66))
	case "num":
		return fmt.Sprint(g.rng.IntN(pick(g.rng, []int{10, 60, 500, 100000, 99999999})))
	case "price":
		return fmt.Sprintf(pick(g.rng, []string{"$%d", "%d €", "%d.99", "EUR %d", "£%d", "%d,00 EUR", "%d USD", "%d zł", "%d円", "%d元", "R$ %d"}), 1+g.rng.IntN(5000))
	case "time":
		return fmt.Sprintf("%d:%02d", g.rng.IntN(24), g.rng.IntN(60))
	case "ver":
		return g.oneOf("#.#.#", "#.##", "v#.#.##", "#.#", "##.##.#", "#.#.#-rc#")
	case "sha":
		return g.oneOf("~~~~~~~", "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~")
	case "uuid":
		return g.form("~~~~~~~~-~~~~-4~~~-a~~~-~~~~~~~~~~~~")
	case "sku":
		return g.oneOf("@@@-####", "####-##", "SKU#####", "@@-##", "ORD-######", "@@@@-###")
	case "isodate":
		return fmt.Sprintf("20%02d-%02d-%02d", g.rng.IntN(27), 1+g.rng.IntN(12), 1+g.rng.IntN(28))
	case "ts", "datet":
		return fmt.Sprintf("20%02d-%02d-%02dT%02d:%02d:%02dZ", g.rng.IntN(27), 1+g.rng.IntN(12), 1+g.rng.IntN(28), g.rng.IntN(24), g.rng.IntN(60), g.rng.IntN(60))
	}
	if c, ok := fillers[name]; ok {
		return g.words(c)
	}
	panic("no slot " + name)
}
