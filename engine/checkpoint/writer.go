package checkpoint

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/go-json-experiment/json/jsontext"
)

// headerJSON writes the header for tensors in this order, unpadded as MLX
// writes it.
func headerJSON(specs []Spec) ([]byte, error) {
	ints := func(v ...int64) (b []byte) {
		b = append(b, '[')
		for i, n := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = fmt.Append(b, n)
		}
		return append(b, ']')
	}
	out := []byte(`{"__metadata__":{"format":"mlx"}`)
	var at int64
	for _, s := range specs {
		n, ok := byteCount(s.DType, s.Shape)
		if !ok {
			return nil, fmt.Errorf("%s has impossible shape %v", s.Name, s.Shape)
		}
		var err error
		if out, err = jsontext.AppendQuote(append(out, ','), s.Name); err != nil {
			return nil, fmt.Errorf("tensor name: %w", err)
		}
		shape := make([]int64, len(s.Shape))
		for i, d := range s.Shape {
			shape[i] = int64(d)
		}
		out = fmt.Appendf(out, `:{"dtype":%q,"shape":%s,"data_offsets":%s}`, s.DType, ints(shape...), ints(at, at+n))
		at += n
	}
	return append(out, '}'), nil
}

// writeFile writes a safetensors file. Tensors are filled side by side, one to
// a core, in the blocks that fill makes.
func writeFile(ctx context.Context, path string, specs []Spec, fill func(ctx context.Context, w io.Writer, s Spec) error) (err error) {
	header, err := headerJSON(specs)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	head := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	if _, err := f.Write(head); err != nil {
		return err
	}
	at := make([]int64, len(specs))
	next := int64(len(head))
	for i, s := range specs {
		n, _ := byteCount(s.DType, s.Shape) // headerJSON has looked
		at[i], next = next, next+n
	}
	return parallel(ctx, len(specs), runtime.GOMAXPROCS(0), func(ctx context.Context, i int) error {
		if err := fill(ctx, io.NewOffsetWriter(f, at[i]), specs[i]); err != nil {
			return fmt.Errorf("write %s: %w", specs[i].Name, err)
		}
		return nil
	})
}
