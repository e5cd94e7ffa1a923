package main

import (
	"math"
)

func floatBits(f float32) uint32 { return math.Float32bits(f) }

// expTerms are the Taylor coefficients of e^r from the seventh down: |r| is at
// most ln(2)/2, where the rest is under 6e-9 of the value.
func expTerms() []float32 {
	var c []float32
	for n := 7; n >= 0; n-- {
		f := 1.0
		for i := 2; i <= n; i++ {
			f *= float64(i)
		}
		c = append(c, float32(1/f))
	}
	return c
}

// expConsts loads what exp needs to Z16 to Z27.
func (g *gen) expConsts() {
	ln2 := float32(0.693359375) // few bits: times a small integer it is exact
	consts := []float32{-104, 89, math.Log2E, ln2, float32(math.Ln2 - float64(ln2))}
	for i, c := range append(consts, expTerms()...) {
		g.in("MOVL $0x%08x, CX", floatBits(c))
		g.in("VPBROADCASTD CX, Z%d", 16+i)
	}
}

// exp makes Zx e^x by way of Zn and Zr: x = n*ln(2) + r. Beyond the bounds the
// result is zero or infinite; a NaN stays.
func (g *gen) exp(x, n, r int) {
	g.in("VMAXPS Z%d, Z16, Z%d", x, x)
	g.in("VMINPS Z%d, Z17, Z%d", x, x)
	g.in("VMULPS Z18, Z%d, Z%d", x, n)
	g.in("VRNDSCALEPS $8, Z%d, Z%d", n, n)
	g.in("VFNMADD231PS Z19, Z%d, Z%d", n, x)
	g.in("VFNMADD231PS Z20, Z%d, Z%d", n, x)
	g.in("VMOVAPS Z21, Z%d", r)
	for i := 22; i <= 28; i++ {
		g.in("VFMADD213PS Z%d, Z%d, Z%d", i, x, r)
	}
	g.in("VSCALEFPS Z%d, Z%d, Z%d", n, r, x)
}

// silu makes Zx y*sigmoid(x), by way of three more registers. Z29 is -0.
func (g *gen) silu(x, y, e, n, r int) {
	g.in("VPXORD Z29, Z%d, Z%d", x, e)
	g.exp(e, n, r)
	g.in("VADDPS Z28, Z%d, Z%d", e, e) // the last term of the series is 1
	g.in("VDIVPS Z%d, Z%d, Z%d", e, y, x)
}

func (g *gen) minusZero() {
	g.in("MOVL $0x80000000, CX")
	g.in("VPBROADCASTD CX, Z29")
}

// vectors512 are the kernels that need e^x.
func (g *gen) vectors512() {
	g.p("\n// func siluMul512(dst, gate, x *float32, n int)")
	g.fn("siluMul512", 32)
	g.expConsts()
	g.minusZero()
	g.in("MOVQ dst+0(FP), DI")
	g.in("MOVQ gate+8(FP), SI")
	g.in("MOVQ x+16(FP), DX")
	g.in("MOVQ n+24(FP), CX")
	g.p("loop:")
	g.in("VMOVUPS (SI), Z0")
	g.silu(0, 0, 1, 2, 3)
	g.in("VMULPS (DX), Z0, Z0")
	g.in("VMOVUPS Z0, (DI)")
	g.each("DI", "SI", "DX")
	g.ret()

	g.p("\n// func sigmoidMul512(x, gate *float32, n int)")
	g.fn("sigmoidMul512", 24)
	g.expConsts()
	g.minusZero()
	g.in("MOVQ x+0(FP), DI")
	g.in("MOVQ gate+8(FP), SI")
	g.in("MOVQ n+16(FP), CX")
	g.p("loop:")
	g.in("VMOVUPS (SI), Z0")
	g.in("VMOVUPS (DI), Z4")
	g.silu(0, 4, 1, 2, 3)
	g.in("VMOVUPS Z0, (DI)")
	g.each("DI", "SI")
	g.ret()

	g.p("\n// func exp512(x *float32, n int, top float32) float32")
	g.fn("exp512", 28)
	g.expConsts()
	g.in("MOVQ x+0(FP), DI")
	g.in("MOVQ n+8(FP), CX")
	g.in("VBROADCASTSS top+16(FP), Z30")
	g.zero("Z", 31, 32)
	g.p("loop:")
	g.in("VMOVUPS (DI), Z0")
	g.in("VSUBPS Z30, Z0, Z0")
	g.exp(0, 1, 2)
	g.in("VMOVUPS Z0, (DI)")
	g.in("VADDPS Z0, Z31, Z31")
	g.each("DI")
	g.in("VMOVAPS Z31, Z0")
	g.sumZ(0, 1)
	g.in("VMOVSS X0, ret+24(FP)")
	g.ret()
	g.conv512()
	g.p("\n// func pause()")
	g.fn("pause", 0)
	g.in("PAUSE")
	g.in("RET")
}

// each steps the pointers by a wide register and loops while CX has elements
// left.
func (g *gen) each(ptrs ...string) { g.step(width{"Z", 16, "512"}, ptrs...) }

// conv512 reads four rows and four weights through their slices.
func (g *gen) conv512() {
	g.p("\n// func conv512(dst *float32, n int, r, w *[4][]float32)")
	g.fn("conv512", 32)
	g.expConsts()
	g.minusZero()
	g.in("MOVQ dst+0(FP), DI")
	g.in("MOVQ r+16(FP), R8")
	g.in("MOVQ w+24(FP), R9")
	rows, taps := []string{"AX", "BX", "DX", "SI"}, []string{"R10", "R11", "R12", "R13"}
	for j := range 4 {
		g.in("MOVQ %d(R8), %s", 24*j, rows[j])
		g.in("MOVQ %d(R9), %s", 24*j, taps[j])
	}
	g.in("MOVQ n+8(FP), CX")
	g.p("loop:")
	g.zero("Z", 0, 1)
	for j := range 4 {
		g.in("VMOVUPS (%s), Z1", rows[j])
		g.in("VFMADD231PS (%s), Z1, Z0", taps[j])
	}
	g.silu(0, 0, 1, 2, 3)
	g.in("VMOVUPS Z0, (DI)")
	g.each(append(append(rows, taps...), "DI")...)
	g.ret()
}

// quantize512 rounds groups of 64 floats to 8 bits in the order that q4int
// reads, eight of them to a block of 576 bytes.
func (g *gen) quantize512() {
	var evens []uint32 // within 16 bytes: even ones first
	for range 4 {
		evens = append(evens, 0x06040200, 0x0e0c0a08, 0x07050301, 0x0f0d0b09)
	}
	g.p("")
	g.data("evens", evens...)
	g.data("halves", 0, 0, 2, 0, 4, 0, 6, 0, 1, 0, 3, 0, 5, 0, 7, 0)
	g.p("\n// func quantize512(x *float32, q *qblock, groups int)")
	g.fn("quantize512", 24)
	g.in("MOVQ x+0(FP), SI")
	g.in("MOVQ q+8(FP), DI")
	g.in("MOVQ groups+16(FP), CX")
	g.in("VMOVDQU64 ·evens(SB), Z20")
	g.in("VMOVDQU64 ·halves(SB), Z21")
	g.in("MOVL $0x7fffffff, AX")
	g.in("VPBROADCASTD AX, Z22")
	g.in("MOVL $0x%08x, AX", floatBits(127))
	g.in("VMOVD AX, X23")
	g.in("XORQ DX, DX") // group within the block
	g.p("loop:")
	for i := range 4 {
		g.in("VMOVUPS %d(SI), Z%d", 64*i, i)
		g.in("VPANDD Z22, Z%d, Z%d", i, 4+i)
	}
	g.in("VMAXPS Z5, Z4, Z4")
	g.in("VMAXPS Z7, Z6, Z6")
	g.in("VMAXPS Z6, Z4, Z4")
	g.in("VEXTRACTF64X4 $1, Z4, Y5")
	g.in("VMAXPS Y5, Y4, Y4")
	g.in("VEXTRACTF128 $1, Y4, X5")
	g.in("VMAXPS X5, X4, X4")
	g.in("VPERMILPS $0x4e, X4, X5")
	g.in("VMAXPS X5, X4, X4")
	g.in("VPERMILPS $0xb1, X4, X5")
	g.in("VMAXPS X5, X4, X4")
	g.in("VDIVSS X23, X4, X8") // scale
	g.in("VDIVSS X4, X23, X9") // its inverse, zero where all is zero
	g.in("VPXOR X5, X5, X5")
	g.in("VUCOMISS X5, X4")
	g.in("JNE some")
	g.in("VPXOR X9, X9, X9")
	g.p("some:")
	g.in("VBROADCASTSS X9, Z9")
	for i := range 4 {
		g.in("VMULPS Z9, Z%d, Z%d", i, i)
		g.in("VCVTPS2DQ Z%d, Z%d", i, i)
		g.in("VPMOVDB Z%d, X%d", i, 10+i)
	}
	g.in("VPADDD Z1, Z0, Z0")
	g.in("VPADDD Z3, Z2, Z2")
	g.in("VPADDD Z2, Z0, Z0")
	for i := 1; i < 4; i++ {
		g.in("VINSERTI32X4 $%d, X%d, Z10, Z10", i, 10+i)
	}
	g.in("VPSHUFB Z20, Z10, Z10")
	g.in("VPERMQ Z10, Z21, Z10")
	g.in("VEXTRACTI64X4 $1, Z0, Y1")
	g.in("VPADDD Y1, Y0, Y0")
	g.in("VEXTRACTI128 $1, Y0, X1")
	g.in("VPADDD X1, X0, X0")
	g.in("VPSHUFD $0x4e, X0, X1")
	g.in("VPADDD X1, X0, X0")
	g.in("VPSHUFD $0xb1, X0, X1")
	g.in("VPADDD X1, X0, X0")
	g.in("VCVTDQ2PS X0, X0")
	g.in("VMULSS X8, X0, X0")
	// Chunk DX/2 of 128 bytes, half DX%2 of its two halves.
	g.in("MOVQ DX, BX")
	g.in("SHRQ $1, BX")
	g.in("SHLQ $7, BX")
	g.in("MOVQ DX, AX")
	g.in("ANDQ $1, AX")
	g.in("SHLQ $5, AX")
	g.in("ADDQ AX, BX")
	g.in("VMOVDQU Y10, (DI)(BX*1)")
	g.in("VEXTRACTI64X4 $1, Z10, Y10")
	g.in("VMOVDQU Y10, 64(DI)(BX*1)")
	g.in("VMOVSS X8, 512(DI)(DX*4)")
	g.in("VMOVSS X0, 544(DI)(DX*4)")
	g.in("ADDQ $256, SI")
	g.in("INCQ DX")
	g.in("CMPQ DX, $8")
	g.in("JNE next")
	g.in("XORQ DX, DX")
	g.in("ADDQ $576, DI")
	g.p("next:")
	g.in("DECQ CX")
	g.in("JNZ loop")
	g.ret()
}
