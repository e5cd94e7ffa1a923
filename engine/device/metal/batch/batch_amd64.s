#include "textflag.h"

// In C: void loop(const send *list, long n, void (*msg_send)(), void *object).
// DI list, SI n, DX msg_send, CX object. Only the six register arguments of C:
// this exists so that what uses it can be tested on amd64.
TEXT loop<>(SB), NOSPLIT|NOFRAME, $0
	PUSHQ	BX
	PUSHQ	R12
	PUSHQ	R13
	PUSHQ	R14
	SUBQ	$8, SP
	MOVQ	DI, BX
	MOVQ	SI, R12
	MOVQ	DX, R13
	MOVQ	CX, R14
next:
	TESTQ	R12, R12
	JZ	done
	MOVQ	R14, DI
	MOVQ	0(BX), SI
	MOVQ	8(BX), DX
	MOVQ	16(BX), CX
	MOVQ	24(BX), R8
	MOVQ	32(BX), R9
	ADDQ	$64, BX
	SUBQ	$1, R12
	CALL	R13
	JMP	next
done:
	ADDQ	$8, SP
	POPQ	R14
	POPQ	R13
	POPQ	R12
	POPQ	BX
	RET

DATA ·entry(SB)/8, $loop<>(SB)
GLOBL ·entry(SB), NOPTR, $8
