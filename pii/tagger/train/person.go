package main

import (
	"strings"
	"unicode"
)

// person is a name in parts.
type person struct {
	first, last, full string
	fused             bool // written without a blank, as in Chinese
}

// wide reports languages that write no blanks.
func wide(lang string) bool { return lang == "ja" || lang == "ko" || lang == "zh" }

// person draws a name that is usual in a language, or from anywhere.
func (g *generator) person() person {
	q := g.pool
	roll := g.rng.Float64()
	fused := wide(g.lang)
	switch {
	case roll < 0.12:
		q, fused = pick(g.rng, g.p.any), false
	case roll < 0.3 && !fused:
		q = &g.p.listed
	case roll < 0.36 && !fused:
		return g.chinese()
	case roll < 0.42 && !fused:
		return compose(g.invent(), g.invent())
	}
	if g.lang == "zh" || g.lang == "ja" {
		switch n := g.rng.IntN(12); {
		case n < 2:
			return g.foreign()
		case n < 4 && len(q.full) > 0:
			name := pick(g.rng, q.full)
			return person{first: name, last: name, full: name, fused: true}
		}
	}
	if len(q.first) == 0 || len(q.last) == 0 {
		q, fused = &g.p.listed, false
	}
	first, last := pick(g.rng, q.first), pick(g.rng, q.last)
	if r := []rune(last); len(r) > 0 && unicode.Is(unicode.Han, r[0]) || unicode.Is(unicode.Hangul, r[0]) {
		fused = true
	}
	if fused {
		p := person{first: first, last: last, full: last + first, fused: true}
		if g.rng.IntN(6) == 0 {
			p.full = last + " " + first
		}
		return p
	}
	if (g.lang == "es" || g.lang == "pt") && g.rng.IntN(3) == 0 {
		last += " " + pick(g.rng, q.last)
	}
	if g.rng.IntN(14) == 0 {
		last += "-" + pick(g.rng, q.last)
	}
	if g.rng.IntN(14) == 0 {
		first += pick(g.rng, []string{"-", " "}) + pick(g.rng, q.first)
	}
	if g.rng.IntN(25) == 0 {
		last = pick(g.rng, []string{"van ", "van der ", "de ", "von ", "O'", "Mc", "di ", "da ", "El ", "Al-", "Ben ", "dos ", "del ", "ter "}) + last
	}
	p := compose(first, last)
	initial := string([]rune(first)[:1]) + "."
	switch g.rng.IntN(16) {
	case 0:
		p.full = first + " " + string(rune('A'+g.rng.IntN(26))) + ". " + last
	case 1:
		p.full = last + ", " + first
	case 2:
		p.full = initial + " " + last
	case 3:
		p.full = first + " " + pick(g.rng, q.first) + " " + last
	case 4:
		if g.rng.IntN(2) == 0 {
			p.full = last + " " + first
		}
	}
	return p
}

func compose(first, last string) person {
	return person{first: first, last: last, full: first + " " + last}
}

var (
	pinyinLast  = strings.Fields("Zhang Wang Li Liu Chen Yang Zhao Huang Zhou Wu Xu Sun Hu Zhu Gao Lin He Guo Ma Luo Liang Song Zheng Xie Han Tang Feng Yu Dong Xiao Cheng Cao Yuan Deng Fu Shen Zeng Peng Lu Su Jiang Cai Jia Ding Wei Xue Ye Yan Pan Du Dai Xia Zhong Tian Ren Fan Fang Shi Yao Tan Liao Zou Xiong Jin Kong Bai Cui Kang Mao Qiu Qin Gu Hou Shao Meng Long Wan Duan")
	pinyinGiven = strings.Fields("jian guo wei xiu ying lei hao ming xuan li na yan jing hui min fang juan ting yu xin chen yi ru bo tao peng jun qiang long fei rui jie kai zhi yong hong mei lan zhen hua dong ping gang bin chao hai xiao wen bao zhong shu qing ning yue meng si jia lin han zi mo rong cheng sheng fu gui lian yun xia feng guang ke da shan shao chun")
	syllables   = strings.Fields("ka ri mo len dra vi so tu bel nor ash win el ja mar ko ti sa ne ro han gor ev il ba cha do fe gi lu mi pa qua sto thi ul va xe yo zu bra cle fre gla hol ing jor kel lam mun ost pel rud sven tor vel wes yar zan")
)

// chinese draws a Chinese name in Latin letters.
func (g *generator) chinese() person {
	given := pick(g.rng, pinyinGiven)
	if g.rng.IntN(3) > 0 {
		given += pick(g.rng, pinyinGiven)
	}
	given = title(given)
	p := person{first: given, last: pick(g.rng, pinyinLast)}
	p.full = p.last + " " + given
	if g.rng.IntN(5) == 0 {
		p.full = given + " " + p.last
	}
	return p
}

var (
	sounds   = []rune("阿巴卡達德迪多爾法菲格哈漢伊傑科克拉萊蘭勒里利林盧羅馬曼米莫納尼諾帕佩皮奇薩塞斯蘇塔特托瓦維溫沃西謝雅耶約达尔汉杰莱兰卢罗马纳诺萨苏维温谢约贝伯博布查戴登费弗戈古海霍吉金凯肯莉丽琳娜妮珀乔桑森史泰汤姆韦威休")
	katakana = strings.Fields("ア イ ウ エ オ カ キ ク ケ コ サ シ ス セ ソ タ ティ ト ナ ニ ネ ノ ハ ヒ フ ヘ ホ マ ミ ム メ モ ラ リ ル レ ロ ワ ン ー ガ ギ グ ゴ ザ ジ ズ ダ デ ド バ ビ ブ ベ ボ パ ピ ペ ポ ジェ シャ チャ ジョ ファ フィ ヴィ ッ")
)

// foreign draws a foreign name by its sound.
func (g *generator) foreign() person {
	word := func() string {
		w := ""
		for range 2 + g.rng.IntN(3) {
			if g.lang == "ja" {
				w += pick(g.rng, katakana)
			} else {
				w += string(pick(g.rng, sounds))
			}
		}
		return w
	}
	p := person{first: word(), last: word(), fused: true}
	p.full = p.first + pick(g.rng, []string{"·", "・", "‧"}) + p.last
	if g.rng.IntN(3) == 0 {
		p.full = p.last
	}
	return p
}

// invent makes up a name, so that the form of names is learned besides their
// list.
func (g *generator) invent() string {
	w := pick(g.rng, syllables)
	for range 1 + g.rng.IntN(2) {
		w += pick(g.rng, syllables)
	}
	return title(w)
}

var orgWords = strings.Fields("Northgate Bluewater Silverline Apex Horizon Cedar Granite Falcon Summit Harbor Beacon Evergreen Pioneer Cobalt Sterling Crescent Orion Atlas Meridian Vertex Lakeside Riverside Oakwood Maple Phoenix Liberty Keystone Frontier Cascade Redwood Aurora Zenith Nova Quantum Vector Delta Omega Alpha Onyx Ember Nimbus Willow Juniper Amber Quartz")

// trades are what firms name themselves after.
var trades = map[string]string{
	"en": "Data|Systems|Energy|Foods|Media|Health|Design|Motors|Capital|Labs|Travel|Books|Security|Robotics|Textiles|Home Care|Legal|Fitness|Music|Games",
	"de": "Bau|Technik|Handel|Logistik|Energie|Medien|Möbel|Gesundheit|Druck|Immobilien|Software|Gartenbau", "fr": "Bâtiment|Énergie|Conseil|Transports|Mode|Santé|Presse|Assurances|Distribution|Meubles",
	"es": "Construcciones|Energía|Transportes|Seguros|Consultores|Alimentación|Muebles|Servicios|Distribuciones", "it": "Costruzioni|Energia|Trasporti|Assicurazioni|Consulenza|Alimentari|Arredamenti|Servizi", "pt": "Construções|Energia|Transportes|Seguros|Consultoria|Alimentos|Móveis|Serviços",
	"nl": "Bouw|Energie|Transport|Verzekeringen|Advies|Meubelen|Techniek|Media", "pl": "Budownictwo|Energia|Transport|Ubezpieczenia|Doradztwo|Meble|Usługi|Nowoczesne Systemy|Rozwój|Dom i Ogród|Zdrowie|Spożywcza|Innowacje|Projekt|Inwestycje Miejskie|Edukacja|Druk",
	"el": "Κατασκευές|Ενέργεια|Μεταφορές|Τρόφιμα|Υπηρεσίες", "sv": "Bygg|Energi|Transport|Försäkring|Konsult|Möbler", "da": "Byg|Energi|Transport|Forsikring|Rådgivning|Møbler",
}

var joiners = map[string]string{"en": " & | and ", "de": " & | und ", "fr": " & | et ", "es": " y ", "it": " e ", "pt": " e ", "nl": " & | en ", "pl": " i |-| oraz ", "el": " και ", "sv": " & | och ", "da": " & | og "}

var orgKinds = map[string][]string{
	"en": {"%s Bank", "%s Clinic", "%s University", "University of %s", "%s Hospital", "St. %s Hospital", "%s Inc.", "%s LLC", "%s Ltd", "%s Ltd.", "%s Corp", "%s Group", "%s Foundation", "%s Logistics", "%s Insurance", "%s & Sons", "%s Consulting", "%s High School", "%s Medical Center", "%s Solutions", "%s Church", "%s Institute", "%s FC", "%s Police Department", "%s County Council", "%s Airlines", "%s Software", "Bank of %s", "%s Partners LLP", "%s Café"},
	"de": {"%s GmbH", "%s AG", "%s GmbH & Co. KG", "Universität %s", "Klinikum %s", "Sparkasse %s", "Stadtwerke %s", "%s e.V.", "Volksbank %s", "Technische Universität %s", "%s-Gymnasium", "FC %s", "%s Versicherung", "Bäckerei %s", "Autohaus %s", "%s KG"},
	"fr": {"%s SA", "%s SARL", "Université de %s", "Hôpital %s", "CHU de %s", "Banque %s", "Lycée %s", "Clinique %s", "Société %s", "Mairie de %s", "Groupe %s", "Association %s", "%s SAS", "Éditions %s"},
	"es": {"%s S.A.", "%s S.L.", "Universidad de %s", "Hospital %s", "Hospital General de %s", "Hospital Universitario %s", "Clínica %s", "Banco %s", "Ayuntamiento de %s", "Instituto %s", "Grupo %s", "Colegio %s"},
	"it": {"%s S.p.A.", "%s S.r.l.", "Università di %s", "Ospedale %s", "Banca %s", "Comune di %s", "Clinica %s", "Liceo %s", "Gruppo %s"},
	"pt": {"%s Ltda.", "%s S.A.", "Universidade de %s", "Hospital %s", "Banco %s", "Prefeitura de %s", "Clínica %s", "Grupo %s", "Colégio %s"},
	"nl": {"%s B.V.", "%s N.V.", "Universiteit %s", "Ziekenhuis %s", "Gemeente %s", "Bakkerij %s", "Stichting %s", "%s Bank", "Bouwbedrijf %s"},
	"pl": {"%s Sp. z o.o.", "%s S.A.", "Uniwersytet w %s", "Szpital %s", "Bank %s", "Fabryka %s", "Zakład %s sp. j.", "Przychodnia %s", "Hurtownia %s", "Grupa %s"},
	"ar": {"شركة %s", "جامعة %s", "مستشفى %s", "بنك %s", "مؤسسة %s", "بلدية %s", "نادي %s"},
	"ru": {"ООО «%s»", "ЗАО «%s»", "%s Банк", "Университет %s", "Больница %s", "ФК «%s»", "Завод %s"},
	"el": {"%s Α.Ε.", "Πανεπιστήμιο %s", "Νοσοκομείο %s", "Τράπεζα %s", "%s ΕΠΕ", "Δήμος %s"},
	"sv": {"%s AB", "%s universitet", "%s sjukhus", "%s kommun", "Stiftelsen %s", "%s Bank"},
	"da": {"%s A/S", "%s ApS", "%s Universitet", "%s Kommune", "%s Sygehus", "%s Bank", "%s Boldklub"},
	"ja": {"株式会社%s", "%s株式会社", "%s大学", "%s病院", "%s銀行", "%s高校", "%s商事", "有限会社%s", "%s建設", "%s市役所", "%s新聞"},
	"ko": {"%s주식회사", "(주)%s", "%s대학교", "%s병원", "%s은행", "%s고등학교", "%s전자", "%s건설"},
	"zh": {"%s有限公司", "%s科技有限公司", "%s大学", "%s医院", "%s银行", "%s中学", "%s集团", "%s股份有限公司", "%s局", "%s報", "%s研究所"},
}

// org draws the name of an organization.
func (g *generator) org() string {
	if len(g.pool.orgs) > 0 && g.rng.IntN(3) == 0 {
		return pick(g.rng, g.pool.orgs)
	}
	core := ""
	switch g.rng.IntN(4) {
	case 0:
		core = g.city()
	case 1:
		core = g.person().last
	default:
		if wide(g.lang) || g.lang == "el" || g.lang == "ar" || g.lang == "ru" {
			core = pick(g.rng, g.pool.last)
			break
		}
		core = pick(g.rng, orgWords)
		switch g.rng.IntN(4) {
		case 0, 1:
			core += " " + pick(g.rng, orgWords)
		case 2:
			core = g.byLang(trades)
			if g.rng.IntN(2) == 0 {
				core += g.byLang(joiners) + g.byLang(trades)
			} else {
				core += " " + g.city()
			}
		}
	}
	name := strings.Replace(pick(g.rng, orgKinds[g.lang]), "%s", core, 1)
	if len(g.pool.legal) > 0 && g.rng.IntN(8) == 0 && !wide(g.lang) {
		name = core + " " + pick(g.rng, g.pool.legal)
	}
	return name
}

func (g *generator) city() string {
	if len(g.pool.city) == 0 || g.rng.IntN(12) == 0 && !wide(g.lang) {
		return pick(g.rng, g.p.places)
	}
	return pick(g.rng, g.pool.city)
}
