package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
)

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

// Sparse writes a checkpoint whose data is a hole: the size of the real one,
// without its bytes.
func Sparse(dir string, c Config) error {
	shards, total := splitShards(c, defaultShard)
	index := map[string]string{}
	for i, specs := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		size := int64(0)
		for _, s := range specs {
			n, _ := byteCount(s.DType, s.Shape)
			size += n
			index[s.Name] = name
		}
		header, err := headerJSON(specs)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), 0o600); err != nil {
			return err
		}
		if err := os.Truncate(path, 8+int64(len(header))+size); err != nil {
			return err
		}
	}
	if err := writeJSON(filepath.Join(dir, indexFile), indexJSON(index, total)); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "config.json"), c.json())
}
