package cpu

import "unsafe"

// The kernels of kernels_arm64.s. None keeps a pointer.

//go:noescape
func q4neonx1(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q4neonx4(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func q8neonx1(w, sc, bi *byte, blocks, tail, rows int, x unsafe.Pointer, stride uintptr, y *float32, ystride uintptr)

//go:noescape
func deltaNEON(s *float32, stride uintptr, key, q *float32, keys int, v, out *float32, decay, beta float32)
