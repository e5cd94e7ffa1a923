package main

import "fmt"

// constants are what the kernels of all families read.
func (g *gen) constants() {
	var index, nibble, low []uint32
	for c := range 4 { // chunk c of a block has groups 2c and 2c+1 in its halves
		for l := range 16 {
			index = append(index, uint32(2*c+l/8))
		}
	}
	for i := range 16 {
		nibble = append(nibble, floatBits(float32(i)))
		low = append(low, 0x0f0f0f0f)
	}
	g.data("index", index...)
	g.data("eight", 0, 4, 8, 12, 2, 6, 10, 14, 0, 4, 8, 12, 2, 6, 10, 14)
	g.data("nibble", nibble...)
	g.data("low", low...)
	g.data("fifteen", 15, 15, 15, 15, 15, 15, 15, 15)
	g.data("ones", 0x00010001, 0x00010001, 0x00010001, 0x00010001, 0x00010001, 0x00010001, 0x00010001, 0x00010001)
	var tails []uint32 // for 0 to 7 groups: mask of scales, then of four chunks of codes
	for n := range 8 {
		tails = append(tails, 1<<n-1, 0)
		for c := range 4 {
			lo, hi := uint32(0), uint32(0)
			if n > 2*c {
				lo = 0xffffffff
			}
			if n > 2*c+1 {
				hi = 0xffffffff
			}
			tails = append(tails, lo, hi)
		}
	}
	g.data("tails", tails...)
}

// Registers of the matrix kernels:
//
//	R8 codes, SI scales, DI biases, R9 rows left, CX blocks left
//	DX the first vector, R12 the fifth, BX the distance of vectors, R11 thrice that
//	R10 product, AX distance of products, R13 tail
const matrixArgs = "w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr"

func (g *gen) matrixHead(name string) { g.matrixHeadFrame(name, 0) }

func (g *gen) matrixHeadFrame(name string, frame int) {
	g.p("\n// func %s(%s)", name, matrixArgs)
	g.p("\nTEXT ·%s(SB), NOSPLIT, $%d-80", name, frame)
	g.in("MOVQ w+0(FP), R8")
	g.in("MOVQ sc+8(FP), SI")
	g.in("MOVQ bi+16(FP), DI")
	g.in("MOVQ tail+32(FP), R13")
	g.in("MOVQ rows+40(FP), R9")
	g.in("MOVQ stride+56(FP), BX")
	g.in("LEAQ (BX)(BX*2), R11")
	g.in("MOVQ y+64(FP), R10")
	g.in("MOVQ ystride+72(FP), AX")
}

// masks loads the masks of the tail: K1 for scales, K2 to K5 for codes.
func (g *gen) masks() {
	g.in("LEAQ (R13)(R13*4), CX")
	g.in("LEAQ ·tails(SB), DX")
	for i := range 5 {
		g.in("KMOVQ %d(DX)(CX*8), K%d", 8*i, i+1)
	}
}

// rowHead points at the vectors again.
func (g *gen) rowHead(n int) {
	g.p("row:")
	g.in("MOVQ x+48(FP), DX")
	if n > 4 {
		g.in("LEAQ (DX)(BX*4), R12")
	}
	g.in("MOVQ blocks+24(FP), CX")
}

// at is the address off bytes into vector t.
func at(t, off int) string {
	base := []string{"DX", "R12"}[t/4]
	return fmt.Sprintf("%d(%s)%s", off, base, []string{"", "(BX*1)", "(BX*2)", "(R11*1)"}[t%4])
}

// advance moves to the next block of vectors.
func (g *gen) advance(n, bytes int) {
	g.in("ADDQ $%d, DX", bytes)
	if n > 4 {
		g.in("ADDQ $%d, R12", bytes)
	}
}

// store sums registers 0 to n-1, writes the products and ends the row. t is the
// first of two registers for scratch.
func (g *gen) store(n, t int) {
	g.in("MOVQ R10, DX")
	for i := 0; i < n; i += 4 {
		if n < 4 {
			for j := range n {
				g.sumZ(j, t+j)
				g.in("VMOVSS X%d, (DX)", j)
				g.in("ADDQ AX, DX")
			}
			break
		}
		g.sumFour(i, t)
		g.in("VMOVSS X%d, (DX)", i)
		for q := 1; q < 4; q++ {
			g.in("VEXTRACTF32X4 $%d, Z%d, X%d", q, i, t)
			g.in("VMOVSS X%d, (DX)(AX*%d)", t, []int{0, 1, 2, 1}[q])
			if q == 2 {
				g.in("LEAQ (DX)(AX*2), DX")
			}
		}
		g.in("LEAQ (DX)(AX*2), DX")
	}
	g.in("ADDQ $4, R10")
	g.in("DECQ R9")
	g.in("JNZ row")
	g.ret()
}

// scales loads 8 scales to Z24 and 8 biases to Z25, masked in the tail.
func (g *gen) scales(tail bool) {
	for i, r := range []string{"SI", "DI"} {
		if tail {
			g.in("VPMOVZXWD.Z (%s), K1, Y%d", r, 24+i)
		} else {
			g.in("VPMOVZXWD (%s), Y%d", r, 24+i)
		}
		g.in("VPSLLD $16, Y%d, Y%d", 24+i, 24+i)
	}
}

// codes loads chunk c of a block of codes, 64 bytes, to register r.
func (g *gen) codes(tail bool, c, r int) {
	if tail {
		g.in("VMOVDQU8.Z %d(R8), K%d, Z%d", 64*c, c+2, r)
	} else {
		g.in("VMOVDQU64 %d(R8), Z%d", 64*c, r)
	}
}

// blocks runs body over the whole blocks of a row and then over its tail.
func (g *gen) blocks(n, vectorBytes int, body func(tail bool)) {
	g.in("TESTQ CX, CX")
	g.in("JZ tail")
	g.p("block:")
	body(false)
	g.in("ADDQ $256, R8")
	g.in("ADDQ $16, SI")
	g.in("ADDQ $16, DI")
	g.advance(n, vectorBytes)
	g.in("DECQ CX")
	g.in("JNZ block")
	g.p("tail:")
	g.in("TESTQ R13, R13")
	g.in("JZ done")
	body(true)
	g.in("MOVQ R13, CX")
	g.in("SHLQ $5, CX")
	g.in("ADDQ CX, R8")
	g.in("LEAQ (SI)(R13*2), SI")
	g.in("LEAQ (DI)(R13*2), DI")
	g.p("done:")
}

// ahead is how far before their use codes are asked for, in a kernel whose
// time is reading: 2 KiB was the best of 0.5 to 4.
const ahead = 2048

// q4int512: 4-bit codes, n vectors of 8 bits. A block of 512 columns is 256
// bytes of codes, read once for all vectors, which come from the cache. The
// integer sum of each group is whole before it becomes a float: a lane of Y0
// to Y(n-1) for each of a block's eight groups, as in the panel kernels.
func (g *gen) q4int512(n int) {
	const lo, hi, tmp, order, ints = 20, 21, 22, 23, 4
	g.matrixHead(fmt.Sprintf("q4int512x%d", n))
	g.masks()
	g.in("VMOVDQU64 ·eight(SB), Z%d", order)
	g.in("VMOVDQU64 ·low(SB), Z31")
	g.rowHead(n)
	g.zero("Z", 0, n)
	g.blocks(n, 576, func(tail bool) {
		if n == 1 && !tail {
			g.in("PREFETCHT0 %d(SI)", ahead/16)
			g.in("PREFETCHT0 %d(DI)", ahead/16)
		}
		g.scales(tail)
		g.zero("Z", ints, ints+4*n)
		for c := range 4 {
			g.codes(tail, c, lo)
			if n == 1 && !tail {
				g.in("PREFETCHT0 %d(R8)", ahead+64*c)
			}
			g.in("VPSRLW $4, Z%d, Z%d", lo, hi)
			g.in("VPANDD Z31, Z%d, Z%d", lo, lo)
			g.in("VPANDD Z31, Z%d, Z%d", hi, hi)
			for t := range n {
				g.in("VPDPBUSD %s, Z%d, Z%d", at(t, 128*c), lo, ints+4*t+c)
				g.in("VPDPBUSD %s, Z%d, Z%d", at(t, 128*c+64), hi, ints+4*t+c)
			}
		}
		for t := range n {
			d := ints + 4*t
			g.in("VMOVUPS %s, Y26", at(t, 544))
			g.in("VFMADD231PS Y26, Y25, Y%d", t)
			g.in("VMULPS %s, Y24, Y26", at(t, 512))
			g.join("VSHUFI32X4", d, d+1, tmp)
			g.join("VSHUFI32X4", d+2, d+3, tmp)
			g.join("VSHUFPS", d, d+2, tmp) // a quarter has two lanes each of groups i and 4+i
			g.in("VPSHUFD $0xb1, Z%d, Z%d", d, tmp)
			g.in("VPADDD Z%d, Z%d, Z%d", tmp, d, d)
			g.in("VPERMD Z%d, Z%d, Z%d", d, order, d)
			g.in("VCVTDQ2PS Y%d, Y%d", d, d)
			g.in("VFMADD231PS Y%d, Y26, Y%d", d, t)
		}
	})
	g.in("MOVQ R10, DX")
	for t := range n {
		g.sumY(t, tmp)
		g.in("VMOVSS X%d, (DX)", t)
		g.in("ADDQ AX, DX")
	}
	g.in("ADDQ $4, R10")
	g.in("DECQ R9")
	g.in("JNZ row")
	g.ret()
}

// join adds neighbours, lanes or quarters, of Za and Zb to Za: half as many of
// each.
func (g *gen) join(shuffle string, a, b, tmp int) {
	g.in("%s $0x88, Z%d, Z%d, Z%d", shuffle, b, a, tmp)
	g.in("%s $0xdd, Z%d, Z%d, Z%d", shuffle, b, a, a)
	g.in("VPADDD Z%d, Z%d, Z%d", tmp, a, a)
}

// q4flt512: 4-bit codes made weights, times n float vectors. Even columns are
// summed in Z0.., odd ones in Z8...
func (g *gen) q4flt512(n int) {
	g.matrixHead(fmt.Sprintf("q4flt512x%d", n))
	g.masks()
	g.in("LEAQ ·index(SB), CX")
	for c := range 4 {
		g.in("VMOVDQU64 %d(CX), Z%d", 64*c, 16+c)
	}
	g.in("VMOVDQU64 ·nibble(SB), Z31")
	g.rowHead(n)
	g.zero("Z", 0, n)
	g.zero("Z", 8, 8+n)
	g.blocks(n, 2048, func(tail bool) {
		g.scales(tail)
		for c := range 4 {
			g.codes(tail, c, 28)
			g.in("VPERMPS Z24, Z%d, Z26", 16+c)
			g.in("VPERMPS Z25, Z%d, Z27", 16+c)
			for j := range 8 {
				r := 20 + j%4
				g.in("VPSRLD $%d, Z28, Z%d", 4*j, r)
				g.in("VPERMPS Z31, Z%d, Z%d", r, r)
				g.in("VFMADD213PS Z27, Z26, Z%d", r)
				for t := range n {
					g.in("VFMADD231PS %s, Z%d, Z%d", at(t, 512*c+64*j), r, j%2*8+t)
				}
			}
		}
	})
	for t := range n {
		g.in("VADDPS Z%d, Z%d, Z%d", 8+t, t, t)
	}
	g.store(n, 20)
}

// q8flt512: 8-bit codes made weights, times n float vectors, a group of 64 at a
// time: here blocks are groups and there is no tail.
func (g *gen) q8flt512(n int) {
	g.matrixHead(fmt.Sprintf("q8flt512x%d", n))
	g.rowHead(n)
	g.zero("Z", 0, n)
	g.zero("Z", 8, 8+n)
	g.p("block:")
	g.in("VPBROADCASTW (SI), Z26")
	g.in("VPSLLD $16, Z26, Z26")
	g.in("VPBROADCASTW (DI), Z27")
	g.in("VPSLLD $16, Z27, Z27")
	for j := range 4 {
		r := 20 + j
		g.in("VPMOVZXBD %d(R8), Z%d", 16*j, r)
		g.in("VCVTDQ2PS Z%d, Z%d", r, r)
		g.in("VFMADD213PS Z27, Z26, Z%d", r)
		for t := range n {
			g.in("VFMADD231PS %s, Z%d, Z%d", at(t, 64*j), r, j%2*8+t)
		}
	}
	g.in("ADDQ $64, R8")
	g.in("ADDQ $2, SI")
	g.in("ADDQ $2, DI")
	g.advance(n, 256)
	g.in("DECQ CX")
	g.in("JNZ block")
	for t := range n {
		g.in("VADDPS Z%d, Z%d, Z%d", 8+t, t, t)
	}
	g.store(n, 20)
}
