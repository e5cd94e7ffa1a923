package checkpoint

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
)

// CheckFinite reads every scale, bias and unquantized weight and reports all
// tensors that hold a NaN or an infinity, as a [*Problems]. It reads a ninth
// of the checkpoint, on all processors; codes can hold no such value.
func (c *Checkpoint) CheckFinite(ctx context.Context) error {
	names := slices.DeleteFunc(sortedKeys(c.tensors), func(n string) bool { return c.tensors[n].DType != BF16 })
	found := make([]string, len(names))
	err := parallel(ctx, len(names), runtime.GOMAXPROCS(0), func(ctx context.Context, i int) error {
		if at := firstNotFinite(c.tensors[names[i]].Data); at >= 0 {
			found[i] = fmt.Sprintf("%s: element %d is not a finite number", names[i], at)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	p := &Problems{Dir: c.dir, List: slices.DeleteFunc(found, func(s string) bool { return s == "" })}
	return p.err()
}

// firstNotFinite returns the index of the first bfloat16 whose exponent is all
// ones, or -1. Four are looked at together: adding one to the exponent carries
// into the bit above it exactly if it was all ones.
func firstNotFinite(data []byte) int {
	const exponents, ones, carries = 0x7f80_7f80_7f80_7f80, 0x0080_0080_0080_0080, 0x8000_8000_8000_8000
	i := 0
	for ; i+8 <= len(data); i += 8 {
		if (binary.LittleEndian.Uint64(data[i:])&exponents+ones)&carries != 0 {
			break
		}
	}
	for ; i+2 <= len(data); i += 2 {
		if binary.LittleEndian.Uint16(data[i:])&0x7f80 == 0x7f80 {
			return i / 2
		}
	}
	return -1
}
