package main

import "fmt"

// The kernels of this file multiply many vectors: 16 rows lie side by side in
// the lanes, so that a group's scale is applied once for all of its columns.
// A panel is those rows, copied: of each group eight registers of codes, of
// which lane i has the columns 8s to 8s+7 of row i. Groups are sorted by their
// place in a block: 0, 8, 16.., then 1, 9, 17.. . Each class has a sum of its
// own, as each has a lane in the kernels for single rows, and the sums are
// folded in the same order. The 16 scales and 16 biases of each group are made
// float32 and stay in the order of the groups.

// pack512 copies the codes of two neighbouring groups of 16 rows to a panel: a
// transposed square of 16 by 16 double words.
func (g *gen) pack512() {
	g.p("\n// func pack512(codes, next *byte, w *byte, stride uintptr)")
	g.fn("pack512", 32)
	g.in("MOVQ w+16(FP), R8")
	g.in("MOVQ stride+24(FP), BX")
	g.in("LEAQ (BX)(BX*2), R11")
	for i := range 16 {
		g.in("VMOVDQU64 (R8)%s, Z%d", []string{"", "(BX*1)", "(BX*2)", "(R11*1)"}[i%4], i)
		if i%4 == 3 {
			g.in("LEAQ (R8)(BX*4), R8")
		}
	}
	for i := 0; i < 16; i += 2 { // columns of two rows together
		g.in("VPUNPCKLDQ Z%d, Z%d, Z%d", i+1, i, 16+i)
		g.in("VPUNPCKHDQ Z%d, Z%d, Z%d", i+1, i, 17+i)
	}
	for k := range 4 { // of four rows: register 4k+c has column 4q+c in quarter q
		for c := range 4 {
			op := []string{"L", "H"}[c%2]
			g.in("VPUNPCK%sQDQ Z%d, Z%d, Z%d", op, 18+4*k+c/2, 16+4*k+c/2, 4*k+c)
		}
	}
	g.in("MOVQ codes+0(FP), DI")
	g.in("MOVQ next+8(FP), SI")
	for c := range 4 { // of all rows
		for i, two := range []string{"0x44", "0xee"} {
			g.in("VSHUFI32X4 $%s, Z%d, Z%d, Z%d", two, 4+c, c, 16+i)
			g.in("VSHUFI32X4 $%s, Z%d, Z%d, Z%d", two, 12+c, 8+c, 18+i)
		}
		for q := range 4 {
			g.in("VSHUFI32X4 $%s, Z%d, Z%d, Z%d", []string{"0x88", "0xdd"}[q%2], 18+q/2, 16+q/2, 20+q)
			g.in("VMOVDQU64 Z%d, %d(%s)", 20+q, 64*(q%2*4+c), []string{"DI", "SI"}[q/2])
		}
	}
	g.ret()
}

// packScales512 makes float32 of the scales and biases of a block, eight groups,
// of 16 rows.
func (g *gen) packScales512() {
	g.p("\n// func packScales512(dst *float32, sc, bi *byte, stride uintptr)")
	g.fn("packScales512", 32)
	g.in("MOVQ dst+0(FP), DI")
	g.in("MOVQ stride+24(FP), BX")
	g.in("LEAQ (BX)(BX*2), R11")
	for i, from := range []string{"sc+8(FP)", "bi+16(FP)"} {
		g.in("MOVQ %s, R8", from)
		for q := range 4 { // row 4q+r to quarter q of register r
			for r := range 4 {
				row := "(R8)" + []string{"", "(BX*1)", "(BX*2)", "(R11*1)"}[r]
				if q == 0 {
					g.in("VMOVDQU %s, X%d", row, r)
				} else {
					g.in("VINSERTI32X4 $%d, %s, Z%d, Z%d", q, row, r, r)
				}
			}
			g.in("LEAQ (R8)(BX*4), R8")
		}
		for r := 0; r < 4; r += 2 {
			g.in("VPUNPCKLDQ Z%d, Z%d, Z%d", r+1, r, 4+r)
			g.in("VPUNPCKHDQ Z%d, Z%d, Z%d", r+1, r, 5+r)
		}
		for c := range 4 { // two groups of all rows
			g.in("VPUNPCK%sQDQ Z%d, Z%d, Z0", []string{"L", "H"}[c%2], 6+c/2, 4+c/2)
			g.in("VPSLLD $16, Z0, Z1")
			g.in("VPSRLD $16, Z0, Z0")
			g.in("VPSLLD $16, Z0, Z0")
			g.in("VMOVUPS Z1, %d(DI)", 256*c+64*i)
			g.in("VMOVUPS Z0, %d(DI)", 256*c+128+64*i)
		}
	}
	g.ret()
}

// q4panel512 multiplies a panel with n vectors of 8 bits: 16 products for each,
// which lie side by side. sums is scratch for 8 times n registers. Meanwhile it
// asks for what lies from next on, 256 bytes a group: the rows of the panel to
// come.
//
//	R8 codes, SI scales, R14 next, CX groups left in the class, R9 class
//	DX, R12 first and fifth vector's codes, R13, R15 their scales
//	BX, R11 the distance of vectors and thrice that, R10 sums
func (g *gen) q4panel512(n int) {
	const lo, hi, scale, bias, each, sum, second = 24, 26, 28, 29, 30, 8, 16
	name := fmt.Sprintf("q4panel512x%d", n)
	g.p("\n// func %s(codes *byte, scales *float32, blocks, tail int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr, sums *float32, next *byte)", name)
	g.fn(name, 80)
	g.in("MOVQ next+72(FP), R14")
	g.in("MOVQ codes+0(FP), R8")
	g.in("MOVQ stride+40(FP), BX")
	g.in("LEAQ (BX)(BX*2), R11")
	g.in("MOVQ sums+64(FP), R10")
	g.in("VMOVDQU64 ·low(SB), Z31")
	g.in("XORQ R9, R9")
	g.p("class:")
	g.in("MOVQ R9, AX") // the class's codes in a block: 128 for two of them, 32 for the second
	g.in("SHRQ $1, AX")
	g.in("SHLQ $7, AX")
	g.in("MOVQ R9, CX")
	g.in("ANDQ $1, CX")
	g.in("SHLQ $5, CX")
	g.in("ADDQ CX, AX")
	g.in("MOVQ x+32(FP), R13")
	g.in("LEAQ (R13)(AX*1), DX")
	g.in("LEAQ (R13)(R9*4), R13")
	if n > 4 {
		g.in("LEAQ (DX)(BX*4), R12")
		g.in("LEAQ (R13)(BX*4), R15")
	}
	g.in("MOVQ R9, SI")
	g.in("SHLQ $7, SI")
	g.in("ADDQ scales+8(FP), SI")
	g.in("MOVQ blocks+16(FP), CX")
	g.in("CMPQ R9, tail+24(FP)")
	g.in("JGE whole")
	g.in("INCQ CX")
	g.p("whole:")
	g.zero("Z", sum, sum+n)
	g.in("TESTQ CX, CX")
	g.in("JZ end")
	g.p("group:")
	g.zero("Z", 0, n)
	to := func(t int) int { return t }
	if n <= 4 { // too few sums to keep the multipliers busy
		g.zero("Z", second, second+n)
		to = func(t int) int { return second + t }
	}
	for s := range 8 {
		l, h := lo+s%2, hi+s%2
		if s%2 == 0 {
			g.in("PREFETCHT1 %d(R14)", 32*s)
		}
		g.in("VMOVDQU64 %d(R8), Z%d", 64*s, l)
		g.in("VPSRLW $4, Z%d, Z%d", l, h)
		g.in("VPANDD Z31, Z%d, Z%d", l, l)
		g.in("VPANDD Z31, Z%d, Z%d", h, h)
		for t := range n {
			g.in("VPDPBUSD.BCST %s, Z%d, Z%d", at(t, 4*s), l, t)
		}
		for t := range n {
			g.in("VPDPBUSD.BCST %s, Z%d, Z%d", at(t, 64+4*s), h, to(t))
		}
	}
	g.in("VMOVUPS (SI), Z%d", scale)
	g.in("VMOVUPS 64(SI), Z%d", bias)
	for t := range n {
		if n <= 4 {
			g.in("VPADDD Z%d, Z%d, Z%d", second+t, t, t)
		}
		g.in("VFMADD231PS.BCST %s, Z%d, Z%d", scaleAt(t, 544), bias, sum+t)
		g.in("VMULPS.BCST %s, Z%d, Z%d", scaleAt(t, 512), scale, each)
		g.in("VCVTDQ2PS Z%d, Z%d", t, t)
		g.in("VFMADD231PS Z%d, Z%d, Z%d", t, each, sum+t)
	}
	g.in("ADDQ $512, R8")
	g.in("ADDQ $1024, SI")
	g.in("ADDQ $256, R14")
	g.advance(n, 576)
	g.in("ADDQ $576, R13")
	if n > 4 {
		g.in("ADDQ $576, R15")
	}
	g.in("DECQ CX")
	g.in("JNZ group")
	g.p("end:")
	for t := range n {
		g.in("VMOVUPS Z%d, %d(R10)", sum+t, 64*t)
	}
	g.in("ADDQ $%d, R10", 64*n)
	g.in("INCQ R9")
	g.in("CMPQ R9, $8")
	g.in("JNE class")
	g.in("MOVQ sums+64(FP), R10")
	g.in("MOVQ y+48(FP), DI")
	g.in("MOVQ ystride+56(FP), AX")
	for t := range n { // as sumY: halves, then halves of them
		slot := func(class int) int { return 64 * (class*n + t) }
		for i := range 4 {
			g.in("VMOVUPS %d(R10), Z%d", slot(i), i)
			g.in("VADDPS %d(R10), Z%d, Z%d", slot(i+4), i, i)
		}
		g.in("VADDPS Z2, Z0, Z0")
		g.in("VADDPS Z3, Z1, Z1")
		g.in("VADDPS Z1, Z0, Z0")
		g.in("VMOVUPS Z0, (DI)")
		g.in("ADDQ AX, DI")
	}
	g.ret()
}

// scaleAt is at for the scales of vector t.
func scaleAt(t, off int) string {
	return fmt.Sprintf("%d(%s)%s", off, []string{"R13", "R15"}[t/4], []string{"", "(BX*1)", "(BX*2)", "(R11*1)"}[t%4])
}
