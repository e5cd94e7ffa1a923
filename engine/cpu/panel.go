package cpu

// panelRows are the rows of a panel: the lanes of a wide register.
const panelRows = 16

// panelCodes and panelScales are what a group takes in a panel.
const (
	panelCodes  = panelRows * Group / 2
	panelScales = 2 * panelRows
)

// Panel is the scratch of [Kernels.Mul] for one goroutine: some rows of a matrix
// in another order, while many vectors meet them.
type Panel struct {
	codes  []byte
	scales []float32 // of each group [scale, bias][panelRows]
	sums   []float32 // [8][8][panelRows]
	blocks int       // whole blocks of a row, and groups after them
	tail   int
	next   []byte // codes of the rows to come after these
	then   []byte // and after the last rows of a product
}

// NewPanel makes scratch for matrices of up to cols columns.
func NewPanel(cols int) *Panel {
	groups := (cols + Group - 1) / Group
	return &Panel{
		codes: make([]byte, groups*panelCodes), scales: make([]float32, groups*panelScales),
		sums: make([]float32, 64*panelRows),
	}
}

// Expect says that rows of m from r on are what will be multiplied after the
// next product, so that they are asked for while its last rows are. It changes
// speed, never a result.
func (p *Panel) Expect(m *Matrix, r int) {
	rb := m.rowBytes()
	p.then = m.W[r*rb : min(r+panelRows, m.Rows)*rb]
}
