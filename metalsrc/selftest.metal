//@use tilemma
// A plain matrix product through TileMma, to compare its variants at start-up.
struct TileArgs {
  uint m, n, k;
};

template <typename T>
inline void gemm_tile(
    device const T *a, device const T *b, device T *c, constant TileArgs &args,
    threadgroup T *sa, threadgroup T *sb, threadgroup float *sc, uint tx, uint ty, uint tid, uint sg) {
  typedef TileMma<T, 64, 32, 32, 4> Mma;
  const uint m0 = ty * 64u;
  const uint n0 = tx * 32u;
  auto acc = Mma::make();
  Mma::clear(acc, sg);
  for (uint k0 = 0; k0 < args.k; k0 += 32u) {
    for (uint i = tid; i < 64u * 32u; i += 128u) {
      const uint r = m0 + i / 32u, k = k0 + i % 32u;
      sa[i] = (r < args.m && k < args.k) ? a[r * args.k + k] : T(0.0f);
    }
    for (uint i = tid; i < 32u * 32u; i += 128u) {
      const uint r = n0 + i / 32u, k = k0 + i % 32u;
      sb[i] = (r < args.n && k < args.k) ? b[r * args.k + k] : T(0.0f);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Mma::step(acc, sa, sb, sg);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  Mma::store(acc, sc, sg);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = tid; i < 64u * 32u; i += 128u) {
    const uint r = m0 + i / 32u, q = n0 + i % 32u;
    if (r < args.m && q < args.n) c[r * args.n + q] = T(sc[i]);
  }
}

//@for S,T in f16,half bf16,bfloat
kernel void gemm_tile_@S@(
    device const @T@ *a [[buffer(0)]],
    device const @T@ *b [[buffer(1)]],
    device @T@ *c [[buffer(2)]],
    constant TileArgs &args [[buffer(3)]],
    uint3 tgid [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  TG_ARRAY(@T@, sa, [64 * 32]);
  TG_ARRAY(@T@, sb, [32 * 32]);
  TG_ARRAY(float, sc, [64 * 32]);
  gemm_tile<@T@>(a, b, c, args, sa, sb, sc, tgid.x, tgid.y, tid, sg);
}
//@end
