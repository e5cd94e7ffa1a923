#include "textflag.h"

// A row of a tile of 64 columns: its four sums, from and to memory at AX.
#define LOAD512(z0, z1, z2, z3) \
	VMOVUPS (AX), z0; VMOVUPS 64(AX), z1; VMOVUPS 128(AX), z2; VMOVUPS 192(AX), z3; ADDQ R8, AX
#define STORE512(z0, z1, z2, z3) \
	VMOVUPS z0, (AX); VMOVUPS z1, 64(AX); VMOVUPS z2, 128(AX); VMOVUPS z3, 192(AX); ADDQ R8, AX

// A row's input at mem times the 64 weights in Z24 to Z27.
#define STEP512(mem, t, z0, z1, z2, z3) \
	VBROADCASTSS mem, t; VFMADD231PS Z24, t, z0; VFMADD231PS Z25, t, z1; VFMADD231PS Z26, t, z2; VFMADD231PS Z27, t, z3

// func tile512(c *float32, ldc int, a *float32, lda int, b *float32, k int)
// Adds 6 rows of inputs times 64 columns of weights to c. Strides are bytes.
TEXT ·tile512(SB), NOSPLIT, $0-48
	MOVQ c+0(FP), DI
	MOVQ ldc+8(FP), R8
	MOVQ a+16(FP), SI
	MOVQ lda+24(FP), R9
	MOVQ b+32(FP), DX
	MOVQ k+40(FP), CX
	LEAQ (SI)(R9*2), R10
	LEAQ (R10)(R9*2), R11
	MOVQ DI, AX
	LOAD512(Z0, Z1, Z2, Z3)
	LOAD512(Z4, Z5, Z6, Z7)
	LOAD512(Z8, Z9, Z10, Z11)
	LOAD512(Z12, Z13, Z14, Z15)
	LOAD512(Z16, Z17, Z18, Z19)
	LOAD512(Z20, Z21, Z22, Z23)

loop512:
	VMOVUPS (DX), Z24
	VMOVUPS 64(DX), Z25
	VMOVUPS 128(DX), Z26
	VMOVUPS 192(DX), Z27
	STEP512((SI), Z28, Z0, Z1, Z2, Z3)
	STEP512((SI)(R9*1), Z29, Z4, Z5, Z6, Z7)
	STEP512((R10), Z30, Z8, Z9, Z10, Z11)
	STEP512((R10)(R9*1), Z31, Z12, Z13, Z14, Z15)
	STEP512((R11), Z28, Z16, Z17, Z18, Z19)
	STEP512((R11)(R9*1), Z29, Z20, Z21, Z22, Z23)
	ADDQ $4, SI
	ADDQ $4, R10
	ADDQ $4, R11
	ADDQ $256, DX
	DECQ CX
	JNZ  loop512
	MOVQ DI, AX
	STORE512(Z0, Z1, Z2, Z3)
	STORE512(Z4, Z5, Z6, Z7)
	STORE512(Z8, Z9, Z10, Z11)
	STORE512(Z12, Z13, Z14, Z15)
	STORE512(Z16, Z17, Z18, Z19)
	STORE512(Z20, Z21, Z22, Z23)
	VZEROUPPER
	RET

#define LOAD256(y0, y1) \
	VMOVUPS (AX), y0; VMOVUPS 32(AX), y1; ADDQ R8, AX
#define STORE256(y0, y1) \
	VMOVUPS y0, (AX); VMOVUPS y1, 32(AX); ADDQ R8, AX
#define STEP256(mem, t, y0, y1) \
	VBROADCASTSS mem, t; VFMADD231PS Y12, t, y0; VFMADD231PS Y13, t, y1

// func tile256(c *float32, ldc int, a *float32, lda int, b *float32, k int)
// Adds 6 rows of inputs times 16 columns of weights to c. Strides are bytes.
TEXT ·tile256(SB), NOSPLIT, $0-48
	MOVQ c+0(FP), DI
	MOVQ ldc+8(FP), R8
	MOVQ a+16(FP), SI
	MOVQ lda+24(FP), R9
	MOVQ b+32(FP), DX
	MOVQ k+40(FP), CX
	LEAQ (SI)(R9*2), R10
	LEAQ (R10)(R9*2), R11
	MOVQ DI, AX
	LOAD256(Y0, Y1)
	LOAD256(Y2, Y3)
	LOAD256(Y4, Y5)
	LOAD256(Y6, Y7)
	LOAD256(Y8, Y9)
	LOAD256(Y10, Y11)

loop256:
	VMOVUPS (DX), Y12
	VMOVUPS 32(DX), Y13
	STEP256((SI), Y14, Y0, Y1)
	STEP256((SI)(R9*1), Y15, Y2, Y3)
	STEP256((R10), Y14, Y4, Y5)
	STEP256((R10)(R9*1), Y15, Y6, Y7)
	STEP256((R11), Y14, Y8, Y9)
	STEP256((R11)(R9*1), Y15, Y10, Y11)
	ADDQ $4, SI
	ADDQ $4, R10
	ADDQ $4, R11
	ADDQ $256, DX
	DECQ CX
	JNZ  loop256
	MOVQ DI, AX
	STORE256(Y0, Y1)
	STORE256(Y2, Y3)
	STORE256(Y4, Y5)
	STORE256(Y6, Y7)
	STORE256(Y8, Y9)
	STORE256(Y10, Y11)
	VZEROUPPER
	RET

// func addReLU256(dst, src *float32, n int)
// n is a multiple of 8 and not 0.
TEXT ·addReLU256(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VXORPS Y2, Y2, Y2

add:
	VMOVUPS (SI), Y0
	VMAXPS  Y2, Y0, Y0
	VADDPS  (DI), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     add
	VZEROUPPER
	RET

// Eight values of a row at DX, times the scale in Y15.
#define SUM8(off, y) \
	VPMOVSXBD off(DX), Y12; VCVTDQ2PS Y12, Y12; VFMADD231PS Y15, Y12, y

// func sumRows256(dst *float32, table *int8, scale *float32, rows *uint16, n int)
// n is not 0.
TEXT ·sumRows256(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ table+8(FP), SI
	MOVQ scale+16(FP), R8
	MOVQ rows+24(FP), R9
	MOVQ n+32(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS Y10, Y10, Y10
	VXORPS Y11, Y11, Y11

row:
	MOVWLZX (R9), AX
	VBROADCASTSS (R8)(AX*4), Y15
	IMULQ $96, AX
	LEAQ  (SI)(AX*1), DX
	SUM8(0, Y0)
	SUM8(8, Y1)
	SUM8(16, Y2)
	SUM8(24, Y3)
	SUM8(32, Y4)
	SUM8(40, Y5)
	SUM8(48, Y6)
	SUM8(56, Y7)
	SUM8(64, Y8)
	SUM8(72, Y9)
	SUM8(80, Y10)
	SUM8(88, Y11)
	ADDQ $2, R9
	DECQ CX
	JNZ  row
	VMOVUPS Y0, 0(DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, 128(DI)
	VMOVUPS Y5, 160(DI)
	VMOVUPS Y6, 192(DI)
	VMOVUPS Y7, 224(DI)
	VMOVUPS Y8, 256(DI)
	VMOVUPS Y9, 288(DI)
	VMOVUPS Y10, 320(DI)
	VMOVUPS Y11, 352(DI)
	VZEROUPPER
	RET
