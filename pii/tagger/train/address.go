package main

import (
	"fmt"
	"strings"
)

// address is an address in parts.
type address struct{ street, zip, city, line, lines string }

var zips = map[string][]string{
	"en": {"#####", "#####", "#####-####", "@@# #@@", "@## #@@", "@#@ #@#", "@@## #@@", "####"}, "de": {"#####", "#####", "####", "D-#####"}, "fr": {"#####"}, "es": {"#####"},
	"it": {"#####"}, "pt": {"#####-###", "####-###"}, "nl": {"#### @@", "####@@"}, "pl": {"##-###"}, "el": {"#####", "### ##"}, "sv": {"### ##"}, "da": {"####"},
	"ar": {"#####"}, "ru": {"######"}, "ja": {"〒###-####", "###-####"}, "ko": {"#####"}, "zh": {"######"},
}

var streetForms = map[string][]string{
	"en": {"%n %s Street", "%n %s St", "%n %s St.", "%n %s Avenue", "%n %s Ave", "%n %s Road", "%n %s Rd", "%n %s Lane", "%n %s Drive", "%n %s Dr", "%n %s Blvd", "%n %s Court", "%n %s Way", "%n %s Place", "%n %s Close", "%n %s Terrace", "%n %s Gardens", "%n North %s St", "%n W %s Ave", "%n %s Crescent", "Flat %n, %n %s Road", "%n %s Parkway", "PO Box %n", "P.O. Box %n", "%n Highway %n", "%n %o Street", "%n %o Ave"},
	"de": {"%sstraße %n", "%sstr. %n", "%s Straße %n", "%sweg %n", "%sgasse %n", "Am %s %n", "%splatz %n", "%sallee %n", "An der %s %n", "%sring %n", "%s-Straße %n"},
	"fr": {"%n rue %s", "%n, rue de %s", "%n avenue %s", "%n bd %s", "%n boulevard %s", "%n bis rue %s", "%n place %s", "%n chemin de %s", "%n allée des %s", "%n impasse %s", "%n rue du %s"},
	"es": {"Calle %s, %n", "C/ %s, %n", "C/ %s %n, %nº A", "Avda. %s, %n", "Avenida de %s %n", "Plaza %s, %n", "Paseo de %s, %n", "Calle de %s, %n, %n", "Rúa %s, %n", "Carrer de %s %n", "Camino %s s/n", "c/ %s nº %n", "Ronda de %s, %n"},
	"it": {"Via %s %n", "Via %s, %n", "Viale %s %n", "Piazza %s %n", "Corso %s, %n", "Via dei %s %n", "Largo %s %n", "Vicolo %s %n"},
	"pt": {"Rua %s, %n", "Av. %s, %n", "Avenida %s, %n", "Travessa %s, %n", "Rua das %s, %n, apto %n", "Praça %s, %n", "Alameda %s, %n", "Rua do %s, nº %n"},
	"nl": {"%sstraat %n", "%slaan %n", "%sweg %n", "%splein %n", "%skade %n", "%sgracht %n", "%ssingel %n", "%s-straat %n"},
	"pl": {"ul. %s %n", "ul. %s %n/%n", "al. %s %n", "os. %s %n", "pl. %s %n", "ulica %s %n m. %n"},
	"el": {"%s %n", "οδός %s %n", "Λεωφόρος %s %n", "Λεωφ. %s %n", "Πλατεία %s %n"},
	"ar": {"شارع %s %n", "%n شارع %s", "حي %s"},
	"ru": {"ул. %s, д. %n", "улица %s, %n", "пр. %s, д. %n, кв. %n"},
	"sv": {"%sgatan %n", "%svägen %n", "%s gränd %n", "%sstigen %n", "%s torg %n"},
	"da": {"%sgade %n", "%svej %n", "%s Allé %n", "%sstræde %n", "%svænget %n"},
}

// address draws an address in the form of the language.
func (g *generator) address() address {
	if wide(g.lang) {
		return g.wideAddress()
	}
	var a address
	core := g.person().last
	switch roll := g.rng.IntN(4); {
	case roll == 0 && len(g.pool.street) > 0:
		core = pick(g.rng, g.pool.street)
	case roll == 1:
		core = g.city()
	case roll == 2:
		core = g.person().full
	}
	form := pick(g.rng, streetForms[g.lang])
	a.street = strings.Replace(form, "%s", core, 1)
	a.street = strings.Replace(a.street, "%o", fmt.Sprintf("%d%s", 1+g.rng.IntN(120), "th"), 1)
	for strings.Contains(a.street, "%n") {
		n := fmt.Sprint(1 + g.rng.IntN(pick(g.rng, []int{20, 200, 9999})))
		if g.rng.IntN(12) == 0 {
			n += pick(g.rng, []string{"a", "B", " b", "/2", "-12"})
		}
		a.street = strings.Replace(a.street, "%n", n, 1)
	}
	if g.lang == "en" && g.rng.IntN(4) == 0 {
		a.street += pick(g.rng, []string{" Apt %d", ", Apt %d", " Suite %d", " #%d", ", Unit %d", " Apt. %d"})
		a.street = strings.Replace(a.street, "%d", fmt.Sprint(1+g.rng.IntN(900)), 1)
	}
	a.zip, a.city = g.form(pick(g.rng, zips[g.lang])), g.city()
	region := ""
	if g.rng.IntN(4) == 0 {
		region = pick(g.rng, g.p.places)
	}
	a.line, a.lines = g.joinAddress(a, region)
	return a
}

func (g *generator) joinAddress(a address, region string) (line, lines string) {
	town := a.zip + " " + a.city
	switch g.lang {
	case "en":
		town = a.city + ", " + g.form("@@") + " " + a.zip
		switch g.rng.IntN(4) {
		case 0:
			town = a.city + " " + a.zip
		case 1:
			town = a.city + ", " + a.zip
		}
	case "pt":
		town = a.city + " - " + g.form("@@") + ", " + a.zip
	case "it":
		town = a.zip + " " + a.city + pick(g.rng, []string{"", "", " (" + g.form("@@") + ")"})
	}
	if region != "" {
		town += pick(g.rng, []string{", ", " "}) + region
	}
	switch g.rng.IntN(9) {
	case 0:
		line = a.street + " " + town
	case 1:
		line = a.street
	case 2:
		line = a.street + ", " + a.city
	case 3:
		line = town + ", " + a.street
	case 4:
		line = a.street + " - " + a.city
	default:
		line = a.street + ", " + town
	}
	return line, a.street + "\n" + town
}

func (g *generator) wideAddress() address {
	n := func(max int) int { return 1 + g.rng.IntN(max) }
	last := pick(g.rng, g.pool.last)
	a := address{zip: g.form(pick(g.rng, zips[g.lang]))}
	switch g.lang {
	case "ja":
		town := pick(g.rng, strings.Fields("東京都新宿区 東京都杉並区 大阪府大阪市北区 神奈川県横浜市西区 愛知県名古屋市中区 北海道札幌市中央区 福岡県福岡市博多区 京都府京都市左京区 埼玉県川口市 千葉県柏市 兵庫県神戸市灘区 広島県呉市 宮城県仙台市青葉区 静岡県浜松市 沖縄県那覇市"))
		a.city = town
		quarter := pick(g.rng, strings.Fields("本町 緑町 栄 中央 桜丘 大手町 高田 南町 泉 浜松町 若葉台 旭町 西原 千代田 上野毛"))
		if g.rng.IntN(3) == 0 {
			quarter = last + "町"
		}
		a.street = quarter + pick(g.rng, []string{fmt.Sprintf("%d-%d-%d", n(9), n(30), n(30)), fmt.Sprintf("%d丁目%d番%d号", n(9), n(30), n(30)), fmt.Sprintf("%d-%d", n(9), n(300))})
		if g.rng.IntN(4) == 0 {
			a.street += fmt.Sprintf(" %sハイツ%d号室", last, n(900))
		}
	case "ko":
		a.city = pick(g.rng, strings.Fields("서울특별시_강남구 서울시_마포구 부산광역시_해운대구 대구광역시_수성구 인천광역시_남동구 경기도_성남시_분당구 대전광역시_유성구 광주광역시_북구 경기도_수원시_영통구 제주특별자치도_제주시"))
		a.city = strings.ReplaceAll(a.city, "_", " ") + " "
		a.street = pick(g.rng, strings.Fields("테헤란로 중앙로 한강대로 세종로 월드컵북로 정자로 동성로 대학로 충장로 송도과학로")) + fmt.Sprintf(" %d", n(400))
		if g.rng.IntN(3) == 0 {
			a.street += fmt.Sprintf(", %d동 %d호", n(120), n(2000))
		}
	default:
		a.city = pick(g.rng, strings.Fields("北京市朝阳区 上海市浦东新区 广州市天河区 深圳市南山区 杭州市西湖区 成都市锦江区 武汉市洪山区 南京市鼓楼区 江苏省苏州市姑苏区 浙江省宁波市鄞州区 臺北市大安區 新北市板橋區 四川省绵阳市 山东省青岛市市南区 天津市和平区"))
		a.street = pick(g.rng, strings.Fields("中山路 人民路 建国路 解放路 长江路 和平街 学院路 淮海中路 文化路 民生路 世纪大道 忠孝東路 新华街 东风路")) + fmt.Sprintf("%d号", n(900))
		if g.rng.IntN(2) == 0 {
			a.street += fmt.Sprintf("%d栋%d室", n(30), 101+n(2000))
		}
	}
	a.line, a.lines = a.city+a.street, a.zip+"\n"+a.city+a.street
	return a
}
