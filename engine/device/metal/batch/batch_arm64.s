#include "textflag.h"

// In C: void loop(const send *list, long n, void (*msg_send)(), void *object).
// R0 list, R1 n, R2 msg_send, R3 object. A send is a selector and six words.
TEXT loop<>(SB), NOSPLIT|NOFRAME, $0
	SUB	$48, RSP
	STP	(R29, R30), 0(RSP)
	STP	(R19, R20), 16(RSP)
	STP	(R21, R22), 32(RSP)
	MOVD	RSP, R29
	MOVD	R0, R19
	MOVD	R1, R20
	MOVD	R2, R21
	MOVD	R3, R22
next:
	CBZ	R20, done
	MOVD	R22, R0
	LDP	0(R19), (R1, R2)
	LDP	16(R19), (R3, R4)
	LDP	32(R19), (R5, R6)
	MOVD	48(R19), R7
	ADD	$64, R19
	SUB	$1, R20
	CALL	(R21)
	B	next
done:
	LDP	32(RSP), (R21, R22)
	LDP	16(RSP), (R19, R20)
	LDP	0(RSP), (R29, R30)
	ADD	$48, RSP
	RET

DATA ·entry(SB)/8, $loop<>(SB)
GLOBL ·entry(SB), NOPTR, $8
