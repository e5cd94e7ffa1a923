package cpu

import "unsafe"

// panelVectors is from how many vectors on it pays to copy rows to a panel.
const panelVectors = 4

// fill copies the rows from r to the panel. Rows have an even number of groups.
func (p *Panel) fill(m *Matrix, r int) {
	rb, sb := m.rowBytes(), m.scaleBytes()
	w, sc, bi := m.W[r*rb:(r+panelRows)*rb], m.Scales[r*sb:(r+panelRows)*sb], m.Biases[r*sb:(r+panelRows)*sb]
	groups := m.Cols / Group
	p.blocks, p.tail = groups/8, groups%8
	for g := 0; g < groups; g += 2 {
		a, b := p.place(g), p.place(g+1)
		pack512(&p.codes[a*panelRows*Group/2], &p.codes[b*panelRows*Group/2], &p.scales[a*2*panelRows], &p.scales[b*2*panelRows],
			&w[g*Group/2], uintptr(rb), &sc[2*g], &bi[2*g], uintptr(sb))
	}
}

// place is where group g of a row stands in the panel.
func (p *Panel) place(g int) int {
	class := g % 8
	return class*p.blocks + min(class, p.tail) + g/8
}

// mul multiplies the panel with vectors t0 to t1, eight at a time or a little
// fewer, so that none are left over.
func (p *Panel) mul(y []float32, stride int, in *Input, t0, t1 int) {
	gap := unsafe.Sizeof(qblock{}) * uintptr(in.blocks)
	for t, parts := t0, (t1-t0+7)/8; parts > 0; parts-- {
		n := (t1 - t + parts - 1) / parts
		_ = y[(t-t0+n-1)*stride+panelRows-1]
		panelKernel(n)(&p.codes[0], &p.scales[0], p.blocks, p.tail, unsafe.Pointer(&in.q[t*in.blocks]), gap,
			&y[(t-t0)*stride], uintptr(4*stride), &p.sums[0])
		t += n
	}
}

func panelKernel(n int) func(codes *byte, scales *float32, blocks, tail int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr, sums *float32) {
	switch n {
	case 1:
		return q4panel512x1
	case 2:
		return q4panel512x2
	case 3:
		return q4panel512x3
	case 4:
		return q4panel512x4
	case 5:
		return q4panel512x5
	case 6:
		return q4panel512x6
	case 7:
		return q4panel512x7
	}
	return q4panel512x8
}
