package matrix_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

// routing is a way in which rows choose experts.
type routing struct {
	name  string
	logit func(r *rand.Rand, row, e int) float32
}

var routings = []routing{
	{"random", func(r *rand.Rand, _, _ int) float32 { return float32(r.NormFloat64()) }},
	// All rows choose the same: the longest run of tiles, and empty experts.
	{"all to some", func(_ *rand.Rand, _, e int) float32 { return -float32(e % 7) }},
	// Everything ties: the lower number wins.
	{"ties", func(*rand.Rand, int, int) float32 { return 0.25 }},
	{"all at -inf but one", func(_ *rand.Rand, row, e int) float32 {
		if e == row%5 {
			return 1
		}
		return float32(math.Inf(-1))
	}},
}

// chooseRef is what topk_rows must choose, and its weights.
func chooseRef(logits []float32, k int) ([]uint32, []float64) {
	order := make([]uint32, len(logits))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortStableFunc(order, func(a, b uint32) int {
		switch x, y := logits[a], logits[b]; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	pick, weight, sum := order[:k], make([]float64, k), 0.0
	for i, e := range pick {
		weight[i] = math.Exp(float64(logits[e]) - float64(logits[pick[0]]))
		sum += weight[i]
	}
	for i := range weight {
		weight[i] /= sum
	}
	return pick, weight
}

func TestRouting(t *testing.T) {
	shapes := []struct {
		m, experts, k int
		real          bool
	}{
		{1, 8, 2, false},
		{37, 33, 8, false},
		{9, 256, 8, false},
		{70, 5, 5, false},
		{150, 12, 7, false},
		{4096, 256, 8, true},
		{500, 1024, 10, true},
		{1, 256, 8, true},
	}
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for _, s := range shapes {
			for _, how := range routings {
				if s.real && !b.Fast() {
					continue
				}
				t.Run(fmt.Sprintf("%d of %d for %d/%s", s.k, s.experts, s.m, how.name), func(t *testing.T) {
					b := &devicetest.Bench{TB: t, Device: b.Device}
					r := rand.New(rand.NewPCG(3, uint64(s.m)))
					logits := make([]float32, s.m*s.experts)
					for i := range logits {
						logits[i] = how.logit(r, i/s.experts, i%s.experts)
					}
					seen := map[int]bool{} // only the rows of a tile matter here
					for _, tile := range kernels.Tiles(b.Device.Caps()) {
						if seen[tile.Rows()] {
							continue
						}
						seen[tile.Rows()] = true
						testRouting(t, b, kernels.Experts{Tile: tile, M: s.m, K: s.k, Experts: s.experts}, logits)
					}
				})
			}
		}
	})
}

func testRouting(t *testing.T, b *devicetest.Bench, e kernels.Experts, logits []float32) {
	c := e.Choices()
	pick, weight := devicetest.In(b, make([]uint32, c)), devicetest.In(b, make([]float32, c))
	counts, slots := devicetest.In(b, make([]uint32, e.Experts)), devicetest.In(b, make([]uint32, c))
	junk := make([]uint32, 4*e.MaxTiles())
	for i := range junk {
		junk[i] = 99
	}
	tiles := devicetest.In(b, junk)
	b.Run(
		kernels.TopK(devicetest.In(b, logits), pick, weight, e.M, e.Experts, e.K),
		kernels.MoeCount(e, pick, counts),
		kernels.MoePlace(e, pick, counts, slots, tiles),
	)
	gotPick, gotWeight := devicetest.Out[uint32](b, pick, c), devicetest.Out[float32](b, weight, c)
	wantSlots := make([][]uint32, e.Experts)
	for row := range e.M {
		p, w := chooseRef(logits[row*e.Experts:(row+1)*e.Experts], e.K)
		if !slices.Equal(gotPick[row*e.K:(row+1)*e.K], p) {
			t.Fatalf("row %d picks %v, want %v", row, gotPick[row*e.K:(row+1)*e.K], p)
		}
		for i := range w {
			near(t, "weight", row*e.K+i, float64(gotWeight[row*e.K+i]), w[i], 1e-6)
			wantSlots[p[i]] = append(wantSlots[p[i]], uint32(row*e.K+i))
		}
	}
	if got, want := devicetest.Out[uint32](b, slots, c), slices.Concat(wantSlots...); !slices.Equal(got, want) {
		t.Fatalf("slots %v, want %v", got, want)
	}
	var want []uint32
	at := 0
	for x, s := range wantSlots {
		for i := 0; i < len(s); i += e.Tile.Rows() {
			want = append(want, uint32(x), uint32(at+i), uint32(at+min(i+e.Tile.Rows(), len(s))), 0)
		}
		at += len(s)
	}
	if len(want) > len(junk) {
		t.Fatalf("MaxTiles is %d, %d tiles are needed", len(junk)/4, len(want)/4)
	}
	want = append(want, make([]uint32, len(junk)-len(want))...)
	if got := devicetest.Out[uint32](b, tiles, len(junk)); !slices.Equal(got, want) {
		t.Fatalf("tiles %v, want %v", got, want)
	}
}

// expertShape is for the whole of the experts, from the logits to the sum.
type expertShape struct {
	m, hidden, width, experts, k int
	real                         bool
}

var expertShapes = []expertShape{
	{1, 64, 64, 4, 2, false},
	{41, 128, 64, 9, 3, false},
	{700, 2048, 512, 256, 8, true},
}

func TestExperts(t *testing.T) {
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		eachExperts(t, b, false, routings[:3])
	})
}

func TestMatrixExperts(t *testing.T) {
	devicetest.EachMatrix(t, func(t *testing.T, b *devicetest.Bench) {
		eachExperts(t, b, true, routings[1:2])
		if b.Fast() {
			eachExperts(t, b, true, routings[:1])
		}
	})
}

// expertWeights are the matrices of a layer's experts.
type expertWeights struct{ gate, up, down *quantMatrix }

func eachExperts(t *testing.T, b *devicetest.Bench, matrix bool, hows []routing) {
	for _, s := range expertShapes {
		if s.real && !b.Fast() {
			continue
		}
		r := rand.New(rand.NewPCG(5, uint64(s.m)))
		w := expertWeights{
			newQuantMatrix(r, s.experts*s.width, s.hidden, 4), newQuantMatrix(r, s.experts*s.width, s.hidden, 4),
			newQuantMatrix(r, s.experts*s.hidden, s.width, 4),
		}
		for _, tile := range kernels.Tiles(b.Device.Caps()) {
			if tile.Matrix() != matrix {
				continue
			}
			for _, how := range hows {
				t.Run(fmt.Sprintf("%s/%d to %d of %d/%s", tile, s.m, s.k, s.experts, how.name), func(t *testing.T) {
					b := &devicetest.Bench{TB: t, Device: b.Device}
					logits := make([]float32, s.m*s.experts)
					for i := range logits {
						logits[i] = how.logit(r, i/s.experts, i%s.experts)
					}
					testExperts(t, b, kernels.Experts{Tile: tile, M: s.m, K: s.k, Experts: s.experts}, w, logits, s)
				})
			}
		}
	}
}

func testExperts(t *testing.T, b *devicetest.Bench, e kernels.Experts, q expertWeights, logits []float32, s expertShape) {
	r := rand.New(rand.NewPCG(6, uint64(s.m)))
	c, hidden, width := e.Choices(), s.hidden, s.width
	gate, up, down := q.gate, q.up, q.down
	raw, x := bfRows(r, e.M, hidden, hidden)
	sharedRaw, shared := bfRows(r, e.M, hidden, hidden)
	share, before := f32Rows(r, e.M, 1, 1), f32Rows(r, e.M, hidden, hidden)
	pick, weight := devicetest.In(b, make([]uint32, c)), devicetest.In(b, make([]float32, c))
	counts, slots := devicetest.In(b, make([]uint32, e.Experts)), devicetest.In(b, make([]uint32, c))
	tiles := devicetest.In(b, make([]uint32, 4*e.MaxTiles()))
	act := view(devicetest.In(b, make([]uint16, c*width)), width)
	y := view(devicetest.In(b, make([]uint16, c*hidden)), hidden)
	h := devicetest.In(b, before)
	b.Run(
		kernels.TopK(devicetest.In(b, logits), pick, weight, e.M, e.Experts, e.K),
		kernels.MoeCount(e, pick, counts),
		kernels.MoePlace(e, pick, counts, slots, tiles),
		kernels.MoeGateUpRows(e, view(devicetest.In(b, raw), hidden), slots, tiles, gate.on(b, width), up.on(b, width), act),
		kernels.MoeDownRows(e, act, slots, tiles, down.on(b, hidden), y),
		kernels.MoeCombineRows(y.Data, weight, devicetest.In(b, sharedRaw), devicetest.In(b, share), h, e.M, hidden, e.K),
	)
	got := devicetest.Out[float32](b, h, len(before))
	sample(e.M, 6, func(row int) {
		p, w := chooseRef(logits[row*e.Experts:(row+1)*e.Experts], e.K)
		want := make([]float64, hidden)
		for i, ex := range p {
			a := make([]float64, width)
			for j := range a {
				at := int(ex)*width + j
				a[j] = fromBF16(bf16(silu(gate.dot(at, x[row], true)) * up.dot(at, x[row], true)))
			}
			for j := range want {
				want[j] += w[i] * fromBF16(bf16(down.dot(int(ex)*hidden+j, a, true)))
			}
		}
		for j := range want {
			at := row*hidden + j
			near(t, "h", at, float64(got[at]), float64(before[at])+want[j]+float64(share[row])*shared[row][j], 4e-3)
		}
	})
}
