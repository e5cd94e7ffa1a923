package engine

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"

	"github.com/go-json-experiment/json"
)

//go:embed goldens/golden_35b_*.json
var goldenFiles embed.FS

// Golden is what another implementation generated greedily from a prompt.
type Golden struct {
	Name   string
	Prompt []int32
	Chosen []int32
	P      []float64 // logarithms of the probabilities of Chosen
	Gap    []float64 // of each over the next most probable, in the same unit
	// Strict says that the gaps are wide enough to ask for the same tokens.
	Strict bool
}

// Goldens are those for the pinned checkpoint: a chat turn, a prompt of 2,687
// tokens, and raw text with near-ties.
func Goldens() ([]Golden, error) {
	var all []Golden
	for _, name := range []string{"chat", "long", "raw"} {
		raw, err := goldenFiles.ReadFile("goldens/golden_35b_" + name + ".json")
		if err != nil {
			return nil, fmt.Errorf("read golden %s: %w", name, err)
		}
		var file struct {
			Prompt []int32 `json:"prompt_token_ids"`
			Steps  []struct {
				Chosen int32        `json:"chosen"`
				Top    [][2]float64 `json:"topk"`
			} `json:"steps"`
		}
		if err := json.Unmarshal(raw, &file); err != nil {
			return nil, fmt.Errorf("read golden %s: %w", name, err)
		}
		g := Golden{Name: name, Prompt: file.Prompt, Strict: name != "raw"}
		for _, s := range file.Steps {
			if len(s.Top) < 2 || int32(s.Top[0][0]) != s.Chosen {
				return nil, fmt.Errorf("read golden %s: a step's first token is not the chosen one", name)
			}
			g.Chosen, g.P = append(g.Chosen, s.Chosen), append(g.P, s.Top[0][1])
			g.Gap = append(g.Gap, s.Top[0][1]-s.Top[1][1])
		}
		all = append(all, g)
	}
	return all, nil
}

// Agreement is how near the engine came to a golden.
type Agreement struct {
	Name    string
	Steps   int
	Same    int     // steps whose most probable token is the golden's
	Clear   int     // steps whose gap is at least half a nat
	ClearOK int     // of them, how many are the same
	FarOff  float64 // greatest difference of a chosen token's logarithm of probability
	Passed  bool
}

// Tolerances of goldens: another order of sums in 8 or 16 bits moves a logit by
// about a tenth, so tokens nearer than half a nat may swap.
const (
	clearGap = 0.5
	farOff   = 0.3
)

// Check feeds a golden's own tokens and compares what the engine would have
// chosen at each step. A strict golden passes when every token is the same;
// another when the clear ones are and no probability is far off.
func (e *Engine) Check(ctx context.Context, g Golden) (Agreement, error) {
	a := Agreement{Name: g.Name, Steps: len(g.Chosen)}
	if len(g.Chosen) == 0 || len(g.P) != len(g.Chosen) || len(g.Gap) != len(g.Chosen) {
		return a, errors.New("golden has no steps, or steps without probabilities")
	}
	s := e.NewSession()
	defer s.Close()
	next := g.Prompt
	for i, want := range g.Chosen {
		if err := s.Extend(ctx, next); err != nil {
			return a, fmt.Errorf("check golden %s: %w", g.Name, err)
		}
		if want < 0 || int(want) >= len(s.logits) {
			return a, fmt.Errorf("check golden %s, step %d: %w", g.Name, i, ErrToken)
		}
		same := greedy(s.logits) == want
		if same {
			a.Same++
		}
		if g.Gap[i] >= clearGap {
			a.Clear++
			if same {
				a.ClearOK++
			}
		}
		d := math.Abs(logprob(s.logits, want) - g.P[i])
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		a.FarOff = max(a.FarOff, d)
		next = g.Chosen[i : i+1]
	}
	if a.Passed = a.Same == a.Steps; !g.Strict {
		a.Passed = a.ClearOK == a.Clear && a.FarOff <= farOff
	}
	return a, nil
}

// logprob is the logarithm of id's probability.
func logprob(logits []float32, id int32) float64 {
	top := float64(slices.Max(logits))
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - top)
	}
	return float64(logits[id]) - top - math.Log(sum)
}

// Record is what an engine makes of a text, for another to be compared with.
// It holds tokens.
type Record struct {
	Tokens []int32   `json:"tokens"`
	Top    []int32   `json:"top"` // most probable token after each but the last
	P      []float64 `json:"p"`   // logarithm of the probability of the token that follows
}

// LogValue prints the length alone.
func (r Record) LogValue() slog.Value { return slog.StringValue(r.size()) }

// Format prints the length alone, whatever the verb.
func (r Record) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.size()) }

func (r Record) size() string { return fmt.Sprintf("record(%d tokens)", len(r.Tokens)) }

// Record runs over tokens and notes what it would have said at each.
func (e *Engine) Record(ctx context.Context, tokens []int32) (Record, error) {
	r := Record{Tokens: tokens}
	if len(tokens) < 2 {
		return r, fmt.Errorf("record %d tokens: %w", len(tokens), ErrToken)
	}
	s := e.NewSession()
	defer s.Close()
	err := s.Score(ctx, tokens, func(i int, logits []float32) {
		if i+1 < len(tokens) {
			r.Top = append(r.Top, greedy(logits))
			r.P = append(r.P, logprob(logits, tokens[i+1]))
		}
	})
	return r, err
}

// Difference is how two records of the same tokens differ.
type Difference struct {
	Tokens         int
	SameTop        float64 // rate of places with the same most probable token
	PerplexityWas  float64
	PerplexityIs   float64
	PerplexityGrew float64 // ratio less one
}

// Compare tells how is differs from was.
func Compare(was, is Record) (Difference, error) {
	n := len(was.Top)
	if n == 0 || !slices.Equal(was.Tokens, is.Tokens) || len(is.Top) != n || len(was.P) != n || len(is.P) != n {
		return Difference{}, errors.New("compare records: they are not of the same tokens")
	}
	d := Difference{Tokens: len(was.Tokens)}
	var a, b float64
	for i := range was.Top {
		if was.Top[i] == is.Top[i] {
			d.SameTop += 1 / float64(n)
		}
		a += was.P[i] / float64(n)
		b += is.P[i] / float64(n)
	}
	d.PerplexityWas, d.PerplexityIs = math.Exp(-a), math.Exp(-b)
	d.PerplexityGrew = math.Exp(a-b) - 1
	return d, nil
}
