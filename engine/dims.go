package engine

// dims are the numbers of the architecture, named as in the notes on the
// forward pass. The pinned model's values stand beside them.
type dims struct {
	vocab  int // 248320
	hidden int // 2048
	layers int // 40
	full   []bool

	heads, kvHeads, headDim int // 16, 2, 256
	rotary                  int // 64: dims of a head that turn with position
	theta                   float64

	keyHeads, valueHeads int // 16, 32
	keyDim, valueDim     int // 128, 128, per head

	experts, topK     int // 256, 8
	width, sharedWide int // 512, 512

	eps        float32 // 1e-6
	maxContext int     // 262144
	half       bool    // keys and values are kept in bfloat16
	stop       []int32
}

// convTaps is the length of the causal convolution, the same in every model of
// this architecture.
const convTaps = 4

// l2eps is the epsilon of the L2 norm of delta-rule queries and keys. It is
// Hugging Face's; MLX computes an effective 1.28e-4 at 128 dimensions.
const l2eps = 1e-6

// keys, values and channels are the widths of the delta rule's projections.
func (d *dims) keys() int     { return d.keyHeads * d.keyDim }
func (d *dims) values() int   { return d.valueHeads * d.valueDim }
func (d *dims) channels() int { return 2*d.keys() + d.values() }

// queries and kv are the widths of attention, gates not counted.
func (d *dims) queries() int { return d.heads * d.headDim }
func (d *dims) kv() int      { return d.kvHeads * d.headDim }

// attentionLayers counts the layers that keep keys and values.
func (d *dims) attentionLayers() int {
	n := 0
	for _, f := range d.full {
		if f {
			n++
		}
	}
	return n
}
