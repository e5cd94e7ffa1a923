package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/pii"
)

// people are words about names that the word lists do not have.
type people struct {
	stop, known, particles, suffixes map[string]bool
}

// maxNameParts bounds a name.
const maxNameParts = 6

// persons finds names of people: behind a title or another cue, before an
// e-mail address, and where a forename of the lists goes with a surname.
func (s *Set) persons(t *text, out *findings) {
	next := 0 // words before it belong to a name already
	for hi, i := 0, 0; i < len(t.words); i++ {
		w := t.words[i]
		for hi < len(t.hits) && int(t.hits[hi].end) <= int(w.start) {
			hi++
		}
		if i < next {
			continue
		}
		cue := s.cueBefore(t, hi, i)
		if !nameStart(t, i) {
			if w.shape&(hasDigit|isSolid) == 0 && w.list&listForename != 0 {
				next = max(next, s.smallName(t, i, cue, out))
			}
			continue
		}
		if n := s.nameAt(t, i, cue, out); n > 0 {
			next = i + n
		}
	}
	s.hanNames(t, out)
}

// cue is what stands before a name.
type cue struct {
	any    bool // some word that a name often follows
	strong bool // a word that little but a name follows
	title  bool
	field  bool // a field as "name:"
}

// cueBefore looks at the phrases that end right before word i.
func (s *Set) cueBefore(t *text, hi, i int) cue {
	var c cue
	start := int(t.words[i].start)
	for j := hi - 1; j >= 0 && start-int(t.hits[j].end) <= 24; j-- {
		h := t.hits[j]
		gap := t.s[h.end:start]
		switch {
		case h.set.has(s.c.title) && (gap == " " || gap == ". ") && titleCase(t, h):
			c.title, c.any = true, true
		case h.set.has(s.c.personKey) && fieldGap(gap):
			c.field, c.any = true, true
		case h.set.has(s.c.personCue) && (gap == " " || gap == ", " || gap == ": " || gap == " - " || strings.TrimLeft(gap, ",.!:") != gap && strings.TrimSpace(strings.TrimLeft(gap, ",.!:")) == "" && strings.Contains(gap, "\n")):
			c.any = true
			c.strong = c.strong || strongCue(lowerASCII(t.s[h.start:h.end])) || strings.Contains(gap, "\n") && signOff(lowerASCII(t.s[h.start:h.end]))
		}
	}
	return c
}

func titleCase(t *text, h hit) bool {
	if h.start > 0 && byteClass[t.s[h.start-1]] != byteOther {
		return false
	}
	v := t.s[h.start:h.end]
	if v == "MS" {
		return false // an illness, a ship, a degree
	}
	return byteClass[v[0]] == byteUpper || len(v) > 3 && v != "miss" && v != "judge" && v != "pastor" && v != "nurse" && v != "officer"
}

// fieldGap reports what stands between a field's name and its value.
func fieldGap(gap string) bool {
	trimmed := strings.Trim(gap, " \t\"'`*")
	return (trimmed == ":" || trimmed == "=" || trimmed == "|" || trimmed == ":\"" || trimmed == "\":" || strings.HasPrefix(trimmed, "\":")) && len(gap) <= 8 && !strings.Contains(gap, "\n")
}

func strongCue(phrase string) bool {
	return oneOf("beneficiary applicant signed", phrase) || strings.Contains("|my name is|name is|i am called|mein name ist|ich heiße|ich heisse|je m'appelle|me llamo|mi nombre es|mi chiamo|mijn naam is|ik heet|jag heter|nazywam się|meu nome é|chamo me|jeg hedder|signed by|reply to|name on card|letter for|my wife|my husband|", "|"+phrase+"|")
}

func signOff(phrase string) bool {
	return strings.Contains("|sincerely|regards|kind regards|best regards|best wishes|warm regards|cheers|yours truly|yours faithfully|thanks|many thanks|grüßen|grüße|mfg|freundlichen grüßen|cordialement|saludos|cordiali saluti|groeten|pozdrawiam|mvh|atentamente|", "|"+phrase+"|")
}

// nameStart reports a word that may begin a name.
func nameStart(t *text, i int) bool {
	w := t.words[i]
	if !w.is(capital) || w.shape&(hasDigit|isSolid) != 0 || w.len() > 24 {
		return false
	}
	return !w.is(isCamel) || camelName(t.word(i))
}

// camelName reports names with a capital inside, as McDonald and DeShawn.
func camelName(v string) bool {
	for _, p := range [...]string{"Mc", "Mac", "De", "Di", "Da", "La", "Le", "Van", "Von", "Fitz", "St"} {
		if rest, ok := strings.CutPrefix(v, p); ok && len(rest) > 2 && byteClass[rest[0]] == byteUpper && rest[1:] == strings.ToLower(rest[1:]) {
			return true
		}
	}
	return false
}

// name is a run of words that may be one.
type name struct {
	words    int // how many words of the text
	end      int
	parts    int // capitalised parts of two letters or more
	initials int
	spaced   bool // a blank stands between two parts
	forename bool // the first part is a forename of the lists
	sure     bool // and no word or place besides
	surname  bool // a later part is a surname of the lists
	odd      bool // a later part is in no list at all
	common   bool // a part is a common word or place, and no name
	upper    int  // parts all in capitals
}

// readName takes in the parts of a name from word i on.
func (s *Set) readName(t *text, i int) name {
	n := name{}
	j := i
	for j < len(t.words) && n.parts+n.initials < maxNameParts {
		w := t.words[j]
		if gap := ""; j > i {
			if gap = t.s[t.words[j-1].end:w.start]; !nameGap(gap) && !initials(t, j) || gap == ". " && t.words[j-1].len() > 2 {
				break
			}
		}
		v := t.word(j)
		low := strings.ToLower(v)
		switch {
		case nameStart(t, j) && w.len() == 1:
			// An initial needs its dot, or another part behind it.
			dot := int(w.end) < len(t.s) && t.s[w.end] == '.'
			if !dot && (j+1 >= len(t.words) || !nameStart(t, j+1) || low == "i" && j > i || j == i && !dot) {
				goto done
			}
			n.initials++
			n.end = int(w.end)
			if dot {
				n.end++
			}
		case nameStart(t, j):
			if s.people.suffixes[low] && j > i {
				n.end = int(w.end)
				if n.end < len(t.s) && t.s[n.end] == '.' {
					n.end++
				}
				n.words = j - i + 1
				return n
			}
			if s.people.stop[low] && !(w.list&listSurname != 0 && n.forename && j > i && !hardStop(low)) {
				goto done
			}
			s.takePart(&n, w, j == i)
			n.end = int(w.end)
		case n.sure && uncased(t.word(j)):
			n.parts++
			n.odd = true
			n.end = int(w.end)
		case j > i && w.len() <= 5 && s.people.particles[low] && j+1 < len(t.words) && particleGoesOn(s, t, j):
		default:
			goto done
		}
		if j > i {
			gap := t.s[t.words[j-1].end]
			n.spaced = n.spaced || gap != '-' && gap != '\''
		}
		j++
		n.words = j - i
	}
done:
	return n
}

// hardStop are words that follow a forename and are still no surname.
func hardStop(low string) bool {
	return oneOf("street road avenue lane drive park river lake station university college school hospital bank island bay city county falls beach valley hills castle church march april may june july august", low)
}

// nameGap reports what may stand between two parts of a name.
func nameGap(gap string) bool {
	switch gap {
	case " ", "-", "'", ". ", "’":
		return true
	}
	return false
}

// uncased reports a word of a script without capitals, as Devanagari.
func uncased(v string) bool {
	r, _ := utf8.DecodeRuneInString(v)
	return r >= 0x590 && unicode.IsLetter(r) && !unicode.IsUpper(r) && !unicode.IsLower(r) && !unspaced(r)
}

// initials reports the second of two initials without a blank, as in J.R.
func initials(t *text, j int) bool {
	return t.words[j].len() == 1 && t.words[j-1].len() == 1 && t.s[t.words[j-1].end:t.words[j].start] == "."
}

func particleGoesOn(s *Set, t *text, j int) bool {
	for k := j + 1; k < len(t.words) && k <= j+2; k++ {
		if !nameGap(t.s[t.words[k-1].end:t.words[k].start]) {
			return false
		}
		if nameStart(t, k) {
			return true
		}
		if !s.people.particles[t.word(k)] {
			return false
		}
	}
	return false
}

func (s *Set) takePart(n *name, w word, first bool) {
	n.parts++
	if w.shape&hasLower == 0 {
		n.upper++
	}
	doubtful := w.list&(listCommon|listPlace) != 0
	if first || n.parts == 1 {
		n.forename = w.list&listForename != 0
		n.sure = n.forename && !doubtful && w.len() > 2
		n.common = doubtful && !n.forename
		return
	}
	switch {
	case w.list&listSurname != 0:
		n.surname = true
	case w.list&listForename != 0:
	case doubtful:
		n.common = true
	default:
		n.odd = n.odd || w.len() >= 3
	}
}

// nameAt decides whether a name begins at word i and returns its words.
func (s *Set) nameAt(t *text, i int, c cue, out *findings) int {
	start := int(t.words[i].start)
	n := s.readName(t, i)
	if n.words == 0 || n.parts == 0 && n.initials < 2 {
		return 0
	}
	if s.people.known[lowerName(t.s[start:n.end])] {
		return n.words
	}
	if s.organized(t, i+n.words) {
		return 0
	}
	rule, score := "", 0.0
	switch {
	case c.title && n.parts >= 1 && !(n.common && n.parts == 1 && t.words[i].list&listSurname == 0) && !strings.HasPrefix(t.s[n.end:], "'t"):
		rule, score = "name-title", 0.9
	case c.field && (n.parts >= 2 && !n.common || n.sure && n.upper == 0 || n.parts == 1 && n.upper == 0 && t.words[i].list&(listSurname|listCommon) == listSurname || n.initials > 0 && n.parts > 0 && !n.common):
		rule, score = "name-field", 0.85
	case c.strong && (n.parts >= 2 || n.forename || !n.common && s.sentenceEnds(t, n.end)):
		rule, score = "name-cue", 0.85
	case s.beforeAddress(t, n.end) && n.parts+n.initials >= 2 && !n.common:
		rule, score = "name-email", 0.85
	case c.any && (n.parts >= 2 && !n.common && (n.forename || n.surname) || n.sure && n.upper < n.parts):
		rule, score = "name-cue", 0.75
	case c.any && n.initials > 0 && n.parts == 1 && t.words[i+n.words-1].list&listCommon == 0:
		rule, score = "name-cue", 0.7
	case n.upper > 0 && n.upper == n.parts && n.parts > 1:
		if n.sure && n.surname && n.parts == 2 && !n.common {
			rule, score = "name-listed", 0.6
		}
	case n.sure && n.parts >= 2 && n.parts <= 4 && !n.common && (n.surname || n.odd && n.upper == 0):
		rule, score = "name-listed", 0.65
	case n.forename && n.parts >= 2 && n.initials > 0 && n.surname && n.upper == 0:
		rule, score = "name-listed", 0.6
	case n.forename && n.parts >= 2 && n.surname && !n.common && t.words[i+n.words-1].list&(listCommon|listPlace) == 0:
		rule, score = "name-listed", 0.6
	case n.initials >= 1 && n.parts == 1 && t.words[i].len() == 1 && t.words[i+n.words-1].list&listSurname != 0 && t.words[i+n.words-1].list&listCommon == 0:
		rule, score = "name-listed", 0.55
	}
	if rule == "" {
		return s.reversed(t, i, n, c, out)
	}
	rank := pii.RankContext
	if rule == "name-listed" {
		if !n.spaced {
			return 0 // a compound, as Floyd-Steinberg
		}
		rank = pii.RankList
	}
	out.add(t, start, n.end, s.own[rule], score, rank)
	return n.words
}

// reversed takes "Ross, Sophia" as one name where both lists say so.
func (s *Set) reversed(t *text, i int, n name, c cue, out *findings) int {
	if n.words != 1 || t.words[i].list&listSurname == 0 || i+1 >= len(t.words) || t.s[n.end:min(len(t.s), n.end+2)] != ", " {
		return 0
	}
	m := s.readName(t, i+1)
	if m.words == 0 || !m.sure || m.parts != 1 || int(t.words[i+1].start) != n.end+2 {
		return 0
	}
	if !c.any && (t.words[i].list&(listCommon|listPlace) != 0 || m.end < len(t.s) && t.s[m.end] == ',') {
		return 0
	}
	out.add(t, int(t.words[i].start), m.end, s.own["name-listed"], 0.55, pii.RankList)
	return 1 + m.words
}

// organized reports a word behind a name that makes it one of a company or a
// street.
func (s *Set) organized(t *text, i int) bool {
	if i >= len(t.words) || i == 0 || t.s[t.words[i-1].end:t.words[i].start] != " " || !t.words[i].is(capital) {
		return false
	}
	near := t.hitAfter(int(t.words[i].start))
	for ; near < len(t.hits) && t.hits[near].start <= t.words[i].start; near++ {
		if h := t.hits[near]; h.start == t.words[i].start && (h.set.has(s.c.orgForm) || h.set.has(s.c.orgNoun) || h.set.has(s.c.street)) {
			return true
		}
	}
	return false
}

// sentenceEnds reports that a name is followed by the end of a clause.
func (s *Set) sentenceEnds(t *text, end int) bool {
	return end >= len(t.s) || strings.IndexByte(".,;:!?\n\")", t.s[end]) >= 0 || strings.HasPrefix(t.s[end:], " and ") || strings.HasPrefix(t.s[end:], " to ")
}

// beforeAddress reports an e-mail address right behind a name.
func (s *Set) beforeAddress(t *text, end int) bool {
	rest := t.s[end:min(len(t.s), end+80)]
	trimmed := strings.TrimLeft(rest, " \"'<([,:-|")
	if len(trimmed) == len(rest) || len(rest)-len(trimmed) > 5 {
		return false
	}
	for i := range len(trimmed) {
		if trimmed[i] == '@' {
			return i > 1
		}
		if trimmed[i] <= ' ' || trimmed[i] == ',' {
			return false
		}
	}
	return false
}

// smallName takes a name in small letters if the lists have both of its parts:
// behind a strong cue, or if neither part is anything else.
func (s *Set) smallName(t *text, i int, c cue, out *findings) int {
	if i+1 >= len(t.words) || t.s[t.words[i].end:t.words[i+1].start] != " " {
		return 0
	}
	a, b := t.words[i], t.words[i+1]
	if a.list&listForename == 0 || a.list&listCommon != 0 && !c.field || b.list&(listSurname|listForename) == 0 || b.is(hasDigit) {
		return 0
	}
	if c.strong || c.field || c.any && a.list&b.list&listCommon == 0 {
		out.add(t, int(a.start), int(b.end), s.own["name-cue"], 0.6, pii.RankContext)
		return i + 2
	}
	if a.list == listForename && b.list == listSurname && a.len() >= 5 && b.len() >= 5 && a.ascii() && b.ascii() {
		out.add(t, int(a.start), int(b.end), s.own["name-listed"], 0.5, pii.RankList)
		return i + 2
	}
	return 0
}

func lowerName(v string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(v), func(r rune) bool { return !unicode.IsLetter(r) }), " ")
}

// hanSurnames are the most frequent Chinese surnames, those of two characters
// first.
const hanSurnames = "欧阳 司马 上官 诸葛 东方 皇甫 尉迟 公孙 慕容 令狐 夏侯 王 李 张 刘 陈 杨 黄 赵 吴 周 徐 孙 马 朱 胡 郭 何 高 林 罗 郑 梁 谢 宋 唐 许 韩 冯 邓 曹 彭 曾 肖 田 董 袁 潘 于 蒋 蔡 余 杜 叶 程 苏 魏 吕 丁 任 沈 姚 卢 姜 崔 钟 谭 陆 汪 范 金 石 廖 贾 夏 韦 付 方 白 邹 孟 熊 秦 邱 江 尹 薛 闫 段 雷 侯 龙 史 陶 黎 贺 顾 毛 郝 龚 邵 万 钱 严 覃 武 戴 莫 孔 向 汤 欧 温 康 施 文 牛 樊 葛 邢 安 齐 易 乔 伍 庞 颜 倪 庄 聂 章 鲁 岳 翟 殷 詹 申 耿 关 兰 焦 俞 左 柳 甘 祝 包 宁 尚 符 舒 阮 纪 梅 童 凌 毕 单 季 裴 霍 涂 成 苗 谷 曲 盛 冉 翁 蓝 路 游 辛 靳 管 柴 蒙 鲍 華 張 劉 陳 楊 黃 趙 吳 孫 馬 羅 鄭 謝 許 韓 馮 鄧 蕭 蔣 葉 蘇 魏 盧 鍾 譚 陸"

// hanNames finds Chinese, Japanese and Korean names behind a cue.
func (s *Set) hanNames(t *text, out *findings) {
	for _, w := range t.words {
		if !w.is(isSolid) {
			continue
		}
		run := t.s[w.start:w.end]
		for _, cue := range [...]string{"我叫", "姓名是", "姓名", "原告", "被告", "患者", "名字是", "名字叫", "联系人", "收件人", "申请人", "我是", "氏名は", "名前は", "이름은", "성명", "환자", "제 이름은", "저는"} {
			if i := strings.Index(run, cue); i >= 0 {
				s.hanName(t, int(w.start)+i+len(cue), int(w.end), out)
			}
		}
		if i := strings.Index(run, "と申します"); i > 0 {
			s.japaneseBefore(t, int(w.start)+i, out)
		}
	}
}

func (s *Set) hanName(t *text, at, end int, out *findings) {
	for at < len(t.s) {
		r, n := utf8.DecodeRuneInString(t.s[at:])
		if r != ':' && r != ' ' && r != '：' && r != '是' && r != '为' {
			break
		}
		at += n
	}
	if at >= end {
		next := t.wordAt(at)
		if next >= len(t.words) || int(t.words[next].start) != at || !t.words[next].is(isSolid) {
			return
		}
		end = int(t.words[next].end)
	}
	first, n := utf8.DecodeRuneInString(t.s[at:])
	if first >= 0xAC00 {
		// Korean: three syllables, the particles left off.
		size := 0
		for size < 3 && at+3*(size+1) <= end {
			size++
		}
		if size >= 2 {
			out.add(t, at, at+3*size, s.own["name-han"], 0.7, pii.RankContext)
		}
		return
	}
	chars := 0
	for name := range strings.SplitSeq(hanSurnames, " ") {
		if strings.HasPrefix(t.s[at:end], name) {
			chars = utf8.RuneCountInString(name)
			break
		}
	}
	if chars == 0 {
		return
	}
	stop := at + n*chars
	for given := 0; given < 2 && stop < end; given++ {
		r, size := utf8.DecodeRuneInString(t.s[stop:])
		if !unicode.Is(unicode.Han, r) || given == 1 && stop+size < end && strings.ContainsRune("的是在和与住说因于有为先女手电身", r) || given == 0 && strings.ContainsRune("的是在和与", r) {
			break
		}
		stop += size
	}
	if stop > at+n*chars {
		out.add(t, at, stop, s.own["name-han"], 0.75, pii.RankContext)
	}
}

// japaneseBefore takes the name before と申します, which may have a blank in it.
func (s *Set) japaneseBefore(t *text, end int, out *findings) {
	start, runes := end, 0
	for start > t.key && runes < 8 {
		r, n := utf8.DecodeLastRuneInString(t.s[t.key:start])
		if !unicode.Is(unicode.Han, r) && !unicode.Is(unicode.Katakana, r) && !unicode.Is(unicode.Hiragana, r) && r != ' ' || strings.ContainsRune("、。はのを", r) {
			break
		}
		start -= n
		runes++
	}
	for start < end && t.s[start] == ' ' {
		start++
	}
	if runes >= 2 {
		out.add(t, start, end, s.own["name-han"], 0.8, pii.RankContext)
	}
}
