// Command gen writes ../data/words.txt.gz, the word lists that recognizers of
// names look words up in.
//
// Each line of the result is a word in lower case, a tab, and letters: f for a
// forename, s for a surname, c for a common English word, p for a place. A
// name that is also a common word or a place is only trusted next to another
// name, which is why they share one list.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

func main() {
	forenames := flag.String("forenames", "", "common-forenames-by-country.csv")
	surnames := flag.String("surnames", "", "common-surnames-by-country.csv")
	moreForenames := flag.String("more-forenames", "", "further forenames, one a line")
	moreSurnames := flag.String("more-surnames", "", "further surnames, one a line")
	places := flag.String("places", "", "places, one a line")
	common := flag.String("common", "", "dictionary, one word a line")
	out := flag.String("out", "data/words.txt.gz", "file to write")
	flag.Parse()
	l := list{}
	err := l.columns(*forenames, "f", "Localized Name", "Romanized Name")
	for _, src := range []struct{ path, flag string }{{*moreForenames, "f"}, {*moreSurnames, "s"}, {*places, "p"}, {*common, "c"}} {
		if err == nil {
			err = l.lines(src.path, src.flag)
		}
	}
	if err == nil {
		err = l.columns(*surnames, "s", "Localized Name", "Romanized Name")
	}
	if err == nil {
		err = l.write(*out)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// list maps a word to its letters.
type list map[string]string

// add takes in a word, or each word of a compound.
func (l list) add(name, flag string) {
	lower := flag == "c"
	for _, w := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
		first, _ := utf8.DecodeRuneInString(w)
		if utf8.RuneCountInString(w) < 2 || !unicode.Is(unicode.Latin, first) || lower != unicode.IsLower(first) {
			continue
		}
		w = strings.ToLower(w)
		if !strings.Contains(l[w], flag) {
			l[w] += flag
		}
	}
}

func (l list) lines(path, flag string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open list: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if flag == "c" && strings.Contains(lines.Text(), "'") {
			continue
		}
		l.add(lines.Text(), flag)
	}
	return lines.Err()
}

func (l list) columns(path, flag string, names ...string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open list: %w", err)
	}
	defer f.Close()
	rows := csv.NewReader(f)
	head, err := rows.Read()
	if err != nil {
		return fmt.Errorf("read head: %w", err)
	}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read row: %w", err)
		}
		for _, name := range names {
			if i := slices.Index(head, name); i >= 0 {
				l.add(row[i], flag)
			}
		}
	}
}

func (l list) write(path string) error {
	words := make([]string, 0, len(l))
	for w := range l {
		words = append(words, w)
	}
	slices.Sort(words)
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	for _, w := range words {
		fmt.Fprintf(z, "%s\t%s\n", w, l[w])
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, buf.Bytes(), 0o644)
}
