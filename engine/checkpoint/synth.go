package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// SynthOptions says how [Synth] writes. The zero value is good.
type SynthOptions struct {
	// Seed selects the weights: the same seed and configuration give the same
	// bytes, on every machine.
	Seed uint64
	// ShardBytes is the most tensor data in one file; 0 means the 5 GiB of
	// published checkpoints. A tensor is never divided, the three parts of a
	// matrix may be.
	ShardBytes int64
	// Progress, if set, is told after each tensor how many bytes of data are
	// written, of how many.
	Progress func(done, total int64)
}

const defaultShard = 5 << 30

// Synth writes a checkpoint with random weights of any size into a new or
// empty folder, in a few megabytes of memory. Activations stay finite and
// experts are chosen about evenly, so that its speed is that of a trained
// checkpoint of the same dimensions; its text is noise. There is no tokenizer.
func Synth(ctx context.Context, dir string, c Config, o SynthOptions) error {
	p := &Problems{Dir: dir}
	if checkDimensions(c, p); len(p.List) > 0 {
		return p
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if old, err := os.ReadDir(dir); err != nil || len(old) > 0 {
		return fmt.Errorf("write checkpoint: %s is not an empty folder", dir)
	}
	limit := o.ShardBytes
	if limit <= 0 {
		limit = defaultShard
	}
	shards, total := splitShards(c, limit)
	s := &synth{seed: o.Seed, total: total, progress: o.Progress}
	index := map[string]string{}
	for i, specs := range shards {
		name := singleFile
		if len(shards) > 1 {
			name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		}
		for _, spec := range specs {
			index[spec.Name] = name
		}
		err := writeFile(ctx, filepath.Join(dir, name), specs, s.write)
		if err != nil {
			return fmt.Errorf("write checkpoint: %w", err)
		}
	}
	// The configuration comes last: a folder without it is not a checkpoint,
	// so that one whose writing was interrupted is not taken for whole.
	if len(shards) > 1 {
		if err := writeJSON(filepath.Join(dir, indexFile), indexJSON(index, total)); err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(dir, "config.json"), c.json())
}

// splitShards divides the tensors in module order into files of at most limit
// bytes of data, as far as single tensors allow.
func splitShards(c Config, limit int64) (shards [][]Spec, total int64) {
	var size int64
	for s := range c.Tensors() {
		n, _ := byteCount(s.DType, s.Shape)
		if len(shards) == 0 || size+n > limit {
			shards, size = append(shards, nil), 0
		}
		last := len(shards) - 1
		shards[last] = append(shards[last], s)
		size, total = size+n, total+n
	}
	return shards, total
}

type synth struct {
	seed  uint64
	total int64

	mu       sync.Mutex // guards done, and calls of progress
	done     int64
	progress func(done, total int64)
}

// stream returns the random bytes that belong to a name.
func (s *synth) stream(name string) *rand.ChaCha8 {
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint64(nil, s.seed))
	io.WriteString(h, name) // a hash does not fail
	return rand.NewChaCha8([32]byte(h.Sum(nil)))
}

// write fills one tensor, a block at a time.
func (s *synth) write(ctx context.Context, w io.Writer, spec Spec) error {
	next := s.filler(spec)
	left, _ := byteCount(spec.DType, spec.Shape)
	size := left
	block := make([]byte, min(left, 256<<10))
	for left > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := block[:min(left, int64(len(block)))]
		next(b)
		if _, err := w.Write(b); err != nil {
			return err
		}
		left -= int64(len(b))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done += size
	if s.progress != nil {
		s.progress(s.done, s.total)
	}
	return nil
}

// filler returns what writes the next bytes of a tensor. Blocks begin at
// multiples of an element's size.
func (s *synth) filler(spec Spec) func([]byte) {
	if spec.DType == U32 {
		codes := s.stream(spec.Name)
		return func(b []byte) { codes.Read(b) } // never fails
	}
	draw := s.values(spec)
	return func(b []byte) {
		for i := 0; i < len(b); i += 2 {
			binary.LittleEndian.PutUint16(b[i:], ToBF16(draw()))
		}
	}
}

// values draws the elements of a BF16 tensor.
func (s *synth) values(spec Spec) func() float32 {
	module, part := spec.Name, ""
	if i := strings.LastIndexByte(module, '.'); spec.Bits > 0 {
		module, part = module[:i], module[i+1:]
	}
	r := rand.New(s.stream(module + " values"))
	// The conversion keeps processors from fusing the two operations, which
	// would round otherwise.
	between := func(lo, hi float64) float64 { return lo + float64((hi-lo)*r.Float64()) }
	if part == "" {
		return func() float32 { return float32(plainValue(spec.Name, between)) }
	}
	// Scales and biases of a module draw the same numbers, so that the values
	// are centred on zero. Codes are uniform.
	steps := float64(int(1)<<spec.Bits - 1)
	inputs := float64(spec.Shape[len(spec.Shape)-1] * GroupSize)
	std := 1 / math.Sqrt(inputs)
	switch {
	case strings.HasSuffix(module, "embed_tokens"):
		std = 1
	case spec.Bits == RouterBits:
		std *= 2
	}
	step := std * math.Sqrt(12) / (steps + 1)
	return func() float32 {
		scale := between(0.75, 1.25) * step
		if r.Uint64()&1 == 1 {
			scale = -scale
		}
		if part == "biases" {
			return float32(-scale * steps / 2)
		}
		return float32(scale)
	}
}

// plainValue draws an element of a tensor that is not quantized, in the range
// that trained models have.
func plainValue(name string, between func(lo, hi float64) float64) float64 {
	switch {
	case strings.HasSuffix(name, "A_log"):
		return between(-4.6, 2.7) // exp is 0.01 to 15
	case strings.HasSuffix(name, "dt_bias"):
		return between(-6, -2)
	case strings.HasSuffix(name, "conv1d.weight"):
		return between(-0.5, 0.5)
	}
	return between(0.8, 1.2) // gains
}
