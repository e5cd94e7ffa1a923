//@use early step act qmv
// One token: its row of the embedding, its rotation, and products of 4-bit and
// 8-bit matrices with one float32 vector.

struct EmbedArgs {
  uint cols, vocab;
};
// h = row step.token of a 4-bit matrix; zero where there is no such row.
// Grid ceil(cols/512) x 64 threads, 8 columns each.
kernel void embed_row(
    device const uint *codes [[buffer(0)]],
    device const bfloat *scales [[buffer(1)]],
    device const bfloat *biases [[buffer(2)]],
    device const Step *step [[buffer(3)]],
    device float *h [[buffer(4)]],
    constant EmbedArgs &args [[buffer(5)]],
    uint i [[thread_position_in_grid]]) {
  if (i * 8u >= args.cols) return;
  const uint row = step[0].token;
  uint w = 0u;
  float s = 0.0f, b = 0.0f;
  if (row < args.vocab) {
    w = codes[(ulong)row * (args.cols / 8u) + i];
    s = float(scales[row * (args.cols / 64u) + i / 8u]);
    b = float(biases[row * (args.cols / 64u) + i / 8u]);
  }
  for (uint j = 0; j < 8u; j++) h[i * 8u + j] = s * (float)((w >> (4u * j)) & 15u) + b;
}

struct RopeArgs {
  uint pairs;
};
// rope[t][pair] = (cos, sin) of position step.pos + t, for the step.n tokens of
// the step, by the addition of two tabled angles: hi[p >> 9] + lo[p & 511], each
// [512][pairs]. Grid ceil(tokens*pairs/64) x 64 threads, tokens an upper bound.
kernel void rope_rows(
    device const float2 *hi [[buffer(0)]],
    device const float2 *lo [[buffer(1)]],
    device const Step *step [[buffer(2)]],
    device float2 *rope [[buffer(3)]],
    constant RopeArgs &args [[buffer(4)]],
    uint i [[thread_position_in_grid]]) {
  const uint t = i / args.pairs, pair = i % args.pairs;
  if (t >= step[0].n) return;
  const uint pos = step[0].pos + t;
  const float2 a = hi[(pos >> 9) * args.pairs + pair];
  const float2 b = lo[(pos & 511u) * args.pairs + pair];
  rope[i] = float2(a.x * b.x - a.y * b.y, a.y * b.x + a.x * b.y);
}

struct QmvArgs {
  uint rows, cols; // cols a multiple of 64
  uint parts;      // simdgroups that share a strip of rows: a power of two
  uint quads;      // a head's width in float4s: 8, 16 or 32, for the gated norm
  float eps;
};

// Where a simdgroup works: its strip of 4 rows, clamped to the matrix, and its
// part of the columns.
struct Place {
  uint strip, first, stride;
};
inline Place place(constant QmvArgs &args, uint tg, uint sg, uint nsg, uint lane) {
  Place p;
  const uint shift = metal::popcount(args.parts - 1u); // a division would take longer
  p.strip = tg * (nsg >> shift) + (sg >> shift);
  p.first = (sg & (args.parts - 1u)) * 32u + lane;
  p.stride = args.parts * 32u;
  return p;
}
inline void strip_rows(thread uint *row, uint strip, uint rows) {
#pragma unroll
  for (uint r = 0; r < 4u; r++) row[r] = metal::min(strip * 4u + r, rows - 1u);
}

// The sums over lanes and over the simdgroups that share a strip. Thread r < 4
// of a strip's first simdgroup gets the product of row r.
inline float gather_rows(thread const float *y, threadgroup float *part, uint parts, uint sg, uint lane) {
  float mine = sum_four(y, lane);
  if (parts > 1u) {
    if (lane < 4u) part[sg * 4u + lane] = mine;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane < 4u && (sg & (parts - 1u)) == 0u) {
      mine = 0.0f;
      for (uint i = 0; i < parts; i++) mine += part[(sg + i) * 4u + lane];
    }
  }
  return mine;
}

// y = W x for the five below: what differs is how x is staged and what happens
// to y. Threads 32*n, n a multiple of parts, at most 16, of the first 12; grid ceil(rows / (4*n/parts));
// threadgroup(0) 128*(cols/32+1) bytes, threadgroup(1) cols/4 bytes.
#define QMV_BEGIN(FETCH)                                        \
  TG_ARRAY(float, red, [32]);                                   \
  TG_ARRAY(float, part, [128]);                                 \
  const Quant q = quant(w, s, b);                               \
  const uint nb = args.cols / 32u, n = nsg * 32u;               \
  const Place at = place(args, tg, sg, nsg, lane);              \
  uint row[4];                                                  \
  float y[4];                                                   \
  Strip<4> one, two;                                            \
  strip_rows(row, at.strip, args.rows);                         \
  if (!INPUTS_LATE) {                                           \
    FETCH                                                       \
  }                                                             \
  strip_load<4, 1>(one, q, q, row, nb, at.first);               \
  strip_load<4, 1>(two, q, q, row, nb, at.first + at.stride);   \
  inputs_ready();                                               \
  if (INPUTS_LATE) {                                            \
    FETCH                                                       \
  }
#define QMV_END                                                                                  \
  threadgroup_barrier(mem_flags::mem_threadgroup);                                               \
  strip_run<4, 1>(y, one, two, q, q, row, xs, sums, nb, at.first, at.stride);                    \
  const float product = gather_rows(y, part, args.parts, sg, lane);                              \
  const uint out = at.strip * 4u + lane;                                                         \
  if (lane >= 4u || out >= args.rows || (sg & (args.parts - 1u)) != 0u) return;

// What a thread adds its product to, asked for with x and not at the end.
#define QMV_OLD(H)                                                                              \
  const uint own = at.strip * 4u + lane;                                                        \
  float old = 0.0f;                                                                             \
  if (lane < 4u && own < args.rows && (sg & (args.parts - 1u)) == 0u) old = H[own];

// y = W (h*gain) / rms(h).
//@early
//@threads 384 2
kernel void qmv4_norm_f32(
    device const uint *w [[buffer(0)]],
    device const bfloat *s [[buffer(1)]],
    device const bfloat *b [[buffer(2)]],
    device const float *h [[buffer(3)]],
    device const bfloat *gain [[buffer(4)]],
    device float *to [[buffer(5)]],
    constant QmvArgs &args [[buffer(6)]],
    threadgroup float4 *xs [[threadgroup(0)]],
    threadgroup float2 *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  Fetched<2> x;
  Gains<2> g;
  QMV_BEGIN(fetch(x, h, nb, tid, n); fetch_gains(g, gain, nb, tid, n);)
  const float square = stage_normed(xs, sums, nb, x, g, h, gain, tid, n);
  if (lane == 0u) red[sg] = square;
  QMV_END
  to[out] = product * inverse_rms(red, nsg, args.cols, args.eps);
}

// y = W x.
//@early
//@threads 512
kernel void qmv4_f32(
    device const uint *w [[buffer(0)]],
    device const bfloat *s [[buffer(1)]],
    device const bfloat *b [[buffer(2)]],
    device const float *x [[buffer(3)]],
    device float *to [[buffer(4)]],
    constant QmvArgs &args [[buffer(5)]],
    threadgroup float4 *xs [[threadgroup(0)]],
    threadgroup float2 *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  Fetched<2> early;
  QMV_BEGIN(fetch(early, x, nb, tid, n);)
  (void)red;
  stage_plain(xs, sums, nb, early, x, tid, n);
  QMV_END
  to[out] = product;
}

// h += W x.
//@early
//@threads 512
kernel void qmv4_add(
    device const uint *w [[buffer(0)]],
    device const bfloat *s [[buffer(1)]],
    device const bfloat *b [[buffer(2)]],
    device const float *x [[buffer(3)]],
    device float *h [[buffer(4)]],
    constant QmvArgs &args [[buffer(5)]],
    threadgroup float4 *xs [[threadgroup(0)]],
    threadgroup float2 *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  Fetched<2> early;
  QMV_BEGIN(fetch(early, x, nb, tid, n);)
  (void)red;
  QMV_OLD(h)
  stage_plain(xs, sums, nb, early, x, tid, n);
  QMV_END
  h[out] = old + product;
}

// v / rms(v of the head) * gain * silu(z), quads lanes having a head.
inline float4 gated_norm(float4 v, float4 z, float4 gain, uint quads, float eps) {
  float square = dot(v, v);
  for (uint d = 1; d < quads; d <<= 1) square += simd_shuffle_xor(square, (ushort)d);
  const float inv = metal::rsqrt(square / (float)(quads * 4u) + eps);
  return v * (gain * inv) * float4(silu(z.x), silu(z.y), silu(z.z), silu(z.w));
}
// h += W x, x = o / rms(o of the head) * gain * silu(z), gain [4*quads].
//@early
//@threads 512
kernel void qmv4_delta_out_add(
    device const uint *w [[buffer(0)]],
    device const bfloat *s [[buffer(1)]],
    device const bfloat *b [[buffer(2)]],
    device const float *o [[buffer(3)]],
    device const float *z [[buffer(4)]],
    device const float *gain [[buffer(5)]],
    device float *h [[buffer(6)]],
    constant QmvArgs &args [[buffer(7)]],
    threadgroup float4 *xs [[threadgroup(0)]],
    threadgroup float2 *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  Fetched<2> first, gate;
  QMV_BEGIN(fetch(first, o, nb, tid, n); fetch(gate, z, nb, tid, n);)
  (void)red;
  QMV_OLD(h)
  const float4 own_gain = ((device const float4 *)gain)[tid & (args.quads - 1u)]; // n is a multiple of quads
#pragma unroll
  for (uint i = 0; i < 2u; i++)
    if (i * n < nb * 8u) stage(xs, sums, nb, i * n + tid, gated_norm(first.x[i], gate.x[i], own_gain, args.quads, args.eps));
  for (uint base = 2u * n; base < nb * 8u; base += n) {
    const uint i = base + tid;
    float4 v = float4(0.0f), g = float4(0.0f);
    if (i < nb * 8u) {
      v = ((device const float4 *)o)[i];
      g = ((device const float4 *)z)[i];
    }
    stage(xs, sums, nb, i, gated_norm(v, g, own_gain, args.quads, args.eps));
  }
  QMV_END
  h[out] = old + product;
}

struct Qmv8Args {
  uint rows, cols;
};
// y = W x, W of 8 bits, a row to a simdgroup. Grid ceil(rows/n) x 32*n threads;
// threadgroup memory as above.
//@early
//@threads 128
kernel void qmv8_f32(
    device const uint *w [[buffer(0)]],
    device const bfloat *s [[buffer(1)]],
    device const bfloat *b [[buffer(2)]],
    device const float *x [[buffer(3)]],
    device float *to [[buffer(4)]],
    constant Qmv8Args &args [[buffer(5)]],
    threadgroup float4 *xs [[threadgroup(0)]],
    threadgroup float2 *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const Quant q = quant(w, s, b);
  const uint nb = args.cols / 32u, row = metal::min(tg * nsg + sg, args.rows - 1u);
  Octet t[4];
  Fetched<4> early;
  if (!INPUTS_LATE) fetch(early, x, nb, tid, nsg * 32u);
  octets_load(t, q, row, nb, lane);
  inputs_ready();
  if (INPUTS_LATE) fetch(early, x, nb, tid, nsg * 32u);
  stage_plain(xs, sums, nb, early, x, tid, nsg * 32u);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float y = octets_dot(t, q, row, nb, lane, xs);
  if (lane == 0u && tg * nsg + sg < args.rows) to[row] = y;
}

struct WordsArgs {
  uint n;
};
// to = from, n words. Grid ceil(n/1024) x 256 threads.
kernel void copy_words(
    device const uint *from [[buffer(0)]],
    device uint *to [[buffer(1)]],
    constant WordsArgs &args [[buffer(2)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]]) {
  for (uint k = 0; k < 4u; k++) {
    const uint i = tg * 1024u + k * 256u + tid;
    if (i < args.n) to[i] = from[i];
  }
}
// to = 0, n words. Grid ceil(n/1024) x 256 threads.
kernel void zero_words(
    device uint *to [[buffer(0)]],
    constant WordsArgs &args [[buffer(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]]) {
  for (uint k = 0; k < 4u; k++) {
    const uint i = tg * 1024u + k * 256u + tid;
    if (i < args.n) to[i] = 0u;
  }
}
