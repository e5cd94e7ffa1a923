// Products of bfloat matrices by pieces whose place in the lanes is known:
// NVIDIA's mma.sync m16n8k16, and what brings operands to it. Elsewhere the
// same is done with shuffles: right, and good for tests, but no way to be fast.
//
// A piece of C (16x8, float[4]): lane l has rows l/4 and l/4+8, columns 2(l%4)
// and the next. A (16x16, uint[4]): two bfloats to a word, rows l/4, l/4+8,
// l/4, l/4+8; columns 2(l%4) and the next, from 0, 0, 8, 8. B (16x8, two
// words): column l/4, rows 2(l%4) and the next, from 0 and 8. So two pieces of
// C that lie side by side, rounded, are a piece of A.

// FragMemory: where in threadgroup memory operands lie, as those who fetch them
// want it; made by frag_memory of a 16-byte aligned pointer.
#ifdef MSL_CUDA
typedef uint FragMemory;
inline FragMemory frag_memory(threadgroup const bfloat *p) {
#ifdef __CUDACC_RTC__
  return uint(__cvta_generic_to_shared(p));
#else
  return uint((unsigned long)((__attribute__((address_space(3))) const void *)p));
#endif
}
#else
typedef threadgroup const bfloat *FragMemory;
inline FragMemory frag_memory(threadgroup const bfloat *p) { return p; }
#endif

// frag_pack: two floats rounded to bfloat, the first in the low half.
inline uint frag_pack(float a, float b) {
#ifdef MSL_CUDA
  uint r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return r;
#else
  return uint(as_type<ushort>(bfloat(a))) | (uint(as_type<ushort>(bfloat(b))) << 16);
#endif
}
inline float frag_low(uint v) { return as_type<float>(v << 16); }
inline float frag_high(uint v) { return as_type<float>(v & 0xffff0000u); }

// frag_rest: what frag_pack's rounding left out, itself packed. The pair
// carries 16 bits of each number.
inline uint frag_rest(float a, float b, uint packed) { return frag_pack(a - frag_low(packed), b - frag_high(packed)); }

// frag_split: two pieces of C that lie side by side as a piece of A, rounded,
// and what the rounding left out as another.
inline void frag_split(thread uint *a, thread uint *rest, thread const float *c, thread const float *d) {
  a[0] = frag_pack(c[0], c[1]);
  a[1] = frag_pack(c[2], c[3]);
  a[2] = frag_pack(d[0], d[1]);
  a[3] = frag_pack(d[2], d[3]);
  rest[0] = frag_rest(c[0], c[1], a[0]);
  rest[1] = frag_rest(c[2], c[3], a[1]);
  rest[2] = frag_rest(d[0], d[1], a[2]);
  rest[3] = frag_rest(d[2], d[3], a[3]);
}

// frag_mma: c += a*b.
inline void frag_mma(thread float *c, thread const uint *a, uint b0, uint b1, uint lane) {
#ifdef MSL_CUDA
  (void)lane;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  const uint row = lane & 28u;          // lanes of rows lane/4 and lane/4+8
  const uint column = (lane & 3u) * 8u;  // lanes of columns 2(l%4) and, 4 on, the next
  for (uint i = 0; i < 4u; i++) {
    const uint a0 = simd_shuffle(a[0], ushort(row + i)), a1 = simd_shuffle(a[1], ushort(row + i));
    const uint a2 = simd_shuffle(a[2], ushort(row + i)), a3 = simd_shuffle(a[3], ushort(row + i));
    for (uint j = 0; j < 2u; j++) {
      const uint x = simd_shuffle(b0, ushort(column + 4u * j + i)), y = simd_shuffle(b1, ushort(column + 4u * j + i));
      c[j] += frag_low(a0) * frag_low(x) + frag_high(a0) * frag_high(x) + frag_low(a2) * frag_low(y) + frag_high(a2) * frag_high(y);
      c[2u + j] += frag_low(a1) * frag_low(x) + frag_high(a1) * frag_high(x) + frag_low(a3) * frag_low(y) + frag_high(a3) * frag_high(y);
    }
  }
#endif
}

// frag_load: four 8x8 matrices of bfloats; lane l gives where (in elements of
// base, 16-byte aligned) row l%8 of matrix l/8 begins, and gets of each
// matrix, in r[i], row l/4, columns 2(l%4) and the next.
inline void frag_load(thread uint *r, FragMemory base, uint at, uint lane) {
#ifdef MSL_CUDA
  (void)lane;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(base + at * 2u)
               : "memory");
#else
  for (uint i = 0; i < 4u; i++) {
    const uint from = simd_shuffle(at, ushort(8u * i + lane / 4u)) + 2u * (lane % 4u);
    r[i] = uint(as_type<ushort>(base[from])) | (uint(as_type<ushort>(base[from + 1u])) << 16);
  }
#endif
}

// frag_load_t: the same of each matrix transposed.
inline void frag_load_t(thread uint *r, FragMemory base, uint at, uint lane) {
#ifdef MSL_CUDA
  (void)lane;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(base + at * 2u)
               : "memory");
#else
  for (uint i = 0; i < 4u; i++) {
    const uint x = simd_shuffle(at, ushort(8u * i + 2u * (lane % 4u))) + lane / 4u;
    const uint y = simd_shuffle(at, ushort(8u * i + 2u * (lane % 4u) + 1u)) + lane / 4u;
    r[i] = uint(as_type<ushort>(base[x])) | (uint(as_type<ushort>(base[y])) << 16);
  }
#endif
}

// frag_copy: 16 bytes from device to threadgroup memory, arriving some time
// before a frag_wait that covers them returns. Others see them after a barrier
// that follows.
inline void frag_copy(threadgroup bfloat *to, uint at, device const bfloat *from) {
#ifdef MSL_CUDA
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(frag_memory(to) + at * 2u), "l"(from) : "memory");
#else
  *(threadgroup uint4 *)(to + at) = *(device const uint4 *)from;
#endif
}
// frag_commit: what was copied since the last one is a batch.
inline void frag_commit() {
#ifdef MSL_CUDA
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// frag_wait: returns when all but the last N batches of this thread are there.
template <int N>
inline void frag_wait() {
#ifdef MSL_CUDA
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

// frag_swizzle: where 16-byte piece c of row r lies in a tile with rows of
// pitch bfloats (a multiple of 64), so that eight rows at one column are in
// different banks.
inline uint frag_swizzle(uint r, uint c, uint pitch) { return r * pitch + ((c ^ (r & 7u)) * 8u); }

inline float frag_exp2(float x) {
#ifdef MSL_CUDA
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#else
  return metal::exp2(x);
#endif
}

// frag_any: whether b holds in any lane of the simdgroup.
inline bool frag_any(bool b) {
#ifdef MSL_CUDA
  uint r;
  asm volatile(
      "{ .reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync.any.pred q, p, 0xffffffff; selp.u32 %0, 1, 0, q; }"
      : "=r"(r)
      : "r"(uint(b)));
  return r != 0u;
#else
  return simd_max(b ? 1u : 0u) != 0u;
#endif
}
