package main

import "fmt"

// The kernels of this file read keys and values as bfloat16 and serve several
// heads of one token, so that a row is widened once for all of them. Sums are
// those of scores and blend over widened rows, to the last bit.

// headCounts are how many heads kernels of a width take: as many as leave their
// sums in registers.
func headCounts(w width) []int {
	if w.reg == "Z" {
		return []int{4, 1}
	}
	return []int{2, 1}
}

// widenAt loads a register's worth of bfloat16 and makes it float32.
func (g *gen) widenAt(w width, addr string, r int) {
	g.in("VPMOVZXWD %s, %s%d", addr, w.reg, r)
	g.in("VPSLLD $16, %[1]s%[2]d, %[1]s%[2]d", w.reg, r)
}

// scoresHalf multiplies heads queries with each of n rows, four rows at a time
// and then single ones.
//
//	R8 bytes of a row, R9 thrice that, SI rows, R10 rows left, DI scores
//	DX the first query, BX the distance of queries, R11 thrice that
//	AX the distance of their scores, R12 thrice that
func (g *gen) scoresHalf(w width, heads int) {
	bytes := 4 * w.floats
	name := fmt.Sprintf("scoresHalf%sx%d", w.name, heads)
	g.p("\n// func %s(out *float32, ostride uintptr, q *float32, qstride uintptr, cols int, rows *uint16, n int, scale float32)", name)
	g.fn(name, 60)
	g.in("MOVQ out+0(FP), DI")
	g.in("MOVQ ostride+8(FP), AX")
	g.in("LEAQ (AX)(AX*2), R12")
	g.in("MOVQ qstride+24(FP), BX")
	g.in("LEAQ (BX)(BX*2), R11")
	g.in("MOVQ cols+32(FP), R8")
	g.in("SHLQ $1, R8")
	g.in("LEAQ (R8)(R8*2), R9")
	g.in("MOVQ rows+40(FP), SI")
	g.in("MOVQ n+48(FP), R10")
	if w.reg == "Z" {
		g.in("VBROADCASTSS scale+56(FP), X31")
		g.in("VMOVDQU64 ·eight(SB), Z30")
	} else {
		g.in("VBROADCASTSS scale+56(FP), X15")
	}
	head := []string{"", "(%s*1)", "(%s*2)", "(%s*1)"}
	far := func(base, one, three string, h int) string {
		if h == 0 {
			return "(" + base + ")"
		}
		return "(" + base + ")" + fmt.Sprintf(head[h], map[bool]string{true: three, false: one}[h == 3])
	}
	for _, n := range []int{4, 1} {
		row, q := heads*n, heads*n+n // registers of widened rows, and of a query
		g.p("rows%d:", n)
		g.in("CMPQ R10, $%d", n)
		g.in("JB end%d", n)
		g.zero(w.reg, 0, heads*n)
		g.in("MOVQ q+16(FP), DX")
		g.in("MOVQ cols+32(FP), CX")
		g.p("col%d:", n)
		for i := range n {
			g.widenAt(w, far("SI", "R8", "R9", i), row+i)
		}
		for h := range heads {
			g.in("VMOVUPS %s, %s%d", far("DX", "BX", "R11", h), w.reg, q)
			for i := range n {
				g.in("VFMADD231PS %[1]s%[2]d, %[1]s%[3]d, %[1]s%[4]d", w.reg, row+i, q, h*n+i)
			}
		}
		g.in("ADDQ $%d, DX", bytes)
		g.in("ADDQ $%d, SI", bytes/2)
		g.in("SUBQ $%d, CX", w.floats)
		g.in("JNZ col%d", n)
		if n == 4 {
			g.in("ADDQ R9, SI")
		}
		for h := range heads {
			g.storeScores(w, h*n, n, row, far("DI", "AX", "R12", h))
		}
		g.in("ADDQ $%d, DI", 4*n)
		g.in("SUBQ $%d, R10", n)
		g.in("JMP rows%d", n)
		g.p("end%d:", n)
	}
	g.ret()
}

// storeScores folds n registers from r, scales the sums and writes them side by
// side. t is scratch.
func (g *gen) storeScores(w width, r, n, t int, addr string) {
	switch {
	case w.reg == "Z" && n == 4:
		g.sumFour(r, t)
		g.in("VPERMPS Z%d, Z30, Z%d", r, r)
		g.in("VMULPS X31, X%d, X%d", r, r)
		g.in("VMOVUPS X%d, %s", r, addr)
	case w.reg == "Z":
		g.sumZ(r, t)
		g.in("VMULSS X31, X%d, X%d", r, r)
		g.in("VMOVSS X%d, %s", r, addr)
	default:
		for i := range n {
			g.sumY(r+i, t)
		}
		for i := 1; i < n; i++ {
			g.in("VINSERTPS $0x%x0, X%d, X%d, X%d", i, r+i, r, r)
		}
		if n == 1 {
			g.in("VMULSS X15, X%d, X%d", r, r)
			g.in("VMOVSS X%d, %s", r, addr)
			return
		}
		g.in("VMULPS X15, X%d, X%d", r, r)
		g.in("VMOVUPS X%d, %s", r, addr)
	}
}

// blendHalf adds rows weighted by each head's p to the head's out, a stripe of
// four registers or one over all rows at a time.
//
//	DI the first out, BX the distance of outs, R11 thrice that, R8 columns left
//	DX the first p, AX the distance of ps, R12 thrice that
//	SI rows, R10 a row, R9 bytes of a row
func (g *gen) blendHalf(w width, heads int) {
	bytes := 4 * w.floats
	name := fmt.Sprintf("blendHalf%sx%d", w.name, heads)
	g.p("\n// func %s(out *float32, ostride uintptr, cols int, p *float32, pstride uintptr, n int, rows *uint16)", name)
	g.fn(name, 56)
	g.in("MOVQ out+0(FP), DI")
	g.in("MOVQ ostride+8(FP), BX")
	g.in("LEAQ (BX)(BX*2), R11")
	g.in("MOVQ cols+16(FP), R8")
	g.in("MOVQ pstride+32(FP), AX")
	g.in("LEAQ (AX)(AX*2), R12")
	g.in("MOVQ rows+48(FP), SI")
	g.in("MOVQ R8, R9")
	g.in("SHLQ $1, R9")
	outs, ps := []string{"(DI)", "(DI)(BX*1)", "(DI)(BX*2)", "(DI)(R11*1)"}, []string{"(DX)", "(DX)(AX*1)", "(DX)(AX*2)", "(DX)(R12*1)"}
	for _, n := range []int{4, 1} {
		row, p := heads*n, heads*n+n
		g.p("stripe%d:", n)
		g.in("CMPQ R8, $%d", w.floats*n)
		g.in("JB end%d", n)
		g.in("MOVQ p+24(FP), DX")
		g.in("MOVQ n+40(FP), CX")
		g.in("MOVQ SI, R10")
		for h := range heads {
			for i := range n {
				g.in("VMOVUPS %d%s, %s%d", bytes*i, outs[h], w.reg, h*n+i)
			}
		}
		g.p("row%d:", n)
		for i := range n {
			g.widenAt(w, fmt.Sprintf("%d(R10)", bytes/2*i), row+i)
		}
		for h := range heads {
			g.in("VBROADCASTSS %s, %s%d", ps[h], w.reg, p)
			for i := range n {
				g.in("VFMADD231PS %[1]s%[2]d, %[1]s%[3]d, %[1]s%[4]d", w.reg, row+i, p, h*n+i)
			}
		}
		g.in("ADDQ $4, DX")
		g.in("ADDQ R9, R10")
		g.in("DECQ CX")
		g.in("JNZ row%d", n)
		for h := range heads {
			for i := range n {
				g.in("VMOVUPS %s%d, %d%s", w.reg, h*n+i, bytes*i, outs[h])
			}
		}
		g.in("ADDQ $%d, DI", bytes*n)
		g.in("ADDQ $%d, SI", bytes/2*n)
		g.in("SUBQ $%d, R8", w.floats*n)
		g.in("JMP stripe%d", n)
		g.p("end%d:", n)
	}
	g.ret()
}
