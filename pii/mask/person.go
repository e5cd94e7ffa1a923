package mask

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/pii"
)

// splitWords cuts s into words (letters, marks, digits, an apostrophe within)
// and what is between them. Joined, they are s.
func splitWords(s string) []string {
	var words []string
	start, word := 0, false
	for i, r := range s {
		w := unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || word && (r == '\'' || r == '’')
		if i > start && w != word {
			words = append(words, s[start:i])
			start = i
		}
		word = w
	}
	return append(words, s[start:])
}

// likeCase writes name as word is written: all capitals, none, or the first.
func likeCase(word, name string) string {
	if utf8.RuneCountInString(word) > 1 && word == strings.ToUpper(word) && word != strings.ToLower(word) {
		return strings.ToUpper(name)
	}
	if r, _ := utf8.DecodeRuneInString(word); unicode.IsLower(r) {
		return strings.ToLower(name)
	}
	return name
}

// keptInNames are titles and particles, which a surrogate has too.
const keptInNames = " mr mrs ms miss mme mlle dr prof sir lord lady rev herr frau don doña jr sr ii iii iv phd md" +
	" van von der den de del della di da dos du la le bin ibn al el ter ten zu zur y e af av st "

// isName reports whether a piece of splitWords is a name proper.
func isName(piece string) bool {
	r, _ := utf8.DecodeRuneInString(piece)
	return unicode.IsLetter(r) && utf8.RuneCountInString(piece) > 1 && !isTitle(piece)
}

func isTitle(piece string) bool {
	return strings.Contains(keptInNames, " "+strings.ToLower(piece)+" ")
}

// nameFor makes a name of as many words as value, each drawn for its word: the
// part that a text repeats ("Ms Doe") stands for the same person. "" is for
// what holds no name.
func (b *Book) nameFor(value string, attempt int) string {
	pieces := splitWords(value)
	count, seen := 0, 0
	for _, p := range pieces {
		if isName(p) {
			count++
		}
	}
	if count == 0 {
		return ""
	}
	lists := names()
	for i, p := range pieces {
		if !isName(p) {
			if !isTitle(p) { // an initial, or what is no name at all
				pieces[i] = newDraw(&b.key, "initial", p).shape(p)
			}
			continue
		}
		list := lists.given
		if seen++; seen == count && count > 1 {
			list = lists.family
		}
		pieces[i] = likeCase(p, b.nameWord(p, list, attempt))
	}
	return strings.Join(pieces, "")
}

// nameWord returns the name that stands for a word of a name, if possible one
// that stands for no other word.
func (b *Book) nameWord(word string, list []string, attempt int) string {
	real := strings.ToUpper(word)
	if name, ok := b.nameOf[real]; ok && attempt == 0 {
		return name
	}
	d := newDraw(&b.key, "name", strconv.Itoa(attempt), real)
	name := d.of(list)
	for range maxAttempts {
		if of, ok := b.nameBy[strings.ToUpper(name)]; !ok || of == real {
			break
		}
		name = d.of(list)
	}
	return name
}

// learnName notes which word stands for which in a name's surrogate.
func (b *Book) learnName(e Entry) {
	for value, token := range nameWords(e) {
		value, folded := strings.ToUpper(value), strings.ToUpper(token)
		if _, ok := b.nameOf[value]; !ok {
			b.nameOf[value] = token[:1] + strings.ToLower(token[1:])
		}
		if _, ok := b.nameBy[folded]; !ok {
			b.nameBy[folded] = value
		}
	}
}

// nameWords yields the words of a name with those that stand for them; nothing
// for an entry that is no name's surrogate.
func nameWords(e Entry) func(yield func(value, token string) bool) {
	return func(yield func(value, token string) bool) {
		if e.Label != pii.PersonName || e.Style != StyleSurrogate {
			return
		}
		values, tokens := splitWords(e.Value), splitWords(e.Token)
		if len(values) != len(tokens) || strings.Contains(e.Token, "_") { // a placeholder, for want of a name
			return
		}
		for i := range values {
			if isName(values[i]) && isName(tokens[i]) && !yield(values[i], tokens[i]) {
				return
			}
		}
	}
}
