package main

import "fmt"

// The kernels of this file are the same for both register widths.

// step moves the pointers by one register and loops while CX has elements left.
func (g *gen) step(w width, ptrs ...string) {
	for _, r := range ptrs {
		g.in("ADDQ $%d, %s", 4*w.floats, r)
	}
	g.in("SUBQ $%d, CX", w.floats)
	g.in("JNZ loop")
}

func (g *gen) sum(w width, r, t int) {
	if w.reg == "Z" {
		g.sumZ(r, t)
	} else {
		g.sumY(r, t)
	}
}

func (g *gen) addScaled(w width) {
	g.p("\n// func addScaled%s(y, x *float32, n int, w float32)", w.name)
	g.fn("addScaled"+w.name, 28)
	g.in("MOVQ y+0(FP), DI")
	g.in("MOVQ x+8(FP), SI")
	g.in("MOVQ n+16(FP), CX")
	g.in("VBROADCASTSS w+24(FP), %s0", w.reg)
	g.p("loop:")
	g.in("VMOVUPS (DI), %s1", w.reg)
	g.in("VFMADD231PS (SI), %[1]s0, %[1]s1", w.reg)
	g.in("VMOVUPS %s1, (DI)", w.reg)
	g.step(w, "DI", "SI")
	g.ret()
}

// dot keeps four sums, so that additions need not wait for one another.
func (g *gen) dot(w width) {
	bytes, four := 4*w.floats, 4*w.floats
	g.p("\n// func dot%s(a, b *float32, n int) float32", w.name)
	g.fn("dot"+w.name, 28)
	g.in("MOVQ a+0(FP), SI")
	g.in("MOVQ b+8(FP), DI")
	g.in("MOVQ n+16(FP), CX")
	g.zero(w.reg, 0, 4)
	g.in("CMPQ CX, $%d", four)
	g.in("JB rest")
	g.p("four:")
	for i := range 4 {
		g.in("VMOVUPS %d(SI), %s%d", bytes*i, w.reg, 4+i)
		g.in("VFMADD231PS %d(DI), %[2]s%[3]d, %[2]s%[4]d", bytes*i, w.reg, 4+i, i)
	}
	g.in("ADDQ $%d, SI", 4*bytes)
	g.in("ADDQ $%d, DI", 4*bytes)
	g.in("SUBQ $%d, CX", four)
	g.in("CMPQ CX, $%d", four)
	g.in("JAE four")
	g.p("rest:")
	g.in("TESTQ CX, CX")
	g.in("JZ done")
	g.p("loop:")
	g.in("VMOVUPS (SI), %s4", w.reg)
	g.in("VFMADD231PS (DI), %[1]s4, %[1]s0", w.reg)
	g.step(w, "SI", "DI")
	g.p("done:")
	g.in("VADDPS %[1]s1, %[1]s0, %[1]s0", w.reg)
	g.in("VADDPS %[1]s3, %[1]s2, %[1]s2", w.reg)
	g.in("VADDPS %[1]s2, %[1]s0, %[1]s0", w.reg)
	g.sum(w, 0, 1)
	g.in("VMOVSS X0, ret+24(FP)")
	g.ret()
}

// scores multiplies q with four rows at a time, so that a part of q is loaded
// once for four, then with single rows. Each row has one sum either way: a
// score does not depend on how many others there are.
func (g *gen) scores(w width) {
	bytes := 4 * w.floats
	g.p("\n// func scores%s(out, q *float32, cols int, rows *float32, n int, scale float32)", w.name)
	g.fn("scores"+w.name, 44)
	g.in("MOVQ out+0(FP), DI")
	g.in("MOVQ cols+16(FP), R8")
	g.in("SHLQ $2, R8")
	g.in("LEAQ (R8)(R8*2), R9")
	g.in("MOVQ rows+24(FP), SI")
	g.in("MOVQ n+32(FP), R10")
	g.in("VMOVSS scale+40(FP), X15")
	for _, n := range []int{4, 1} {
		g.p("rows%d:", n)
		g.in("CMPQ R10, $%d", n)
		g.in("JB end%d", n)
		g.zero(w.reg, 0, n)
		g.in("MOVQ q+8(FP), DX")
		g.in("MOVQ cols+16(FP), CX")
		g.p("col%d:", n)
		g.in("VMOVUPS (DX), %s8", w.reg)
		for i := range n {
			g.in("VFMADD231PS (SI)%s, %[2]s8, %[2]s%[3]d", []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i], w.reg, i)
		}
		g.in("ADDQ $%d, DX", bytes)
		g.in("ADDQ $%d, SI", bytes)
		g.in("SUBQ $%d, CX", w.floats)
		g.in("JNZ col%d", n)
		g.in("ADDQ %s, SI", map[int]string{4: "R9", 1: "$0"}[n])
		g.sums(w, n)
		for i := range n {
			if i > 0 && w.reg == "Z" {
				g.in("VEXTRACTF32X4 $%d, Z0, X8", i)
				g.in("VMULSS X15, X8, X8")
				g.in("VMOVSS X8, %d(DI)", 4*i)
				continue
			}
			g.in("VMULSS X15, X%d, X8", i)
			g.in("VMOVSS X8, %d(DI)", 4*i)
		}
		g.in("ADDQ $%d, DI", 4*n)
		g.in("SUBQ $%d, R10", n)
		g.in("JMP rows%d", n)
		g.p("end%d:", n)
	}
	g.ret()
}

// sums folds n registers from 0: four wide ones to the quarters of the first,
// any others each to its own lowest lane.
func (g *gen) sums(w width, n int) {
	if n == 4 && w.reg == "Z" {
		g.sumFour(0, 8)
		return
	}
	for i := range n {
		g.sum(w, i, 8)
	}
}

// blend adds rows weighted by p to out, a stripe of eight, four or one registers over
// all rows at a time, so that sums stay where they are.
func (g *gen) blend(w width) {
	bytes := 4 * w.floats
	g.p("\n// func blend%s(out *float32, cols int, p *float32, n int, rows *float32)", w.name)
	g.fn("blend"+w.name, 40)
	g.in("MOVQ out+0(FP), DI")
	g.in("MOVQ cols+8(FP), R8")
	g.in("MOVQ rows+32(FP), SI")
	g.in("MOVQ R8, R9")
	g.in("SHLQ $2, R9")
	for _, n := range []int{8, 4, 1} {
		g.p("stripe%d:", n)
		g.in("CMPQ R8, $%d", w.floats*n)
		g.in("JB end%d", n)
		g.in("MOVQ p+16(FP), DX")
		g.in("MOVQ n+24(FP), CX")
		g.in("MOVQ SI, R10")
		for i := range n {
			g.in("VMOVUPS %d(DI), %s%d", bytes*i, w.reg, i)
		}
		g.p("row%d:", n)
		g.in("VBROADCASTSS (DX), %s15", w.reg)
		for i := range n {
			g.in("VFMADD231PS %d(R10), %[2]s15, %[2]s%[3]d", bytes*i, w.reg, i)
		}
		g.in("ADDQ $4, DX")
		g.in("ADDQ R9, R10")
		g.in("DECQ CX")
		g.in("JNZ row%d", n)
		for i := range n {
			g.in("VMOVUPS %s%d, %d(DI)", w.reg, i, bytes*i)
		}
		g.in("ADDQ $%d, DI", bytes*n)
		g.in("ADDQ $%d, SI", bytes*n)
		g.in("SUBQ $%d, R8", w.floats*n)
		g.in("JMP stripe%d", n)
		g.p("end%d:", n)
	}
	g.ret()
}

// read reads and throws away: the roof of everything that streams.
func (g *gen) read(w width) {
	bytes := 4 * w.floats
	g.p("\n// func read%s(p *byte, n int)", w.name)
	g.fn("read"+w.name, 16)
	g.in("MOVQ p+0(FP), SI")
	g.in("MOVQ n+8(FP), CX")
	g.in("SHRQ $8, CX")
	g.p("loop:")
	for i := range 256 / bytes {
		g.in("VMOVDQU%s %d(SI), %s%d", map[string]string{"Z": "64", "Y": ""}[w.reg], bytes*i, w.reg, i)
	}
	g.in("ADDQ $256, SI")
	g.in("DECQ CX")
	g.in("JNZ loop")
	g.ret()
}

// delta is the gated delta rule on n registers of columns of a head's state: one
// pass over the keys reads k·s, the second updates s and reads q·s.
func (g *gen) delta(w width, n int) {
	bytes, name := 4*w.floats, fmt.Sprintf("delta%sx%d", w.name, n)
	decay, beta, key, q := 3*n, 3*n+1, 3*n+2, 3*n+3 // the scalars, in every lane
	g.p("\n// func %s(s *float32, stride uintptr, key, q *float32, keys int, v, out *float32, decay, beta float32)", name)
	g.fn(name, 64)
	g.in("MOVQ s+0(FP), SI")
	g.in("MOVQ stride+8(FP), R9")
	g.in("MOVQ key+16(FP), DX")
	g.in("MOVQ q+24(FP), BX")
	g.in("MOVQ keys+32(FP), CX")
	g.in("MOVQ v+40(FP), AX")
	g.in("MOVQ out+48(FP), DI")
	g.in("VBROADCASTSS decay+56(FP), %s%d", w.reg, decay)
	g.in("VBROADCASTSS beta+60(FP), %s%d", w.reg, beta)
	g.zero(w.reg, 0, n)
	g.in("MOVQ SI, R8")
	g.p("read:")
	g.in("VBROADCASTSS (DX), %s%d", w.reg, key)
	for i := range n {
		g.in("VFMADD231PS %d(R8), %[2]s%[3]d, %[2]s%[4]d", bytes*i, w.reg, key, i)
	}
	g.in("ADDQ R9, R8")
	g.in("ADDQ $4, DX")
	g.in("DECQ CX")
	g.in("JNZ read")
	for i := range n { // d = beta*(v - decay*(k·s)) to 0.., results to n..
		g.in("VMOVUPS %d(AX), %s%d", bytes*i, w.reg, q)
		g.in("VFNMADD231PS %[1]s%[2]d, %[1]s%[3]d, %[1]s%[4]d", w.reg, decay, i, q)
		g.in("VMULPS %[1]s%[2]d, %[1]s%[3]d, %[1]s%[4]d", w.reg, beta, q, i)
	}
	g.zero(w.reg, n, 2*n)
	g.in("MOVQ key+16(FP), DX")
	g.in("MOVQ keys+32(FP), CX")
	g.p("write:")
	g.in("VBROADCASTSS (DX), %s%d", w.reg, key)
	g.in("VBROADCASTSS (BX), %s%d", w.reg, q)
	for i := range n {
		new := 2*n + i
		g.in("VMULPS %d(SI), %[2]s%[3]d, %[2]s%[4]d", bytes*i, w.reg, decay, new)
		g.in("VFMADD231PS %[1]s%[2]d, %[1]s%[3]d, %[1]s%[4]d", w.reg, key, i, new)
		g.in("VMOVUPS %s%d, %d(SI)", w.reg, new, bytes*i)
		g.in("VFMADD231PS %[1]s%[2]d, %[1]s%[3]d, %[1]s%[4]d", w.reg, q, new, n+i)
	}
	g.in("ADDQ R9, SI")
	g.in("ADDQ $4, DX")
	g.in("ADDQ $4, BX")
	g.in("DECQ CX")
	g.in("JNZ write")
	for i := range n {
		g.in("VMOVUPS %s%d, %d(DI)", w.reg, n+i, bytes*i)
	}
	g.ret()
}
