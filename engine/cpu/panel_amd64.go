package cpu

import "unsafe"

// panelVectors is from how many vectors on it pays to copy rows to a panel.
const panelVectors = 4

// fill copies the rows from r to the panel, of rows up to hi that are to be
// multiplied. Rows have an even number of groups.
func (p *Panel) fill(m *Matrix, r, hi int) {
	rb, sb := m.rowBytes(), m.scaleBytes()
	w, sc, bi := m.W[r*rb:(r+panelRows)*rb], m.Scales[r*sb:(r+panelRows)*sb], m.Biases[r*sb:(r+panelRows)*sb]
	if p.next = p.then; r+2*panelRows <= hi {
		p.next = m.W[(r+panelRows)*rb : (r+2*panelRows)*rb]
	}
	groups := m.Cols / Group
	p.blocks, p.tail = groups/8, groups%8
	for g := 0; g < groups; g += 2 {
		pack512(&p.codes[p.place(g)*panelCodes], &p.codes[p.place(g+1)*panelCodes], &w[g*Group/2], uintptr(rb))
	}
	for b := range p.blocks {
		packScales512(&p.scales[b*8*panelScales], &sc[b*16], &bi[b*16], uintptr(sb))
	}
	for g := p.blocks * 8; g < groups; g++ {
		for i := range panelRows {
			p.scales[g*panelScales+i], p.scales[g*panelScales+panelRows+i] = bfloat(sc[i*sb+2*g:]), bfloat(bi[i*sb+2*g:])
		}
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
	each := (8*p.blocks + p.tail) * 256 // of next a call asks for
	next := p.next
	for t, parts := t0, (t1-t0+7)/8; parts > 0; parts-- {
		n := (t1 - t + parts - 1) / parts
		_ = y[(t-t0+n-1)*stride+panelRows-1]
		at := &p.codes[0] // nothing left to ask for
		if len(next) > 0 {
			at = &next[0]
			next = next[min(each, len(next)):]
		}
		panelKernel(n)(&p.codes[0], &p.scales[0], p.blocks, p.tail, unsafe.Pointer(&in.q[t*in.blocks]), gap,
			&y[(t-t0)*stride], uintptr(4*stride), &p.sums[0], at)
		t += n
	}
}

func panelKernel(n int) func(codes *byte, scales *float32, blocks, tail int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr, sums *float32, next *byte) {
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
