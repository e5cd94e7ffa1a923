package tagger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"

	"weir/internal/vec"
	"weir/pii/tagger/internal/feature"
)

// Manifest says what the weights are and how they came about.
type Manifest struct {
	Format         int      `json:"format"`
	FeatureVersion int      `json:"feature_version"`
	SHA256         string   `json:"sha256"`
	Bytes          int      `json:"bytes"`
	Rows           int      `json:"rows"`
	Dim            int      `json:"dim"`
	Hidden         int      `json:"hidden"`
	Dilations      []int    `json:"dilations"`
	Tags           int      `json:"tags"`
	Tensors        []Tensor `json:"tensors"`

	Recipe         string   `json:"recipe"` // flags of train.py
	Seed           int      `json:"seed"`
	Steps          int      `json:"steps"`
	BatchTokens    int      `json:"batch_tokens"`
	LearningRate   float64  `json:"learning_rate"`
	TrainingTokens int      `json:"training_tokens"`
	Date           string   `json:"date"`
	Data           []Source `json:"data"`
}

// Tensor is an array in the weights, in their order.
type Tensor struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Shape []int  `json:"shape"`
}

// Source is a set of data that the weights were trained on.
type Source struct {
	Name    string `json:"name"`
	Licence string `json:"licence"`
}

// network is a trained network, ready to run. It is immutable.
type network struct {
	rows       []int8
	rowScale   []float32
	inputScale []float32
	inputBias  []float32
	convs      []conv
	out        *vec.Matrix
	outBias    []float32
	hidden     int
	tags       int
	reach      int // tokens on each side that an output depends on
}

// conv is a convolution over three tokens, dilation apart.
type conv struct {
	taps     [3]*vec.Matrix
	bias     []float32
	dilation int
}

// maxWidth bounds what a manifest may ask for.
const maxWidth = 1024

func loadNetwork(manifest, weights []byte) (*network, *Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(manifest, &m, json.RejectUnknownMembers(true)); err != nil {
		return nil, nil, fmt.Errorf("read manifest: %w", err)
	}
	sum := sha256.Sum256(weights)
	switch {
	case m.Format != 1 || m.FeatureVersion != feature.Version:
		return nil, nil, fmt.Errorf("weights have format %d with features %d", m.Format, m.FeatureVersion)
	case hex.EncodeToString(sum[:]) != m.SHA256:
		return nil, nil, errors.New("weights differ from their manifest")
	case m.Rows != feature.Rows || m.Dim != vec.RowWidth || m.Hidden < 1 || m.Hidden > maxWidth || m.Hidden%vec.Panel != 0 || m.Tags != numTags:
		return nil, nil, errors.New("manifest has other shapes than this program")
	}
	r := &reader{b: weights}
	n := &network{rows: r.bytes(m.Rows * m.Dim), hidden: m.Hidden, tags: m.Tags}
	n.rowScale, n.inputScale, n.inputBias = r.half(m.Rows), r.float(m.Dim), r.float(m.Dim)
	in := m.Dim
	for _, d := range append([]int{1}, m.Dilations...) {
		if d < 1 || d > maxWidth {
			return nil, nil, errors.New("manifest has a dilation out of range")
		}
		c := conv{dilation: d}
		for i := range c.taps {
			c.taps[i] = vec.Pack(in, m.Hidden, r.half(in*m.Hidden))
		}
		c.bias = r.float(m.Hidden)
		n.convs = append(n.convs, c)
		n.reach += d
		in = m.Hidden
	}
	n.out = vec.Pack(m.Hidden, m.Tags, r.half(m.Hidden*m.Tags))
	n.outBias = make([]float32, n.out.Stride)
	copy(n.outBias, r.float(m.Tags))
	if r.short || len(r.b) != 0 {
		return nil, nil, errors.New("weights are longer or shorter than their manifest says")
	}
	return n, &m, nil
}

// reader takes arrays off a blob.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if len(r.b) < n {
		r.short = true
		return make([]byte, n)
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) bytes(n int) []int8 {
	out := make([]int8, n)
	for i, v := range r.take(n) {
		out[i] = int8(v)
	}
	return out
}

func (r *reader) float(n int) []float32 {
	out := make([]float32, n)
	if err := binary.Read(bytes.NewReader(r.take(4*n)), binary.LittleEndian, out); err != nil {
		r.short = true
	}
	return out
}

func (r *reader) half(n int) []float32 {
	out := make([]float32, n)
	b := r.take(2 * n)
	for i := range out {
		out[i] = fromHalf(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return out
}

// fromHalf converts a 16-bit float of IEEE 754.
func fromHalf(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exp {
	case 0:
		v := float32(frac) / (1 << 24)
		if sign != 0 {
			v = -v
		}
		return v
	case 31:
		return math.Float32frombits(sign | 255<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
