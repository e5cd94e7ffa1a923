package main

import "fmt"

// The kernels of matrix.go for AVX2, with the same sums to the last bit: the
// halves of a wide register are two of these. They take whole blocks of 512
// columns only.

// weightHead broadcasts the scale of group g to Y10 and, if asked, its bias to
// Y11.
func (g *gen) weightHead(group int, bias bool) {
	g.in("VPBROADCASTW %d(SI), Y10", 2*group)
	g.in("VPSLLD $16, Y10, Y10")
	if bias {
		g.in("VPBROADCASTW %d(DI), Y11", 2*group)
		g.in("VPSLLD $16, Y11, Y11")
	}
}

// blocks256 loops over the blocks of a row.
func (g *gen) blocks256(n, codeBytes, vectorBytes int, body func()) {
	g.p("block:")
	body()
	g.in("ADDQ $%d, R8", codeBytes)
	g.in("ADDQ $16, SI")
	g.in("ADDQ $16, DI")
	g.advance(n, vectorBytes)
	g.in("DECQ CX")
	g.in("JNZ block")
}

// store256 folds the halves, then each vector's lanes, and ends the row. The
// halves of vector t are registers each*t and each*t+1.
func (g *gen) store256(n, each int) {
	g.in("MOVQ R10, DX")
	for t := range n {
		g.in("VADDPS Y%d, Y%d, Y%d", each*t+1, each*t, each*t)
		g.sumY(each*t, 12)
		g.in("VMOVSS X%d, (DX)", each*t)
		g.in("ADDQ AX, DX")
	}
	g.in("ADDQ $4, R10")
	g.in("DECQ R9")
	g.in("JNZ row")
	g.ret()
}

// q4int256: products of codes below 16 and of 8-bit activations fit 16 bits in
// pairs of pairs: 4*15*127. For several vectors a block's codes are unpacked to
// the stack first.
func (g *gen) q4int256(n int) {
	name, frame := fmt.Sprintf("q4int256x%d", n), 0
	if n > 1 {
		frame = 512
	}
	g.matrixHeadFrame(name, frame)
	g.in("VMOVDQU ·low(SB), Y15")
	g.rowHead(n)
	g.zero("Y", 8, 8+n)
	g.blocks256(n, 256, 576, func() {
		for _, r := range []struct {
			from string
			to   int
		}{{"SI", 13}, {"DI", 14}} {
			g.in("VPMOVZXWD (%s), Y%d", r.from, r.to)
			g.in("VPSLLD $16, Y%d, Y%d", r.to, r.to)
		}
		for group := 0; n > 1 && group < 8; group++ {
			g.unpack256(group)
			g.in("VMOVDQU Y6, %d(SP)", 64*group)
			g.in("VMOVDQU Y7, %d(SP)", 64*group+32)
		}
		for t := range n {
			for group := range 8 {
				if n == 1 {
					g.unpack256(group)
					if group%2 == 0 {
						g.in("PREFETCHT0 %d(R8)", ahead+32*group)
					}
				} else {
					g.in("VMOVDQU %d(SP), Y6", 64*group)
					g.in("VMOVDQU %d(SP), Y7", 64*group+32)
				}
				g.group256(at(t, group/2*128+group%2*32), at(t, group/2*128+group%2*32+64), group)
			}
			g.in("VPERM2I128 $0x20, Y2, Y1, Y3")
			g.in("VPERM2I128 $0x31, Y2, Y1, Y1")
			g.in("VPADDD Y3, Y1, Y1") // lane i is group i
			g.in("VCVTDQ2PS Y1, Y1")
			g.in("VMOVUPS %s, Y2", at(t, 544))
			g.in("VFMADD231PS Y2, Y14, Y%d", 8+t)
			g.in("VMULPS %s, Y13, Y2", at(t, 512))
			g.in("VFMADD231PS Y1, Y2, Y%d", 8+t)
		}
	})
	g.in("MOVQ R10, DX")
	for t := range n {
		g.sumY(8+t, 1)
		g.in("VMOVSS X%d, (DX)", 8+t)
		g.in("ADDQ AX, DX")
	}
	g.in("ADDQ $4, R10")
	g.in("DECQ R9")
	g.in("JNZ row")
	g.ret()
}

// unpack256 makes the codes of a group bytes, even columns in Y6 and odd ones in
// Y7.
func (g *gen) unpack256(group int) {
	g.in("VMOVDQU %d(R8), Y6", 32*group)
	g.in("VPSRLW $4, Y6, Y7")
	g.in("VPAND Y15, Y6, Y6")
	g.in("VPAND Y15, Y7, Y7")
}

// group256 multiplies Y6 and Y7 with activations. The sums of eight groups are
// added pairwise as they come: those of groups 0 to 3 to Y1, the others to Y2,
// in either half.
func (g *gen) group256(even, odd string, group int) {
	to := []int{1, 3, 4, 5, 2, 3, 4, 5}[group]
	g.in("VPMADDUBSW %s, Y6, Y6", even)
	g.in("VPMADDUBSW %s, Y7, Y7", odd)
	g.in("VPADDW Y7, Y6, Y6")
	g.in("VPMADDWD ·ones(SB), Y6, Y%d", to)
	switch group % 4 {
	case 1:
		g.in("VPHADDD Y3, Y%[1]d, Y%[1]d", 1+group/4)
	case 3:
		g.in("VPHADDD Y5, Y4, Y4")
		g.in("VPHADDD Y4, Y%[1]d, Y%[1]d", 1+group/4)
	}
}

// q4flt256 keeps four sums a vector: even and odd columns of either half.
func (g *gen) q4flt256(n int) {
	g.matrixHead(fmt.Sprintf("q4flt256x%d", n))
	g.in("VMOVDQU ·fifteen(SB), Y15")
	g.rowHead(n)
	g.zero("Y", 0, 4*n)
	g.blocks256(n, 256, 2048, func() {
		for group := range 8 {
			g.weightHead(group, true)
			g.in("VMOVDQU %d(R8), Y8", 32*group)
			for j := range 8 {
				g.in("VPSRLD $%d, Y8, Y9", 4*j)
				g.in("VPAND Y15, Y9, Y9")
				g.in("VCVTDQ2PS Y9, Y9")
				g.in("VFMADD213PS Y11, Y10, Y9")
				for t := range n {
					g.in("VFMADD231PS %s, Y9, Y%d", at(t, 512*(group/2)+64*j+32*(group%2)), 4*t+2*(j%2)+group%2)
				}
			}
		}
	})
	g.evenOdd(n)
	g.store256(n, 4)
}

// q8flt256 is the same for 8 bits; blocks are groups of 64 here.
func (g *gen) q8flt256(n int) {
	g.matrixHead(fmt.Sprintf("q8flt256x%d", n))
	g.rowHead(n)
	g.zero("Y", 0, 4*n)
	g.p("block:")
	g.weightHead(0, true)
	for i := range 8 {
		g.in("VPMOVZXBD %d(R8), Y9", 8*i)
		g.in("VCVTDQ2PS Y9, Y9")
		g.in("VFMADD213PS Y11, Y10, Y9")
		for t := range n {
			g.in("VFMADD231PS %s, Y9, Y%d", at(t, 32*i), 4*t+2*(i/2%2)+i%2)
		}
	}
	g.in("ADDQ $64, R8")
	g.in("ADDQ $2, SI")
	g.in("ADDQ $2, DI")
	g.advance(n, 256)
	g.in("DECQ CX")
	g.in("JNZ block")
	g.evenOdd(n)
	g.store256(n, 4)
}

// evenOdd adds the sums of odd columns to those of even ones.
func (g *gen) evenOdd(n int) {
	for t := range n {
		for half := range 2 {
			g.in("VADDPS Y%d, Y%d, Y%d", 4*t+2+half, 4*t+half, 4*t+half)
		}
	}
}
