//@use q4
// Products with 4-bit matrices for 2 to 16 rows: each weight is read once, by one
// lane, and sums are float on plain lanes. Weights are not rounded here.
//
// A simdgroup makes 4 rows of W for all rows of x; its lanes share out k in
// blocks of 32. Variant mR: up to R rows. Grid: ceil(n / 16) threadgroups of 128
// threads (swiglu: ceil(n / 8), 2 rows of gate and 2 of up for a simdgroup).
struct QskinnyArgs {
  uint m, n, k;
  uint xs, ys;
};

template <int M>
struct Skinny {
  float sum[4][M];
};

// The 8 weights of a word. A code comes out as the last place of 2^23 + code.
inline void skinny_unpack(thread float *w, uint q, float s, float b) {
#pragma unroll
  for (uint e = 0; e < 8u; e++)
    w[e] = metal::fma(s, as_type<float>(((q >> (4u * e)) & 15u) | 0x4b000000u) - 8388608.0f, b);
}

// sum[i][r] = row[i] of w[i] times row r of x, the whole of it in every lane. A
// lane unpacks 8 weights of each of the 4 rows and uses them for all rows of x.
template <int M>
inline void skinny_dot(
    thread Skinny<M> &s, device const bfloat *x, uint xs, uint m, uint k, thread const uint *row, thread const Q4 *w, uint lane) {
#pragma unroll
  for (uint i = 0; i < 4u; i++)
#pragma unroll
    for (uint r = 0; r < uint(M); r++) s.sum[i][r] = 0.0f;
  for (uint at = lane * 32u; at < k; at += 1024u) {
    uint4 q[4];
    float scale[4], bias[4];
#pragma unroll
    for (uint i = 0; i < 4u; i++) {
      q[i] = *(device const uint4 *)(w[i].codes + ulong(row[i]) * (k / 8u) + at / 8u);
      scale[i] = float(w[i].scales[row[i] * (k / 64u) + at / 64u]);
      bias[i] = float(w[i].biases[row[i] * (k / 64u) + at / 64u]);
    }
#pragma unroll
    for (uint j = 0; j < 4u; j++) {
      float f[4][8];
#pragma unroll
      for (uint i = 0; i < 4u; i++) skinny_unpack(f[i], q[i][int(j)], scale[i], bias[i]);
#pragma unroll
      for (uint r = 0; r < uint(M); r++) {
        if (r < m) {
          const uint4 v = *(device const uint4 *)(x + r * xs + at + j * 8u);
#pragma unroll
          for (uint e = 0; e < 4u; e++) {
            const float lo = as_type<float>(v[int(e)] << 16u), hi = as_type<float>(v[int(e)] & 0xffff0000u);
#pragma unroll
            for (uint i = 0; i < 4u; i++) s.sum[i][r] = metal::fma(hi, f[i][e * 2u + 1u], metal::fma(lo, f[i][e * 2u], s.sum[i][r]));
          }
        }
      }
    }
  }
#pragma unroll
  for (uint i = 0; i < 4u; i++)
#pragma unroll
    for (uint r = 0; r < uint(M); r++) s.sum[i][r] = simd_sum(s.sum[i][r]);
}

// Lane r stores row r, so that no array is indexed by the lane.
template <int M, typename Put, typename Y>
inline void skinny(
    device const bfloat *x, device const uint *codes, device const bfloat *scales, device const bfloat *biases, device Y *y,
    constant QskinnyArgs &a, uint first, uint lane) {
  if (first >= a.n) return;
  uint row[4];
  Q4 w[4];
  for (uint i = 0; i < 4u; i++) {
    row[i] = metal::min(first + i, a.n - 1u);
    q4_set(w[i], codes, scales, biases, 0u, 0u, 0u);
  }
  Skinny<M> s;
  skinny_dot<M>(s, x, a.xs, a.m, a.k, row, w, lane);
  Put out;
  out.y = y;
  out.stride = a.ys;
  out.n = a.n;
#pragma unroll
  for (uint r = 0; r < uint(M); r++)
    if (r == lane && r < a.m) {
      Put::put(out, Put::row(out, r), first, s.sum[0][r], s.sum[1][r]);
      Put::put(out, Put::row(out, r), first + 2u, s.sum[2][r], s.sum[3][r]);
    }
}

//@for NAME,M,PUT,Y,G in store_m4,4,PutBf16,bfloat,4 store_m8,8,PutBf16,bfloat,4 store_m16,16,PutBf16,bfloat,3 store_f32_m4,4,PutF32,float,4 store_f32_m8,8,PutF32,float,4 store_f32_m16,16,PutF32,float,3 add_m4,4,PutAdd,float,4 add_m8,8,PutAdd,float,4 add_m16,16,PutAdd,float,3
//@threads 128 @G@
kernel void qskinny_@NAME@(
    device const bfloat *x [[buffer(0)]],
    device const uint *codes [[buffer(1)]],
    device const bfloat *scales [[buffer(2)]],
    device const bfloat *biases [[buffer(3)]],
    device @Y@ *y [[buffer(4)]],
    constant QskinnyArgs &args [[buffer(5)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  skinny<@M@, @PUT@>(x, codes, scales, biases, y, args, (tg.x * 4u + sg) * 4u, lane);
}
//@end

//@for M,G in 4,4 8,4 16,3
//@threads 128 @G@
kernel void qskinny_swiglu_m@M@(
    device const bfloat *x [[buffer(0)]],
    device const uint *gate_codes [[buffer(1)]],
    device const bfloat *gate_scales [[buffer(2)]],
    device const bfloat *gate_biases [[buffer(3)]],
    device const uint *up_codes [[buffer(4)]],
    device const bfloat *up_scales [[buffer(5)]],
    device const bfloat *up_biases [[buffer(6)]],
    device bfloat *y [[buffer(7)]],
    constant QskinnyArgs &args [[buffer(8)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  const uint first = (tg.x * 4u + sg) * 2u;
  if (first >= args.n) return;
  const uint next = metal::min(first + 1u, args.n - 1u);
  uint row[4];
  Q4 w[4];
  row[0] = first;
  row[1] = next;
  row[2] = first;
  row[3] = next;
  q4_set(w[0], gate_codes, gate_scales, gate_biases, 0u, 0u, 0u);
  q4_set(w[1], gate_codes, gate_scales, gate_biases, 0u, 0u, 0u);
  q4_set(w[2], up_codes, up_scales, up_biases, 0u, 0u, 0u);
  q4_set(w[3], up_codes, up_scales, up_biases, 0u, 0u, 0u);
  Skinny<@M@> s;
  skinny_dot<@M@>(s, x, args.xs, args.m, args.k, row, w, lane);
  PutSwiGLU out;
  out.y = y;
  out.stride = args.ys;
  out.n = args.n;
#pragma unroll
  for (uint r = 0; r < @M@u; r++)
    if (r == lane && r < args.m) PutSwiGLU::pair(out, PutSwiGLU::row(out, r), first, s.sum[0][r], s.sum[2][r], s.sum[1][r], s.sum[3][r]);
}
//@end
