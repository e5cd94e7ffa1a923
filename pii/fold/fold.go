// Package fold looks through disguises of text.
//
// A value that a person or a program would still read as an e-mail address can
// be written with full-width letters, zero-width joiners, Cyrillic letters that
// look Latin, percent signs or HTML entities. [Fold] undoes these in a few
// linear passes, so that recognizers need only know the plain form, and
// [Folded.Origin] leads from an offset in the folded text back to the exact
// bytes of the original. [Blobs] finds Base64 and hexadecimal runs that hold
// text.
//
// It promises that the way back is exact, that text without any disguise costs
// one look at each byte and no memory, that invalid UTF-8 is passed through,
// and that honest Cyrillic or Greek stays as it is. It decides nothing about
// what the text means: that is for package pii and its recognizers.
package fold

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// maxPasses bounds how often escapes are undone, for text escaped twice or more.
const maxPasses = 4

// MaxLen is the longest text that [Fold] accepts: offsets are kept in 32 bits.
const MaxLen = 1<<31 - 1

// Folded is a text without its disguises.
type Folded struct {
	// Text is what is left to read.
	Text string
	// Unescaped says that percent signs, entities or backslash escapes were
	// undone. They may have been meant literally, so the original is worth
	// reading as well.
	Unescaped bool

	steps [][]edit
}

// Fold undoes the disguises of s, which must not be longer than [MaxLen].
func Fold(s string) Folded {
	if plain(s) {
		return Folded{Text: s}
	}
	f := Folded{Text: s}
	foreign := false
	for range maxPasses {
		p := pass{src: f.Text}
		out, edits := p.run()
		foreign = p.foreign
		if len(edits) == 0 {
			break
		}
		f.Text = out
		f.steps = append(f.steps, edits)
		if !p.unescaped {
			break
		}
		f.Unescaped = true
	}
	if foreign {
		if out, edits := unmaskLetters(f.Text); len(edits) > 0 {
			f.Text = out
			f.steps = append(f.steps, edits)
		}
	}
	return f
}

// Identity reports that folding changed nothing.
func (f Folded) Identity() bool { return len(f.steps) == 0 }

// Origin returns the bytes of the original from which the folded text's
// [start,end) was made. Characters that folding removed at either edge are left
// out.
func (f Folded) Origin(start, end int) (int, int) {
	for i := len(f.steps) - 1; i >= 0; i-- {
		s := originStart(f.steps[i], start)
		if end <= start {
			start, end = s, s
			continue
		}
		start, end = s, originEnd(f.steps[i], end)
	}
	return start, end
}

// edit says that folded bytes [fold,fold+foldLen) came from the original's
// [orig,orig+origLen). Between edits bytes were copied.
type edit struct {
	fold, orig       uint32
	foldLen, origLen uint32
}

func originStart(edits []edit, pos int) int {
	i := sort.Search(len(edits), func(i int) bool { return int(edits[i].fold) > pos }) - 1
	if i < 0 {
		return pos
	}
	e := edits[i]
	if pos < int(e.fold+e.foldLen) {
		return int(e.orig)
	}
	return pos - int(e.fold+e.foldLen) + int(e.orig+e.origLen)
}

func originEnd(edits []edit, pos int) int {
	// The end is that of the last character before pos, so that something
	// removed at pos is not taken in.
	i := sort.Search(len(edits), func(i int) bool { return int(edits[i].fold) >= pos }) - 1
	if i < 0 {
		return pos
	}
	e := edits[i]
	if pos <= int(e.fold+e.foldLen) {
		return int(e.orig + e.origLen)
	}
	return pos - int(e.fold+e.foldLen) + int(e.orig+e.origLen)
}

// builder collects edits, and copies nothing until there is one.
type builder struct {
	out    strings.Builder
	edits  []edit
	copied int // how much of the source is accounted for
}

// replace puts with in place of src[start:end]; edits come in order.
func (b *builder) replace(src string, start, end int, with string) {
	if b.edits == nil {
		b.out.Grow(len(src))
	}
	b.out.WriteString(src[b.copied:start])
	if n := len(b.edits); with == "" && n > 0 {
		if e := &b.edits[n-1]; e.foldLen == 0 && int(e.orig+e.origLen) == start {
			e.origLen += uint32(end - start)
			b.copied = end
			return
		}
	}
	b.edits = append(b.edits, edit{
		fold: uint32(b.out.Len()), orig: uint32(start),
		foldLen: uint32(len(with)), origLen: uint32(end - start),
	})
	b.out.WriteString(with)
	b.copied = end
}

func (b *builder) finish(src string) (string, []edit) {
	if b.edits == nil {
		return src, nil
	}
	b.out.WriteString(src[b.copied:])
	return b.out.String(), b.edits
}

// plain reports ASCII text without control characters and escapes.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if special[s[i]] {
			return false
		}
	}
	return true
}

// special marks the bytes that folding must look at.
var special = func() (t [256]bool) {
	for i := range t {
		t[i] = i >= utf8.RuneSelf || i < ' ' || i == 0x7f
	}
	for _, c := range "\t\n\v\f\r" {
		t[c] = false
	}
	for _, c := range `%&\` {
		t[c] = true
	}
	return t
}()

// Format prints the size of a folded text, never the text.
func (f Folded) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "folded text of %d bytes", len(f.Text)) }
