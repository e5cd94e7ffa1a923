package main

import (
	"fmt"
	"testing"

	"weir/pii/eval"
)

// TestDivide holds that what shares a template stays on one side, whatever its
// names and digits, that the sides have about the sizes they should, and that of
// two sources nothing is trained on.
func TestDivide(t *testing.T) {
	t.Parallel()
	var docs []eval.Doc
	const groups, each = 2000, 3
	for g := range groups {
		for n := range each {
			name := fmt.Sprintf("Name%c", 'a'+n)
			text := name + fmt.Sprintf(" wrote letter %c%c%c in 19%02d.", 'a'+g%26, 'a'+g/26%26, 'a'+g/676, n)
			docs = append(docs, eval.Doc{ID: fmt.Sprint(g), Text: text, Source: "btc", Spans: []eval.Span{{Start: 0, End: len(name), Label: "PERSON_NAME"}}})
		}
	}
	for n := range 300 {
		docs = append(docs, eval.Doc{Text: fmt.Sprint("some text ", string(rune('a'+n%26)), n), Source: "ambientmeta"}, eval.Doc{Text: fmt.Sprint("ein Satz ", string(rune('a'+n%26)), n), Source: "uner_de_pud"})
	}
	sides := divide(docs)
	at := map[string]int{}
	count := [numSides]int{}
	for side, list := range sides {
		for _, d := range list {
			switch d.Source {
			case "uner_de_pud":
				if side != report {
					t.Fatalf("uner_de_pud is on side %s", sideNames[side])
				}
			case "ambientmeta":
				if side == train {
					t.Fatal("ambientmeta is trained on")
				}
			default:
				if old, ok := at[d.ID]; ok && old != side {
					t.Fatalf("a template is on the sides %s and %s", sideNames[old], sideNames[side])
				}
				at[d.ID] = side
				count[side]++
			}
		}
	}
	for side, part := range [numSides]float64{0.8, 0.1, 0.1} {
		if got := float64(count[side]) / (groups * each); got < part-0.03 || got > part+0.03 {
			t.Errorf("side %s has %.3f of the documents", sideNames[side], got)
		}
	}
}

// TestDivideClean holds that the same paragraph is on one side only, and that
// what is left to train on is on none of the others.
func TestDivideClean(t *testing.T) {
	t.Parallel()
	var clean []text
	for n := range 3000 {
		clean = append(clean, text{Text: fmt.Sprint("paragraph ", n/2)})
	}
	var sides sides
	rest := divideClean(clean, &sides)
	if len(sides[train]) != 0 || len(rest)+len(sides[tune])+len(sides[report]) != len(clean) {
		t.Fatalf("of %d paragraphs %d are to train on, %d to tune on, %d to report from", len(clean), len(rest), len(sides[tune]), len(sides[report]))
	}
	seen := map[string]int{}
	note := func(text string, side int) {
		if old, ok := seen[text]; ok && old != side {
			t.Errorf("a paragraph is on the sides %s and %s", sideNames[old], sideNames[side])
		}
		seen[text] = side
	}
	for _, c := range rest {
		note(c.Text, train)
	}
	for _, side := range [...]int{tune, report} {
		if n := len(sides[side]); n < 150 || n > 450 {
			t.Errorf("side %s has %d paragraphs", sideNames[side], n)
		}
		for _, d := range sides[side] {
			note(d.Text, side)
		}
	}
}
