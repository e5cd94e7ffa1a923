package checkpoint

import "bytes"

// ReadHeader exposes the header's reader to the fuzzer, which is too slow
// with files.
func ReadHeader(raw []byte) (data int64, ends []int64, err error) {
	ext, data, err := readHeader(bytes.NewReader(raw), int64(len(raw)))
	for _, e := range ext {
		ends = append(ends, e.end)
	}
	return data, ends, err
}

// Enough exposes the judgement of free space.
func Enough(free, need int64) error { return enough(free, need, "dir") }
