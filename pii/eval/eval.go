// Package eval measures how well private values are found.
//
// Begin at [Read], which loads labelled documents, and [Run], which has them
// scanned and gives a [Report]; [Compare] says what changed between two. The
// documents are JSON lines with byte spans; coverage.json beside them says
// which labels a source annotates at all.
//
// It promises that a finding of a label that a source does not annotate, or on
// something that its annotators marked as outside the labels, counts neither
// for nor against. It holds texts in memory and prints none.
package eval

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"weir/pii"
)

// Span is a labelled span of a document. A Label that is empty marks something
// outside the labels.
type Span struct {
	Start int       `json:"start"`
	End   int       `json:"end"`
	Label pii.Label `json:"weir_label"`
}

// Doc is a labelled document.
type Doc struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Spans  []Span `json:"spans"`
	Source string `json:"source"`
	Lang   string `json:"lang"`
}

// Format keeps texts out of logs.
func (d Doc) Format(w fmt.State, _ rune) {
	fmt.Fprintf(w, "document(%d bytes, %d spans)", len(d.Text), len(d.Spans))
}

// Coverage holds the labels that each source annotates. A source that is not in
// it annotates all of them.
type Coverage map[string][]pii.Label

// covers reports whether a source annotates a label.
func (c Coverage) covers(source string, l pii.Label) bool {
	labels, ok := c[source]
	return !ok || slices.Contains(labels, l)
}

// maxLine bounds a document's line.
const maxLine = 64 << 20

// Read loads the documents of a file, or of all *.jsonl and *.jsonl.gz files of
// a directory, in the order of their names. Coverage comes from a coverage.json
// in the directory or the one above it; without one it is empty.
func Read(path string) ([]Doc, Coverage, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	dir, files := filepath.Dir(path), []string{path}
	if info.IsDir() {
		dir, files = path, nil
		for _, pattern := range [...]string{"*.jsonl", "*.jsonl.gz"} {
			found, err := filepath.Glob(filepath.Join(path, pattern))
			if err != nil {
				return nil, nil, err
			}
			files = append(files, found...)
		}
		slices.Sort(files)
		if len(files) == 0 {
			return nil, nil, fmt.Errorf("no .jsonl files in %s", path)
		}
	}
	var docs []Doc
	for _, name := range files {
		more, err := readFile(name)
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", name, err)
		}
		docs = append(docs, more...)
	}
	cov, err := readCoverage(dir)
	return docs, cov, err
}

func readCoverage(dir string) (Coverage, error) {
	for _, d := range [...]string{dir, filepath.Dir(dir)} {
		b, err := os.ReadFile(filepath.Join(d, "coverage.json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var cov Coverage
		if err := json.Unmarshal(b, &cov); err != nil {
			return nil, fmt.Errorf("read coverage.json: %w", err)
		}
		return cov, nil
	}
	return Coverage{}, nil
}

func readFile(name string) ([]Doc, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, err
		}
		r = z
	}
	var docs []Doc
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		d, err := parse(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		docs = append(docs, d)
	}
	return docs, lines.Err()
}

func parse(line []byte) (Doc, error) {
	var d Doc
	if err := json.Unmarshal(line, &d); err != nil {
		// The error of the JSON package quotes its input.
		return d, errors.New("not a labelled document")
	}
	slices.SortFunc(d.Spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	end := 0
	for _, sp := range d.Spans {
		if sp.Start < end || sp.End <= sp.Start || sp.End > len(d.Text) {
			return d, fmt.Errorf("span %d-%d overlaps another or lies outside the text", sp.Start, sp.End)
		}
		end = sp.End
	}
	return d, nil
}
