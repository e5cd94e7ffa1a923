package main

import (
	"fmt"
	"strings"
	"unicode"

	"weir/pii"
)

// form fills a pattern: # digit, @ capital, ? small letter, * capital or
// digit, % any of the three, ~ hexadecimal.
func (g *generator) form(pattern string) string {
	const digits, upper, lower, hex = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789abcdef"
	var b strings.Builder
	for _, r := range pattern {
		from := ""
		switch r {
		case '#':
			from = digits
		case '@':
			from = upper
		case '?':
			from = lower
		case '*':
			from = upper + digits
		case '%':
			from = upper + lower + digits
		case '~':
			from = hex
		default:
			b.WriteRune(r)
			continue
		}
		b.WriteByte(from[g.rng.IntN(len(from))])
	}
	return b.String()
}

// oneOf fills one of several patterns.
func (g *generator) oneOf(patterns ...string) string { return g.form(pick(g.rng, patterns)) }

// words picks one of several choices that a bar separates.
func (g *generator) words(choices string) string { return pick(g.rng, strings.Split(choices, "|")) }

// byLang picks from the choices of the document's language, or the English ones.
func (g *generator) byLang(m map[string]string) string {
	if c, ok := m[g.lang]; ok {
		return g.words(c)
	}
	return g.words(m["en"])
}

var months = map[string]string{
	"en": "January|February|March|April|May|June|July|August|September|October|November|December|Jan|Feb|Mar|Apr|Jun|Aug|Sept|Oct|Nov|Dec",
	"de": "Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember", "fr": "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre",
	"es": "de enero de|de febrero de|de marzo de|de abril de|de mayo de|de junio de|de julio de|de agosto de|de octubre de|de diciembre de", "it": "gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre",
	"pt": "de janeiro de|de fevereiro de|de março de|de abril de|de maio de|de junho de|de julho de|de agosto de|de setembro de|de outubro de", "nl": "januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december",
	"pl": "stycznia|lutego|marca|kwietnia|maja|czerwca|lipca|sierpnia|września|października|listopada|grudnia", "el": "Ιανουαρίου|Φεβρουαρίου|Μαρτίου|Απριλίου|Μαΐου|Ιουνίου|Ιουλίου|Αυγούστου|Οκτ|Νοε|Δεκ|Φεβ|Αυγ|Ιαν",
	"sv": "januari|februari|mars|april|maj|juni|juli|augusti|september|oktober|november|december", "da": "januar|februar|marts|april|maj|juni|juli|august|september|oktober|november|december",
}

// date draws a date of the years from to to, in a form of the language.
func (g *generator) date(from, to int) string {
	y, m, d := from+g.rng.IntN(to-from+1), 1+g.rng.IntN(12), 1+g.rng.IntN(28)
	switch g.lang {
	case "ja", "zh":
		if g.rng.IntN(3) > 0 {
			return fmt.Sprintf("%d年%d月%d日", y, m, d)
		}
	case "ko":
		if g.rng.IntN(2) > 0 {
			return fmt.Sprintf("%d년 %d월 %d일", y, m, d)
		}
	default:
		if g.rng.IntN(3) == 0 {
			month := g.byLang(months)
			if g.lang == "en" && g.rng.IntN(2) == 0 {
				return fmt.Sprintf("%s %d, %d", month, d, y)
			}
			return fmt.Sprintf("%d %s %d", d, month, y)
		}
	}
	forms := []string{"%04d-%02d-%02d", "%[3]d.%[2]d.%[1]d", "%[3]02d.%[2]02d.%[1]d", "%[3]02d/%[2]02d/%[1]d", "%[2]02d/%[3]02d/%[1]d", "%[2]d/%[3]d/%[1]d", "%[3]02d-%[2]02d-%[1]d"}
	return fmt.Sprintf(pick(g.rng, forms), y, m, d)
}

var phoneForms = map[string][]string{
	"en": {"+1 ### ### ####", "(###) 555-01##", "###-555-01##", "+44 20 7946 0###", "07700 900###", "+1-###-###-####", "##########", "+91 9#### #####", "02# #### ####", "### ### ####", "+61 4## ### ###"},
	"de": {"+49 1## #######", "0### #######", "0## ########", "01## ### ####", "+49 (0)## ######", "0###/######", "+43 6## ######", "+41 7# ### ## ##"}, "fr": {"0# ## ## ## ##", "+33 # ## ## ## ##", "06########", "0#.##.##.##.##"},
	"es": {"6## ### ###", "+34 6## ## ## ##", "9# ### ## ##", "6########", "+52 55 #### ####"}, "it": {"3## ### ####", "+39 3## #######", "0# #######", "0##/######"}, "pt": {"(##) 9####-####", "+55 11 9####-####", "+351 9## ### ###", "9########"},
	"nl": {"06-########", "06 ## ## ## ##", "0##-#######", "+31 6 ########"}, "pl": {"+48 ### ### ###", "### ### ###", "## ### ## ##", "###-###-###"}, "el": {"69########", "210 #######", "+30 69# ### ####", "69## ######"},
	"sv": {"07#-### ## ##", "+46 7# ### ## ##", "08-### ## ##"}, "da": {"## ## ## ##", "+45 ## ## ## ##", "########"}, "ar": {"05########", "+966 5# ### ####", "010########", "+20 10 #### ####"}, "ru": {"+7 9## ###-##-##", "8 (9##) ###-##-##", "89#########"}, "ja": {"090-####-####", "03-####-####", "080########", "+81 90-####-####"}, "ko": {"010-####-####", "02-###-####", "010########"}, "zh": {"13#########", "1## #### ####", "010-########", "+86 1## #### ####", "09##-###-###"},
}

var natForms = map[string][]string{
	"es": {"########@", "@#######@", "########-@"}, "pl": {"###########", "@@@######", "@@@ ######"}, "pt": {"###.###.###-##", "###########"}, "el": {"@@######", "@@ ######", "Α# ######"}, "sv": {"######-####", "########-####", "##########"}, "da": {"######-####", "######"},
	"ja": {"#### #### ####", "############"}, "ko": {"######-#######"}, "zh": {"##################", "#################X"}, "de": {"L########", "*********"}, "en": {"#### #### ####", "####-####-####", "@@#######@"}, "nl": {"#########"}, "it": {"@@#####@@"}, "fr": {"############"},
}

var medicine = map[string][2]string{
	"en": {"type 1 diabetes|asthma|HIV|epilepsy|major depression|anxiety disorder|breast cancer|stage 3 lung cancer|COPD|hepatitis C|multiple sclerosis|Parkinson's disease|lupus|a torn ligament|chronic migraine|anemia|ADHD|autism|bulimia|a stroke|high blood pressure|hypothyroidism|ulcerative colitis|endometriosis|kidney failure|PTSD|schizophrenia|a miscarriage|gout|sleep apnea|psoriasis|a heart attack|celiac disease|bipolar II disorder|a broken wrist|chlamydia|herpes|an eating disorder|dementia|a BRCA2 mutation", "metformin|sertraline|lisinopril|insulin|warfarin|prednisone|lithium|methotrexate|fluoxetine|Truvada|amlodipine|levothyroxine|gabapentin|Ozempic|citalopram|adalimumab|tamoxifen"},
	"de": {"Diabetes Typ 2|Asthma|Depression|Brustkrebs|Epilepsie|Rheuma|eine Angststörung|Bluthochdruck|Multiple Sklerose|Migräne|Herzinsuffizienz", ""}, "fr": {"diabète de type 2|asthme|dépression|un cancer du sein|épilepsie|hypertension|sclérose en plaques|migraines chroniques|la maladie de Crohn", ""},
	"es": {"diabetes tipo 2|asma|depresión|cáncer de mama|epilepsia|hipertensión|esclerosis múltiple|migraña crónica|artritis reumatoide", ""}, "it": {"diabete di tipo 2|asma|depressione|un tumore al seno|epilessia|ipertensione|sclerosi multipla|celiachia", ""}, "pt": {"diabetes tipo 2|asma|depressão|câncer de mama|epilepsia|hipertensão|esclerose múltipla|enxaqueca", ""},
	"nl": {"diabetes type 2|astma|een depressie|borstkanker|epilepsie|hoge bloeddruk|multiple sclerose|reuma", ""}, "pl": {"cukrzycę typu 2|astmę|depresję|raka piersi|padaczkę|nadciśnienie|stwardnienie rozsiane", ""}, "el": {"διαβήτη τύπου 2|άσθμα|κατάθλιψη|καρκίνο του μαστού|επιληψία|υπέρταση", ""},
	"sv": {"typ 2-diabetes|astma|depression|bröstcancer|epilepsi|högt blodtryck|multipel skleros", ""}, "da": {"type 2-diabetes|astma|depression|brystkræft|epilepsi|forhøjet blodtryk|sklerose", ""}, "ja": {"2型糖尿病|喘息|うつ病|乳がん|てんかん|高血圧|統合失調症", ""}, "ar": {"السكري|الربو|الاكتئاب|ارتفاع ضغط الدم|الصرع", ""}, "ru": {"диабет|астма|депрессия|гипертония|эпилепсия", ""}, "ko": {"제2형 당뇨병|천식|우울증|유방암|간질|고혈압", ""}, "zh": {"2型糖尿病|哮喘|抑郁症|乳腺癌|癫痫|高血压|乙肝", ""},
}

var ethnic = map[string]string{
	"en": "Nigerian|Turkish|Kurdish|Roma|Jewish|African American|Hispanic|Chinese|Syrian|Pakistani|Filipino|Mexican|Irish|Korean|Polish|Somali|Navajo|Latina|Arab|Vietnamese|Ukrainian|Moroccan|Bengali|Afghan|Brazilian",
	"de": "türkischer Herkunft|Kurde|Syrerin|Italiener|polnischer Abstammung|Roma", "fr": "algérien|marocaine|d'origine turque|kurde|rom|sénégalaise", "es": "gitano|ecuatoriana|marroquí|de origen chino|venezolano|rumana", "it": "albanese|marocchina|di origine rumena|rom|nigeriano", "pt": "negro|angolana|de origem japonesa|indígena|boliviano",
	"nl": "Marokkaans|van Turkse afkomst|Surinaams|Koerdisch", "sv": "kurd|same|av syrisk härkomst|somalier", "da": "kurder|af tyrkisk herkomst|grønlænder|somalisk", "zh": "维吾尔族|藏族|回族|朝鲜族", "ja": "在日韓国人|アイヌ", "pl": "Ukrainką|Romem",
}

// filled is a slot's text; the label is empty for what is not private.
func (g *generator) slot(name string) part {
	switch name {
	case "name", "nameuc", "namelc":
		g.who = g.person()
		return cased(g.who.full, name, pii.PersonName)
	case "=name":
		return part{g.who.full, pii.PersonName}
	case "first", "firstlc":
		p := g.person()
		if g.rng.IntN(2) == 0 {
			g.who = p
		}
		return cased(p.first, name, pii.PersonName)
	case "=first":
		return part{g.who.first, pii.PersonName}
	case "last":
		return part{g.person().last, pii.PersonName}
	case "=last":
		return part{g.who.last, pii.PersonName}
	case "city", "citylc", "cityO":
		return cased(g.city(), name, pii.Location)
	case "country", "countryuc":
		return cased(pick(g.rng, countries[min(len(countries)-1, g.countrySet())]), name, pii.Location)
	case "coords":
		return part{g.oneOf("##.####, -##.####", "##.#####,##.#####", "-##.####, ###.####"), pii.Location}
	case "org":
		return part{g.org(), pii.Organization}
	case "addr", "addrml", "street", "zip":
		a := g.address()
		return part{map[string]string{"addr": a.line, "addrml": a.lines, "street": a.street, "zip": a.zip}[name], pii.PostalAddress}
	}
	if p, ok := g.trait(name); ok {
		return p
	}
	if p, ok := g.identifier(name); ok {
		return p
	}
	return part{text: g.filler(name)}
}

func cased(s, slot string, l pii.Label) part {
	switch {
	case strings.HasSuffix(slot, "lc"):
		s = strings.ToLower(s)
	case strings.HasSuffix(slot, "uc"):
		s = strings.ToUpper(s)
	}
	return part{s, l}
}

var countries = [][]string{
	strings.Split("Germany|France|Spain|Canada|Nigeria|Brazil|Japan|USA|United Kingdom|India|Mexico|Poland|Italy|Kenya|Sweden|Greece|Australia|Turkey|Vietnam|Chile|Ireland|New Zealand|Egypt|Pakistan|Ukraine", "|"),
	strings.Split("Deutschland|Österreich|Schweiz|Frankreich|Polen|Türkei", "|"), strings.Split("España|México|Francia|Colombia|Argentina|Perú|Ecuador|Marruecos", "|"), strings.Split("France|Belgique|Suisse|Maroc|Algérie", "|"),
	strings.Split("日本|中国|韓国|アメリカ", "|"), strings.Split("中国|日本|美国|英国|加拿大|新加坡", "|"), strings.Split("대한민국|미국|일본|중국", "|"), strings.Split("مصر|السعودية|فرنسا|المغرب|العراق", "|"), strings.Split("Россия|Украина|Германия|Китай|Япония", "|"),
}

func (g *generator) countrySet() int {
	return map[string]int{"de": 1, "es": 2, "fr": 3, "ja": 4, "zh": 5, "ko": 6, "ar": 7, "ru": 8}[g.lang]
}

// trait draws what a person is, has or did.
func (g *generator) trait(name string) (part, bool) {
	n := 1 + g.rng.IntN(95)
	switch name {
	case "age":
		return part{g.words(fmt.Sprintf("%d years old|aged %d|%d-year-old|%d y/o|age %d|%d yrs old", n, n, n, n, n, n)), pii.Age}, true
	case "agep":
		return part{g.words(fmt.Sprintf("aged %d|%d years old|%d years of age", n, n, n)), pii.Age}, true
	case "agey":
		return part{g.words(fmt.Sprintf("%d-year-old|%d year old|%d yo|%dyo", n, n, n, n)), pii.Age}, true
	case "agen":
		if g.rng.IntN(8) == 0 {
			n = 90 + g.rng.IntN(15)
		}
		return part{fmt.Sprint(n), pii.Age}, true
	case "agen_anos":
		return part{g.words(fmt.Sprintf("%d años|%d años|%d meses|%daños", n, n, n, n)), pii.Age}, true
	case "sexn":
		return part{g.words("male|female|man|woman"), pii.SexualityOrGender}, true
	case "sexw":
		return part{g.words("male|female|Male|Female|M|F|non-binary|Woman|Man"), pii.SexualityOrGender}, true
	case "sexhm":
		return part{g.words("H|M|Varón|Mujer|Hombre"), pii.SexualityOrGender}, true
	case "sexes":
		return part{g.words("varón|mujer|hombre|niña|niño|masculino|femenina"), pii.SexualityOrGender}, true
	case "sex":
		return part{g.byLang(map[string]string{
			"en": "gay|lesbian|bisexual|trans|transgender|a trans man|non-binary|asexual|queer|pansexual|intersex", "de": "lesbisch|schwul|bisexuell|trans|nichtbinär", "fr": "lesbienne|homosexuelle|bisexuelle|trans|non binaire",
			"es": "lesbiana|bisexual|trans|no binaria", "it": "lesbica|bisessuale|trans", "pt": "lésbica|bissexual|trans", "nl": "lesbisch|biseksueel|trans",
		}), pii.SexualityOrGender}, true
	case "cond":
		m := medicine[g.lang]
		label := pii.HealthData
		if g.neutral {
			label = ""
		}
		return part{g.words(m[0]), label}, true
	case "condO":
		return part{text: g.words(medicine[g.lang][0])}, true
	case "drug":
		label := pii.HealthData
		if g.neutral {
			label = ""
		}
		return part{g.words(medicine["en"][1]), label}, true
	case "eth":
		return part{g.byLang(ethnic), pii.EthnicityOrNationality}, true
	case "bel":
		return part{g.words("a Muslim|Catholic|a Buddhist|Jewish Orthodox|a Jehovah's Witness|an atheist|a Mormon|a Sikh|Hindu|a member of the teachers' union|a union rep|a Republican|a registered Democrat|a member of the Labour Party|a Baptist|Lutheran|a communist|a Scientologist|a Freemason|an evangelical|a pacifist"), pii.BeliefOrAffiliation}, true
	case "belx":
		return part{text: g.words("Buddhist|Hindu|Catholic|Sikh|Muslim")}, true
	case "crim":
		return part{g.byLang(map[string]string{
			"en": "was convicted of fraud|has a criminal record|served two years for robbery|was arrested for drunk driving|is on parole|has a felony conviction|was charged with theft|has an outstanding warrant|was sentenced to 18 months|is a registered sex offender|pleaded guilty to assault",
			"de": "wurde wegen Betrugs verurteilt|ist vorbestraft|sitzt wegen Diebstahls in Haft", "fr": "a été condamné pour vol|a un casier judiciaire|est en liberté conditionnelle", "es": "fue condenado por robo|tiene antecedentes penales|está en libertad condicional",
			"it": "è stato condannato per furto|ha precedenti penali", "pt": "foi condenado por roubo|tem antecedentes criminais", "nl": "is veroordeeld voor diefstal|heeft een strafblad", "pl": "został skazany za kradzież|był karany", "sv": "dömdes för stöld|är tidigare straffad",
		}), pii.CriminalRecord}, true
	}
	return part{}, false
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x250 || !unicode.IsLetter(r) {
			return -1
		}
		if r = unicode.ToLower(r); r > 'z' {
			return 'o'
		}
		return r
	}, s)
}
