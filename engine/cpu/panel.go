package cpu

// panelRows are the rows of a panel: the lanes of a wide register.
const panelRows = 16

// Panel is the scratch of [Kernels.Mul] for one goroutine: some rows of a matrix
// in another order, while many vectors meet them.
type Panel struct {
	codes  []byte
	scales []float32 // of each group [scale, bias][panelRows]
	sums   []float32 // [8][8][panelRows]
	blocks int       // whole blocks of a row, and groups after them
	tail   int
}

// NewPanel makes scratch for matrices of up to cols columns.
func NewPanel(cols int) *Panel {
	groups := (cols + Group - 1) / Group
	return &Panel{
		codes: make([]byte, panelRows*groups*Group/2), scales: make([]float32, 2*panelRows*groups),
		sums: make([]float32, 64*panelRows),
	}
}
