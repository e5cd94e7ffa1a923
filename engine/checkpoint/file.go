package checkpoint

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
)

// Tensor is one tensor of a mapped file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	// Data is the tensor's little-endian bytes, row-major. It is part of a
	// read-only mapping: writing to it faults, and it ends with Close.
	Data []byte
	// Shard is the index in [Checkpoint.Shards] of the mapping that holds
	// Data, and Offset where Data begins in it.
	Shard  int
	Offset int64
}

// Len returns the number of elements.
func (t Tensor) Len() int {
	if t.DType.Size() == 0 {
		return 0
	}
	return len(t.Data) / t.DType.Size()
}

// Float32s returns the elements of a BF16 or F32 tensor as a new slice. It
// panics on another type, which the layout rules out for a checked tensor.
func (t Tensor) Float32s() []float32 {
	out := make([]float32, t.Len())
	switch t.DType {
	case BF16:
		for i := range out {
			out[i] = FromBF16(binary.LittleEndian.Uint16(t.Data[2*i:]))
		}
	case F32:
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
		}
	default:
		panic(fmt.Sprintf("checkpoint: Float32s of %s tensor %s", t.DType, t.Name))
	}
	return out
}

// Uint32s returns the elements of a U32 or I32 tensor as a new slice, and
// panics on another type.
func (t Tensor) Uint32s() []uint32 {
	if t.DType != U32 && t.DType != I32 {
		panic(fmt.Sprintf("checkpoint: Uint32s of %s tensor %s", t.DType, t.Name))
	}
	out := make([]uint32, t.Len())
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(t.Data[4*i:])
	}
	return out
}

// File is one mapped safetensors file. It is safe for concurrent use until it
// is closed.
type File struct {
	mapping []byte
	tensors map[string]Tensor
	order   []string
}

// OpenFile maps a safetensors file with whatever tensors it has.
func OpenFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err // *PathError names the operation and the file
	}
	defer f.Close() // the mapping outlives the descriptor
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	ext, data, err := readHeader(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m, err := mapFile(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	file := &File{mapping: m, tensors: make(map[string]Tensor, len(ext))}
	for _, e := range ext {
		at := data + e.begin
		file.order = append(file.order, e.name)
		file.tensors[e.name] = Tensor{
			Name: e.name, DType: e.dtype, Shape: e.shape,
			Data: m[at : data+e.end : data+e.end], Offset: at,
		}
	}
	return file, nil
}

// Tensor returns the tensor of that name, if the file has it.
func (f *File) Tensor(name string) (Tensor, bool) {
	t, ok := f.tensors[name]
	return t, ok
}

// Tensors yields all tensors in file order.
func (f *File) Tensors() iter.Seq[Tensor] {
	return func(yield func(Tensor) bool) {
		for _, name := range f.order {
			if !yield(f.tensors[name]) {
				return
			}
		}
	}
}

// Close ends the mapping. Tensors of the file must not be read afterwards.
// Closing again does nothing.
func (f *File) Close() error {
	m := f.mapping
	f.mapping, f.tensors, f.order = nil, nil, nil
	return unmap(m)
}

func (t Tensor) is(d DType, shape []int) bool {
	return t.DType == d && slices.Equal(t.Shape, shape)
}
