// Package vec multiplies matrices on the processor.
//
// Begin at [Pack] and [Matrix.MulAdd]. On amd64 the work is done in assembly,
// with AVX-512 or AVX2 as the processor has them; elsewhere by plain Go, which
// is also the twin that the assembly is tested against.
//
// It promises the same result for a row whatever other rows are computed with
// it, and the same bits from both kinds of assembly: sums run over the inputs in
// order, one fused step each. Plain Go rounds twice in each step, so its results
// differ in the last bits. Nothing here allocates except Pack.
package vec

// Rows is the number of rows that are computed together: callers give matrices
// whose number of rows is a multiple of it, with whatever in those too many.
const Rows = 6

// Panel is the number of columns that are stored together.
const Panel = 64

// Matrix is a matrix of K inputs and N outputs, stored for multiplication.
type Matrix struct {
	K, N   int
	Stride int // columns with padding: a multiple of Panel
	data   []float32
}

// Pack stores a matrix given in rows of n columns. Columns up to a multiple of
// Panel are added, all zero.
func Pack(k, n int, rows []float32) *Matrix {
	panels := (n + Panel - 1) / Panel
	m := &Matrix{K: k, N: n, Stride: panels * Panel, data: make([]float32, panels*k*Panel)}
	for i := range k {
		for j := range n {
			m.data[(j/Panel*k+i)*Panel+j%Panel] = rows[i*n+j]
		}
	}
	return m
}

// MulAdd adds a·m to c for rows rows, a multiple of [Rows]. Row r of a begins at
// a[r*lda] and has K values, row r of c begins at c[r*ldc] and has Stride
// values. It panics if a slice is too short.
func (m *Matrix) MulAdd(c []float32, ldc int, a []float32, lda, rows int) {
	m.run(c, ldc, a, lda, rows, level)
}

func (m *Matrix) run(c []float32, ldc int, a []float32, lda, rows int, l int) {
	if rows == 0 {
		return
	}
	if rows%Rows != 0 || ldc < m.Stride || lda < m.K || m.K == 0 {
		panic("vec: matrix shapes do not fit")
	}
	_, _ = c[(rows-1)*ldc+m.Stride-1], a[(rows-1)*lda+m.K-1]
	for p := 0; p*Panel < m.Stride; p++ {
		b := m.data[p*m.K*Panel : (p+1)*m.K*Panel]
		for r := 0; r < rows; r += Rows {
			tile(c[r*ldc+p*Panel:], ldc, a[r*lda:], lda, b, m.K, l)
		}
	}
}

// plainTile is the twin of the assembly: Rows rows by Panel columns.
func plainTile(c []float32, ldc int, a []float32, lda int, b []float32, k int) {
	for r := range Rows {
		out := c[r*ldc : r*ldc+Panel]
		for i, x := range a[r*lda : r*lda+k] {
			row := b[i*Panel : (i+1)*Panel]
			for j := range row {
				out[j] += x * row[j]
			}
		}
	}
}

// AddReLU adds the positive values of src to dst, which is as long.
func AddReLU(dst, src []float32) { addReLU(dst, src[:len(dst)], level) }

func plainAddReLU(dst, src []float32) {
	for i, v := range src {
		if v > 0 {
			dst[i] += v
		}
	}
}

// RowWidth is the width of the table that [SumRows] reads.
const RowWidth = 96

// SumRows sets dst, RowWidth values, to the sum of rows of a table of small
// numbers, each times the scale of its row.
func SumRows(dst []float32, table []int8, scale []float32, rows []uint16) {
	sumRows(dst, table, scale, rows, level)
}

func plainSumRows(dst []float32, table []int8, scale []float32, rows []uint16) {
	dst = dst[:RowWidth]
	clear(dst)
	for _, r := range rows {
		s := scale[r]
		for j, v := range table[int(r)*RowWidth : (int(r)+1)*RowWidth] {
			dst[j] += s * float32(v)
		}
	}
}
