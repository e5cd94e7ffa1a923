package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
)

// text is a paragraph without labels.
type text struct {
	Text string `json:"text"`
	Lang string `json:"lang"`
	// Dry marks text of manuals.
	Dry bool `json:"dry"`
}

func (t text) doc() doc { return doc{lang: t.Lang, parts: []part{{text: t.Text}}} }

func readText(name string) ([]text, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []text
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var t text
		if err := json.Unmarshal(line, &t); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		out = append(out, t)
	}
}
