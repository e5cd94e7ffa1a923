package tagger

import (
	"bufio"
	"bytes"
	_ "embed"
	"math"
	"testing"

	"github.com/go-json-experiment/json"
)

//go:embed weights/vectors.jsonl
var vectorsFile []byte

// TestVectors holds the network to what the training framework computed from
// the same weights.
func TestVectors(t *testing.T) {
	t.Parallel()
	tg, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(vectorsFile))
	lines.Buffer(nil, 1<<20)
	n, worst := 0, 0.0
	for lines.Scan() {
		var v struct {
			Rows   [][]uint16  `json:"rows"`
			Logits [][]float64 `json:"logits"`
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		n++
		var w workspace
		count := len(v.Rows)
		got := tg.net.run(&w, 0, count, 0, count, func(i int, ids []uint16) []uint16 { return append(ids, v.Rows[i]...) })
		for i, row := range v.Logits {
			for j, want := range row {
				d := math.Abs(float64(got[i*tg.net.out.Stride+j]) - want)
				worst = max(worst, d/max(1, math.Abs(want)))
			}
		}
	}
	if n < 5 || worst > 1e-4 {
		t.Errorf("%d vectors, off by %g", n, worst)
	}
	t.Logf("%d vectors, off by at most %g", n, worst)
}
