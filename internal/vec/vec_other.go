//go:build !amd64

package vec

const level = 0

func tile(c []float32, ldc int, a []float32, lda int, b []float32, k, _ int) {
	plainTile(c, ldc, a, lda, b, k)
}

func addReLU(dst, src []float32, _ int) { plainAddReLU(dst, src) }

func sumRows(dst []float32, table []int8, scale []float32, rows []uint16, _ int) {
	plainSumRows(dst, table, scale, rows)
}
