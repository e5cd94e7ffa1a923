// A simdgroup's 16x8x16 products of bfloat, as NVIDIA's matrix units make them
// (PTX ISA, "mma.m16n8k16", "ldmatrix", "cp.async"), with the layout of their
// operands spelled out. Elsewhere the same results come from plain code that is
// slow: it is there so that kernels built on this can be tested anywhere.
//
// Lane l holds, with g = l / 4 and t = l % 4, of
//   a[16][16]: rows g and g + 8 by turns, columns 2t.. and then 2t + 8.., in pairs;
//   b[8][16]:  row g, columns 2t, 2t+1 and 2t+8, 2t+9 (b is transposed, as W is);
//   c[16][8]:  row g, columns 2t, 2t+1, and the same of row g + 8.
// Places in threadgroup memory are bytes from mem.
#ifdef MSL_CUDA
inline uint mma_place(threadgroup float *mem, uint at) {
  ulong p;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(p) : "l"(mem));
  return uint(p) + at;
}
// Starts to copy 16 bytes; mma_commit() closes a batch of copies.
inline void mma_copy(threadgroup float *mem, uint at, device const uint4 *from) {
  ulong g;
  asm("cvta.to.global.u64 %0, %1;" : "=l"(g) : "l"(from));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(mma_place(mem, at)), "l"(g) : "memory");
}
inline void mma_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until no more than N batches of this thread's copies are under way.
template <int N>
inline void mma_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
// Four 8x8 matrices: lane l gives the place of row l % 8 of matrix l / 8, 16 bytes.
inline void mma_load(thread uint4 &r, threadgroup float *mem, uint at, uint) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
               : "r"(mma_place(mem, at)));
}
inline void mma_store(threadgroup float *mem, uint at, thread const uint4 &v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(mma_place(mem, at)), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
// c += a * b^T.
inline void mma_add(thread float4 &c, thread const uint4 &a, uint b0, uint b1, uint) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w)
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}
// Two weights: codes in bits 0 to 3 and 16 to 19 of q, scale and bias twice. A
// bfloat whose bits are 0x4300 | code is 128 + code; minus 128 it is the code.
inline uint mma_weights(uint q, uint s, uint b) {
  uint r;
  asm("{\n\t.reg .b32 c;\n\t"
      "lop3.b32 c, %1, 0x000f000f, 0x43004300, 0xea;\n\t"
      "fma.rn.bf16x2 c, c, %4, %5;\n\t"
      "fma.rn.bf16x2 %0, c, %2, %3;\n\t}"
      : "=r"(r)
      : "r"(q), "r"(s), "r"(b), "r"(0x3f803f80u), "r"(0xc300c300u));
  return r;
}
inline uint mma_bytes(uint a, uint b, uint pick) {
  uint r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(pick));
  return r;
}
inline uint mma_twice(uint v) { return mma_bytes(v, 0u, 0x1010u); }
// The 8 weights of a word, rounded to bfloat once; s and b are scale and bias twice.
inline uint4 mma_unpack(uint w, uint s, uint b) {
  const uint high = w >> 4u;
  return uint4(
      mma_weights(mma_bytes(w, high, 0x0400u), s, b), mma_weights(mma_bytes(w, high, 0x0501u), s, b),
      mma_weights(mma_bytes(w, high, 0x0602u), s, b), mma_weights(mma_bytes(w, high, 0x0703u), s, b));
}
#else
inline void mma_copy(threadgroup float *mem, uint at, device const uint4 *from) {
  ((threadgroup uint4 *)mem)[at / 16u] = *from;
}
inline void mma_commit() {}
template <int N>
inline void mma_wait() {}
inline void mma_load(thread uint4 &r, threadgroup float *mem, uint at, uint lane) {
  threadgroup uint *p = (threadgroup uint *)mem + lane % 4u;
  const uint row = lane / 4u;
  r.x = p[simd_shuffle(at, ushort(row)) / 4u];
  r.y = p[simd_shuffle(at, ushort(row + 8u)) / 4u];
  r.z = p[simd_shuffle(at, ushort(row + 16u)) / 4u];
  r.w = p[simd_shuffle(at, ushort(row + 24u)) / 4u];
}
inline void mma_store(threadgroup float *mem, uint at, thread const uint4 &v) { ((threadgroup uint4 *)mem)[at / 16u] = v; }
inline float mma_pair(uint x, uint y, float c) {
  return c + as_type<float>(x << 16u) * as_type<float>(y << 16u) +
         as_type<float>(x & 0xffff0000u) * as_type<float>(y & 0xffff0000u);
}
inline void mma_add(thread float4 &c, thread const uint4 &a, uint b0, uint b1, uint lane) {
  const uint row = lane & ~3u, col = lane % 4u * 8u;
  for (uint k = 0; k < 8u; k++) {
    const uint l = k % 4u;
    const uint x = simd_shuffle(k < 4u ? a.x : a.z, ushort(row + l));
    const uint y = simd_shuffle(k < 4u ? a.y : a.w, ushort(row + l));
    const uint u = simd_shuffle(k < 4u ? b0 : b1, ushort(col + l));
    const uint v = simd_shuffle(k < 4u ? b0 : b1, ushort(col + 4u + l));
    c.x = mma_pair(x, u, c.x);
    c.y = mma_pair(x, v, c.y);
    c.z = mma_pair(y, u, c.z);
    c.w = mma_pair(y, v, c.w);
  }
}
inline uint mma_twice(uint v) { return (v & 0xffffu) * 0x10001u; }
inline uint4 mma_unpack(uint w, uint s, uint b) { return q4_unpack(w, as_type<float>(s << 16u), as_type<float>(b << 16u)); }
#endif
