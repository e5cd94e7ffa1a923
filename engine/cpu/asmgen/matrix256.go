package main

import "fmt"

// The kernels of matrix.go for AVX2. The halves of a wide register are two of
// these, so all sums are the same to the last bit. They take whole blocks of
// 512 columns only.

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
// pairs of pairs: 4*15*127.
func (g *gen) q4int256(n int) {
	g.matrixHead(fmt.Sprintf("q4int256x%d", n))
	g.in("VMOVDQU ·low(SB), Y15")
	g.rowHead(n)
	g.zero("Y", 0, 2*n)
	g.blocks256(n, 256, 576, func() {
		g.in("VPMOVZXWD (DI), Y14")
		g.in("VPSLLD $16, Y14, Y14")
		for t := range n {
			g.in("VMOVUPS %s, Y13", at(t, 544))
			g.in("VFMADD231PS Y13, Y14, Y%d", 2*t)
		}
		for group := range 8 {
			g.weightHead(group, false)
			g.in("VMOVDQU %d(R8), Y8", 32*group)
			if n == 1 && group%2 == 0 {
				g.in("PREFETCHT0 %d(R8)", ahead+32*group)
			}
			g.in("VPSRLW $4, Y8, Y9")
			g.in("VPAND Y15, Y8, Y8")
			g.in("VPAND Y15, Y9, Y9")
			for t := range n {
				x := group/2*128 + group%2*32
				g.in("VPMADDUBSW %s, Y8, Y11", at(t, x))
				g.in("VPMADDUBSW %s, Y9, Y12", at(t, x+64))
				g.in("VPADDW Y12, Y11, Y11")
				g.in("VPMADDWD ·ones(SB), Y11, Y11")
				g.in("VCVTDQ2PS Y11, Y11")
				g.in("VBROADCASTSS %s, Y12", at(t, 512+4*group))
				g.in("VMULPS Y12, Y10, Y12")
				g.in("VFMADD231PS Y11, Y12, Y%d", 2*t+group%2)
			}
		}
	})
	g.store256(n, 2)
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
