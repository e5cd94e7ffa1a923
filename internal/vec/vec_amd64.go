package vec

import "golang.org/x/sys/cpu"

// The kinds of assembly.
const (
	levelPlain = iota
	levelAVX2
	levelAVX512
)

var level = detect()

func detect() int {
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL:
		return levelAVX512
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return levelAVX2
	}
	return levelPlain
}

//go:noescape
func tile512(c *float32, ldc int, a *float32, lda int, b *float32, k int)

//go:noescape
func tile256(c *float32, ldc int, a *float32, lda int, b *float32, k int)

//go:noescape
func addReLU256(dst, src *float32, n int)

//go:noescape
func sumRows256(dst *float32, table *int8, scale *float32, rows *uint16, n int)

func tile(c []float32, ldc int, a []float32, lda int, b []float32, k, l int) {
	switch l {
	case levelAVX512:
		tile512(&c[0], ldc*4, &a[0], lda*4, &b[0], k)
	case levelAVX2:
		for j := 0; j < Panel; j += 16 {
			tile256(&c[j], ldc*4, &a[0], lda*4, &b[j], k)
		}
	default:
		plainTile(c, ldc, a, lda, b, k)
	}
}

func addReLU(dst, src []float32, l int) {
	n := 0
	if l != levelPlain {
		if n = len(dst) &^ 7; n > 0 {
			addReLU256(&dst[0], &src[0], n)
		}
	}
	plainAddReLU(dst[n:], src[n:])
}

func sumRows(dst []float32, table []int8, scale []float32, rows []uint16, l int) {
	if l == levelPlain || len(rows) == 0 {
		plainSumRows(dst, table, scale, rows)
		return
	}
	for _, r := range rows {
		_, _ = scale[r], table[(int(r)+1)*RowWidth-1]
	}
	dst = dst[:RowWidth]
	sumRows256(&dst[0], &table[0], &scale[0], &rows[0], len(rows))
}
