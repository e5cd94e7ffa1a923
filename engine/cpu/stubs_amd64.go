package cpu

import "unsafe"

// The kernels of kernels_amd64.s. None keeps a pointer.

//go:noescape
func q4int512x1(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q4int512x2(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q4int512x4(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func pack512(codes, next *byte, w *byte, stride uintptr)

//go:noescape
func packScales512(dst *float32, sc, bi *byte, stride uintptr)

//go:noescape
func q4panel512x1(codes *byte, scales *float32, blocks, tail int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr, sums *float32, next *byte)

//go:noescape
func q4panel512x2(codes *byte, scales *float32, blocks, tail int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr, sums *float32, next *byte)

//go:noescape
func q4panel512x3(codes *byte, scales *float32, blocks, tail int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr, sums *float32, next *byte)

//go:noescape
func q4panel512x4(codes *byte, scales *float32, blocks, tail int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr, sums *float32, next *byte)

//go:noescape
func q4panel512x5(codes *byte, scales *float32, blocks, tail int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr, sums *float32, next *byte)

//go:noescape
func q4panel512x6(codes *byte, scales *float32, blocks, tail int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr, sums *float32, next *byte)

//go:noescape
func q4panel512x7(codes *byte, scales *float32, blocks, tail int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr, sums *float32, next *byte)

//go:noescape
func q4panel512x8(codes *byte, scales *float32, blocks, tail int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr, sums *float32, next *byte)

//go:noescape
func q4flt512x1(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q4flt512x2(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q4flt512x4(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q8flt512x1(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q8flt512x2(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q8flt512x4(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q4int256x1(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q4int256x4(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q4flt256x1(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q4flt256x2(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q8flt256x1(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q8flt256x2(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func quantize512(x *float32, q *qblock, groups int)

//go:noescape
func dot512(a, b *float32, n int) float32

//go:noescape
func scores512(out, q *float32, cols int, rows *float32, n int, scale float32)

//go:noescape
func blend512(out *float32, cols int, p *float32, n int, rows *float32)

//go:noescape
func addScaled512(y, x *float32, n int, w float32)

//go:noescape
func siluMul512(dst, gate, x *float32, n int)

//go:noescape
func sigmoidMul512(x, gate *float32, n int)

//go:noescape
func exp512(x *float32, n int, top float32) float32

//go:noescape
func conv512(dst *float32, n int, r, w *[4][]float32)

//go:noescape
func delta512x8(s *float32, stride uintptr, key, q *float32, keys int, v, out *float32, decay, beta float32)

//go:noescape
func delta512x1(s *float32, stride uintptr, key, q *float32, keys int, v, out *float32, decay, beta float32)

//go:noescape
func scoresHalf512x4(out *float32, ostride uintptr, q *float32, qstride uintptr, cols int, rows *uint16, n int, scale float32)

//go:noescape
func blendHalf512x4(out *float32, ostride uintptr, cols int, p *float32, pstride uintptr, n int, rows *uint16)

//go:noescape
func scoresHalf512x1(out *float32, ostride uintptr, q *float32, qstride uintptr, cols int, rows *uint16, n int, scale float32)

//go:noescape
func blendHalf512x1(out *float32, ostride uintptr, cols int, p *float32, pstride uintptr, n int, rows *uint16)

//go:noescape
func read512(p *byte, n int)

//go:noescape
func dot256(a, b *float32, n int) float32

//go:noescape
func scores256(out, q *float32, cols int, rows *float32, n int, scale float32)

//go:noescape
func blend256(out *float32, cols int, p *float32, n int, rows *float32)

//go:noescape
func addScaled256(y, x *float32, n int, w float32)

//go:noescape
func delta256x4(s *float32, stride uintptr, key, q *float32, keys int, v, out *float32, decay, beta float32)

//go:noescape
func delta256x2(s *float32, stride uintptr, key, q *float32, keys int, v, out *float32, decay, beta float32)

//go:noescape
func scoresHalf256x2(out *float32, ostride uintptr, q *float32, qstride uintptr, cols int, rows *uint16, n int, scale float32)

//go:noescape
func blendHalf256x2(out *float32, ostride uintptr, cols int, p *float32, pstride uintptr, n int, rows *uint16)

//go:noescape
func scoresHalf256x1(out *float32, ostride uintptr, q *float32, qstride uintptr, cols int, rows *uint16, n int, scale float32)

//go:noescape
func blendHalf256x1(out *float32, ostride uintptr, cols int, p *float32, pstride uintptr, n int, rows *uint16)

//go:noescape
func read256(p *byte, n int)

func pause()
