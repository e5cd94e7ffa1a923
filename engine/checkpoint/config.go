package checkpoint

import "slices"

// GroupSize is how many consecutive weights of a row share a scale and a bias.
const GroupSize = 64

// The bits of a quantized weight: routers and the shared expert's gate have
// RouterBits, everything else WeightBits.
const (
	WeightBits = 4
	RouterBits = 8
)

// Config is what a checkpoint's config.json says, as far as it can vary. What
// cannot vary (silu, gated attention, affine quantization in groups of 64,
// top-k weights that are renormalised) is checked and then left out.
type Config struct {
	HiddenSize   int
	VocabSize    int
	MaxPositions int // longest context, in tokens
	RMSEps       float64

	// FullAttention has one entry a layer: true for gated full attention,
	// false for Gated DeltaNet.
	FullAttention []bool

	// Full attention.
	NumHeads   int
	NumKVHeads int
	HeadDim    int
	RotaryDim  int // leading dimensions of a head that are rotated
	RopeTheta  float64

	// Gated DeltaNet.
	LinearKeyHeads   int
	LinearValueHeads int
	LinearKeyDim     int // of one head
	LinearValueDim   int // of one head
	ConvKernel       int

	// The sparse block, in every layer.
	NumExperts      int
	ExpertsPerToken int
	ExpertWidth     int
	SharedWidth     int

	// EOS lists the ids that end a reply.
	EOS []int
}

// NumLayers returns the number of layers.
func (c Config) NumLayers() int { return len(c.FullAttention) }

// ConvChannels returns the channels of the causal convolution: the queries,
// keys and values of all heads.
func (c Config) ConvChannels() int {
	return 2*c.LinearKeyHeads*c.LinearKeyDim + c.LinearValueHeads*c.LinearValueDim
}

// Clone returns a copy that shares nothing.
func (c Config) Clone() Config {
	c.FullAttention = slices.Clone(c.FullAttention)
	c.EOS = slices.Clone(c.EOS)
	return c
}

// everyFourth returns the layer kinds of n layers of which each fourth has
// full attention.
func everyFourth(n int) []bool {
	full := make([]bool, n)
	for i := 3; i < n; i += 4 {
		full[i] = true
	}
	return full
}

// Full is the configuration of Qwen3.6-35B-A3B, the only one that [Open]
// accepts unless it is told otherwise.
func Full() Config {
	return Config{
		HiddenSize: 2048, VocabSize: 248320, MaxPositions: 262144, RMSEps: 1e-6,
		FullAttention: everyFourth(40),
		NumHeads:      16, NumKVHeads: 2, HeadDim: 256, RotaryDim: 64, RopeTheta: 1e7,
		LinearKeyHeads: 16, LinearValueHeads: 32, LinearKeyDim: 128, LinearValueDim: 128, ConvKernel: 4,
		NumExperts: 256, ExpertsPerToken: 8, ExpertWidth: 512, SharedWidth: 512,
		EOS: []int{248046, 248044},
	}
}

// Mid is a model with layers as wide as those of [Full], but eight of them and
// a quarter of the experts: still far larger than any cache, yet it decodes in
// milliseconds. 1.1 GB on disk.
func Mid() Config {
	c := Full()
	c.FullAttention = everyFourth(8)
	c.NumExperts = 64
	c.VocabSize = 32768
	c.MaxPositions = 32768
	c.EOS = []int{32767, 32766}
	return c
}

// Small is a model for tests of speed that must end in seconds. 44 MB on
// disk.
func Small() Config {
	return Config{
		HiddenSize: 512, VocabSize: 8192, MaxPositions: 8192, RMSEps: 1e-6,
		FullAttention: everyFourth(8),
		NumHeads:      8, NumKVHeads: 2, HeadDim: 128, RotaryDim: 32, RopeTheta: 1e7,
		LinearKeyHeads: 8, LinearValueHeads: 16, LinearKeyDim: 64, LinearValueDim: 64, ConvKernel: 4,
		NumExperts: 16, ExpertsPerToken: 4, ExpertWidth: 256, SharedWidth: 256,
		EOS: []int{8191, 8190},
	}
}
