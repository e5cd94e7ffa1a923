//@use early step act qmv frag sixteen ahead
// One token's products with 4-bit matrices, by matrix units: what decode.metal,
// moe_decode.metal and head.metal have for plain lanes, with the same results but
// for x, which is rounded to 16 bits. Each also asks for memory of later launches.

struct TileArgs {
  uint rows, cols; // cols a multiple of 64
  uint parts;      // simdgroups that share a tile of 16 rows: a power of two
  uint quads;      // a head's width in float4s: 8, 16 or 32, for the gated norm
  float eps;
};

inline SixteenRows tile_rows(Quant q, uint tile, uint rows, uint lane) {
  SixteenRows m;
  m.q0 = q;
  m.q1 = q;
  m.row0 = metal::min(tile * 16u + (lane >> 2), rows - 1u);
  m.row1 = metal::min(tile * 16u + 8u + (lane >> 2), rows - 1u);
  return m;
}
// Puts a simdgroup's products where tile_sum finds them.
inline void tile_put(threadgroup float *part, Products y, uint sg, uint lane) {
  if ((lane & 3u) != 0u) return;
  part[sg * 16u + (lane >> 2)] = y.top;
  part[sg * 16u + 8u + (lane >> 2)] = y.low;
}
// The sum of a row over the simdgroups that share its tile; i counts the rows of
// the threadgroup.
inline float tile_sum(threadgroup const float *part, uint i, uint parts) {
  float sum = 0.0f;
  for (uint p = 0; p < parts; p++) sum += part[((i >> 4) * parts + p) * 16u + (i & 15u)];
  return sum;
}

// y = W x for the three below. 32*n threads, n a multiple of parts and at most
// MOST; grid ceil(rows / (16*n/parts)); threadgroup(0) 64*W bytes and
// threadgroup(1) W/2, W the columns/32 rounded up to a multiple of 16.
#define TILE_BEGIN(MOST)                                              \
  TG_ARRAY(float, red, [32]);                                         \
  TG_ARRAY(float, part, [MOST * 16]);                                 \
  const Quant q = quant(w, s, b);                                     \
  const uint nb = args.cols / 32u, n = nsg * 32u;                     \
  const uint shift = metal::popcount(args.parts - 1u);                \
  const uint tiles = nsg >> shift, first = sg & (args.parts - 1u);    \
  const SixteenRows m = tile_rows(q, tg * tiles + (sg >> shift), args.rows, lane); \
  Sixteen t;                                                          \
  sixteen_load(t, m, nb, first, lane);                                \
  if (sg == nsg - 1u) {                                               \
    ask_ahead(next, ahead.bytes, tg, tgs, lane);                      \
    ask_ahead(then, ahead.then_bytes, tg, tgs, lane);                 \
  }
#define TILE_END                                                      \
  threadgroup_barrier(mem_flags::mem_threadgroup);                    \
  tile_put(part, sixteen_run(t, m, nb, first, args.parts, xs, sums, lane, false, m), sg, lane); \
  threadgroup_barrier(mem_flags::mem_threadgroup);                    \
  const uint out = tg * tiles * 16u + tid;                            \
  if (tid >= tiles * 16u || out >= args.rows) return;                 \
  const float product = tile_sum(part, tid, args.parts);

// y = W (h*gain) / rms(h).
//@early
//@threads 256 3
kernel void tile4_norm(
    device const uint *w [[buffer(0)]],
    device const bfloat *s [[buffer(1)]],
    device const bfloat *b [[buffer(2)]],
    device const float *h [[buffer(3)]],
    device const bfloat *gain [[buffer(4)]],
    device float *to [[buffer(5)]],
    constant TileArgs &args [[buffer(6)]],
    device const uint *next [[buffer(7)]],
    device const uint *then [[buffer(8)]],
    constant AheadArgs &ahead [[buffer(9)]],
    threadgroup uint4 *xs [[threadgroup(0)]],
    threadgroup float *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tgs [[threadgroups_per_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TILE_BEGIN(8)
  const uint4 g = gains_of(gain, nb, tid);
  inputs_ready();
  const float square = sixteen_normed(xs, sums, nb, h, gain, g, tid, n);
  if (lane == 0u) red[sg] = square;
  TILE_END
  to[out] = product * inverse_rms(red, nsg, args.cols, args.eps);
}

// h += W x.
//@early
//@threads 256
kernel void tile4_add(
    device const uint *w [[buffer(0)]],
    device const bfloat *s [[buffer(1)]],
    device const bfloat *b [[buffer(2)]],
    device const float *x [[buffer(3)]],
    device float *h [[buffer(4)]],
    constant TileArgs &args [[buffer(5)]],
    device const uint *next [[buffer(6)]],
    device const uint *then [[buffer(7)]],
    constant AheadArgs &ahead [[buffer(8)]],
    threadgroup uint4 *xs [[threadgroup(0)]],
    threadgroup float *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tgs [[threadgroups_per_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TILE_BEGIN(8)
  (void)red;
  inputs_ready();
  sixteen_plain(xs, sums, nb, x, tid, n);
  TILE_END
  h[out] += product;
}

// h += W x, x = o / rms(o of the head) * gain * silu(z), gain [4*quads].
//@early
//@threads 256
kernel void tile4_delta_out_add(
    device const uint *w [[buffer(0)]],
    device const bfloat *s [[buffer(1)]],
    device const bfloat *b [[buffer(2)]],
    device const float *o [[buffer(3)]],
    device const float *z [[buffer(4)]],
    device const float *gain [[buffer(5)]],
    device float *h [[buffer(6)]],
    constant TileArgs &args [[buffer(7)]],
    device const uint *next [[buffer(8)]],
    device const uint *then [[buffer(9)]],
    constant AheadArgs &ahead [[buffer(10)]],
    threadgroup uint4 *xs [[threadgroup(0)]],
    threadgroup float *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tgs [[threadgroups_per_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TILE_BEGIN(8)
  (void)red;
  const Eight own = eight(gain, 0xffffu, tid & (args.quads / 2u - 1u)); // n is a multiple of a head's words
  inputs_ready();
  for (uint base = 0; base < sixteen_words(nb); base += 2u * n) {
    Eight v[2], g[2];
#pragma unroll
    for (uint i = 0; i < 2u; i++) {
      v[i] = eight(o, nb, base + i * n + tid);
      g[i] = eight(z, nb, base + i * n + tid);
    }
#pragma unroll
    for (uint i = 0; i < 2u; i++) {
      float square = dot(v[i].a, v[i].a) + dot(v[i].b, v[i].b);
      for (uint d = 1; d < args.quads / 2u; d <<= 1) square += simd_shuffle_xor(square, (ushort)d);
      const float inv = metal::rsqrt(square / (float)(args.quads * 4u) + args.eps);
      const float4 za = g[i].a, zb = g[i].b;
      const float4 a = v[i].a * (own.a * inv) * float4(silu(za.x), silu(za.y), silu(za.z), silu(za.w));
      const float4 c = v[i].b * (own.b * inv) * float4(silu(zb.x), silu(zb.y), silu(zb.z), silu(zb.w));
      sixteen_stage(xs, sums, sixteen_words(nb), base + i * n + tid, a, c);
    }
  }
  TILE_END
  h[out] += product;
}
