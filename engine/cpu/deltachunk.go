package cpu

// ChunkTokens is the most tokens that [Kernels.DeltaChunk] takes at once.
const ChunkTokens = 64

// Rows are vectors at a fixed distance: row t of n columns is
// Data[t*Stride : t*Stride+n].
type Rows struct {
	Data   []float32
	Stride int
}

func (r Rows) row(t, n int) []float32 { return r.Data[t*r.Stride : t*r.Stride+n] }

// DeltaChunk is the scratch of the chunked delta rule, for one goroutine.
type DeltaChunk struct {
	keys, values int
	n            []float32 // [ChunkTokens, values]: corrected values
	p            []float32 // [ChunkTokens]
	sum          []float64 // [ChunkTokens]: of the logarithms of decay up to a token, whose differences matter
}

// NewDeltaChunk makes scratch for heads of that many keys and values.
func NewDeltaChunk(keys, values int) *DeltaChunk {
	return &DeltaChunk{
		keys, values, make([]float32, ChunkTokens*values),
		make([]float32, ChunkTokens), make([]float64, ChunkTokens),
	}
}

// Run is up to [ChunkTokens] steps of [Kernels.Delta] in their chunked form: the
// same result but for rounding. logDecay and beta have one value a token. With
// G the running sum of logDecay, s the state before and n the values each
// token adds to it:
//
//	n[i]   = beta[i] * (v[i] - e^G[i] k[i]·s - sum(j<i) e^(G[i]-G[j]) (k[i]·k[j]) n[j])
//	out[i] = e^G[i] q[i]·s + sum(j<=i) e^(G[i]-G[j]) (q[i]·k[j]) n[j]
//	s      = e^G[last] s + sum(j) e^(G[last]-G[j]) k[j]⊗n[j]
//
// It is the form for devices that multiply matrices faster than they step
// through states, and what Hugging Face computes for a prompt. Here the
// recurrence is as fast: its state stays in the cache, and either form has four
// multiplications or additions for each number of the state and each token.
func (c *DeltaChunk) Run(k Kernels, out Rows, s []float32, key, q, v Rows, logDecay, beta []float32) {
	T, K, V := len(beta), c.keys, c.values
	total := 0.0
	for i, g := range logDecay {
		total += float64(g)
		c.sum[i] = total
	}
	for i := range T {
		n := c.n[i*V : (i+1)*V]
		clear(n)
		k.Blend(n, key.row(i, K), s)
		keep := exp32(float32(c.sum[i]))
		for j, x := range v.row(i, V) {
			n[j] = x - keep*n[j]
		}
		c.weigh(k, key.row(i, K), key, i, i, -1)
		k.Blend(n, c.p[:i], c.n[:i*V])
		for j := range n {
			n[j] *= beta[i]
		}
		o := out.row(i, V)
		clear(o)
		k.Blend(o, q.row(i, K), s)
		for j := range o {
			o[j] *= keep
		}
		c.weigh(k, q.row(i, K), key, i, i+1, 1)
		k.Blend(o, c.p[:i+1], c.n[:(i+1)*V])
	}
	keep := exp32(float32(total))
	for a := range K {
		row := s[a*V : (a+1)*V]
		for j := range row {
			row[j] *= keep
		}
		for j := range T {
			c.p[j] = exp32(float32(total-c.sum[j])) * key.row(j, K)[a]
		}
		k.Blend(row, c.p[:T], c.n[:T*V])
	}
}

// weigh sets p[j] to sign * e^(G[i]-G[j]) * x·key[j], for the first n tokens.
// Decay only takes away, so the exponents are never above zero.
func (c *DeltaChunk) weigh(k Kernels, x []float32, key Rows, i, n int, sign float32) {
	for j := range n {
		c.p[j] = sign * exp32(float32(c.sum[i]-c.sum[j])) * k.Dot(x, key.row(j, c.keys))
	}
}
