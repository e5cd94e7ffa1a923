package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxHeader bounds the JSON header, as the reference reader does. The largest
// of the pinned revision has 88,906 bytes.
const maxHeader = 100 << 20

// maxDims bounds a tensor's rank; the layout uses 3.
const maxDims = 8

// extent is what the header of a safetensors file says of one tensor.
type extent struct {
	name       string
	dtype      DType
	shape      []int
	begin, end int64 // bytes after the header
}

// readHeader reads and checks the header of a safetensors file of size bytes.
// It returns the tensors in file order and the offset at which data begins.
// The data must be covered without hole, overlap or rest: a file that was cut
// short or has grown is found here, before anything is mapped.
func readHeader(r io.ReaderAt, size int64) (ext []extent, data int64, err error) {
	if size < 8 {
		return nil, 0, fmt.Errorf("file has %d bytes, too few for a safetensors header", size)
	}
	var prefix [8]byte
	if _, err := r.ReadAt(prefix[:], 0); err != nil {
		return nil, 0, fmt.Errorf("read header length: %w", err)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, 0, fmt.Errorf("header claims %d bytes in a file of %d: not a safetensors file, or cut short", n, size)
	}
	raw := make([]byte, n)
	if _, err := r.ReadAt(raw, 8); err != nil && err != io.EOF {
		return nil, 0, fmt.Errorf("read header: %w", err)
	}
	ext, err = parseHeader(raw)
	if err != nil {
		return nil, 0, err
	}
	data = 8 + int64(n)
	return ext, data, checkCover(ext, size-data)
}

// parseHeader decodes the header's JSON. Duplicate names are refused by the
// decoder.
func parseHeader(raw []byte) ([]extent, error) {
	if !bytes.HasPrefix(raw, []byte("{")) {
		return nil, fmt.Errorf("header does not begin with an object: not a safetensors file")
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("header is not valid JSON: %w", syntaxOnly(err))
	}
	ext := make([]extent, 0, len(members))
	for name, v := range members {
		if name == "__metadata__" {
			var meta map[string]string
			if err := json.Unmarshal(v, &meta); err != nil {
				return nil, fmt.Errorf("header: __metadata__ is not an object of strings")
			}
			continue
		}
		e, err := parseExtent(name, v)
		if err != nil {
			return nil, err
		}
		ext = append(ext, e)
	}
	slices.SortFunc(ext, func(a, b extent) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.name, b.name))
	})
	return ext, nil
}

func parseExtent(name string, v jsontext.Value) (extent, error) {
	var t struct {
		DType   DType   `json:"dtype"`
		Shape   []int   `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(v, &t, json.RejectUnknownMembers(true)); err != nil || t.Shape == nil {
		return extent{}, fmt.Errorf("header: %s has not the members dtype, shape and data_offsets", name)
	}
	if t.DType.Size() == 0 {
		return extent{}, fmt.Errorf("header: %s has unknown type %q", name, t.DType)
	}
	if len(t.Offsets) != 2 || t.Offsets[0] < 0 || t.Offsets[1] < t.Offsets[0] {
		return extent{}, fmt.Errorf("header: %s has data_offsets %v", name, t.Offsets)
	}
	want, ok := byteCount(t.DType, t.Shape)
	if !ok {
		return extent{}, fmt.Errorf("header: %s has impossible shape %v", name, t.Shape)
	}
	if have := t.Offsets[1] - t.Offsets[0]; have != want {
		return extent{}, fmt.Errorf("header: %s of %s%v needs %d bytes, data_offsets give it %d", name, t.DType, t.Shape, want, have)
	}
	return extent{name: name, dtype: t.DType, shape: t.Shape, begin: t.Offsets[0], end: t.Offsets[1]}, nil
}

// byteCount returns the bytes of a tensor, or false if they cannot be counted.
func byteCount(d DType, shape []int) (int64, bool) {
	if len(shape) > maxDims {
		return 0, false
	}
	n := uint64(d.Size())
	for _, s := range shape {
		if s < 0 {
			return 0, false
		}
		hi, lo := bits.Mul64(n, uint64(s))
		if hi != 0 || lo > 1<<62 {
			return 0, false
		}
		n = lo
	}
	return int64(n), true
}

// checkCover reports the first place where the tensors, in file order, do not
// tile the data section.
func checkCover(ext []extent, size int64) error {
	var at int64
	for i, e := range ext {
		switch {
		case e.begin < at:
			return fmt.Errorf("header: %s overlaps %s", e.name, ext[i-1].name)
		case e.begin > at:
			return fmt.Errorf("header: %d bytes before %s belong to no tensor", e.begin-at, e.name)
		}
		at = e.end
	}
	switch {
	case at > size:
		return fmt.Errorf("file is cut short: the header describes %d bytes of data, %d are there", at, size)
	case at < size:
		return fmt.Errorf("file has %d bytes of data that belong to no tensor", size-at)
	}
	return nil
}

// syntaxOnly keeps where a decoding error happened and drops what stood there.
func syntaxOnly(err error) error {
	switch e := err.(type) {
	case *jsontext.SyntacticError:
		return fmt.Errorf("at byte %d", e.ByteOffset)
	case *json.SemanticError:
		return fmt.Errorf("at byte %d", e.ByteOffset)
	}
	return fmt.Errorf("unreadable")
}
