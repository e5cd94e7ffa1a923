package mask

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/pii"
)

// Limits of what is looked for elsewhere once it was found.
const (
	minPropagated = 4 // characters
	minDigits     = 6 // of a plain number
	minNamePart   = 3 // letters
	maxName       = 6 // words: a longer "name" is a text that had to be masked whole
)

// protocolWords stand in every request whoever writes it. A user called "user"
// is masked where it was found, and nowhere else.
const protocolWords = " user system assistant tool tools developer function functions text content model message" +
	" messages name type role true false null none string object array number boolean input output arguments default" +
	" root admin example test "

// propagates reports whether a value is so distinct that it is private
// wherever it stands.
func propagates(label pii.Label, value string) bool {
	chars, letters, digits, lowers, spaces, dense := 0, 0, 0, 0, 0, 0
	for _, r := range value {
		switch {
		case zeroWidth(r):
			continue
		case unicode.IsSpace(r):
			spaces++
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
			if unicode.IsLower(r) {
				lowers++
			}
			if unsegmented(r) {
				dense++
			}
		}
		chars++
	}
	chars -= spaces - len(strings.Fields(value)) + 1 // runs of space count once
	switch {
	case label == pii.PersonName && dense == letters && letters >= 2:
		return true // a name in two characters, as 王芳
	case chars < minPropagated, letters+digits < 2:
		return false
	case letters == 0 && digits < minDigits:
		return false
	case isProtocolWord(value), label == pii.PersonName && isCommon(strings.ToLower(value)):
		return false
	}
	info, _ := pii.Lookup(label)
	return info.Direct || spaces > 0 || lowers < letters || digits > 0
}

func isProtocolWord(value string) bool {
	return !strings.ContainsRune(value, ' ') && strings.Contains(protocolWords, " "+strings.ToLower(value)+" ")
}

// notNames are words in a name that are not names: titles and particles that
// are written with a capital, and the words that make a name in lower case
// ("will smith") dangerous to look for.
const notNames = " Mr Mrs Miss Mme Mlle Dr Prof Sir Madam Lord Lady Rev Fr Herr Frau Don Doña Señor Señora Sig Jr Sr" +
	" Von Van Der Den Del Della Des Dos Das Bin Ibn The And For Saint St PhD Esq Dipl Ing Capt Sgt Lt Col Gen" +
	" will mark may bill grant chase hope faith grace joy art dean drew frank gene jack lance max miles nick pat" +
	" penny ray rich rob rose sue summer wade ward young long short brown black white green gray grey king baker" +
	" cook hill wood stone park day price rice banks bell best bishop bond case church cross fox good hall hunt" +
	" knight lane law little love major mason moon page porter power rush sharp singer small star sweet wall" +
	" waters west wise wolf worth and the for von van der den del des dos das bin ibn april june august carter" +
	" sandy sky amber dawn ivy jade olive ruby pearl violet robin jay jean carol holly iris "

func isCommon(word string) bool {
	return !strings.ContainsRune(word, ' ') && strings.Contains(notNames, " "+word+" ")
}

// nameParts returns the parts of a name that are looked for by themselves.
func nameParts(value string) []string {
	words := strings.FieldsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || r == ',' })
	if len(words) > maxName {
		return nil
	}
	var parts []string
	for _, w := range words {
		w = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
		if utf8.RuneCountInString(w) < minNamePart || isCommon(w) || isProtocolWord(w) {
			continue
		}
		parts = append(parts, w)
	}
	return parts
}
