//@use step act attend
// Attention of one token over the cache, in parts that the combining kernel
// merges.

// The running softmax of G heads, and what of the weighted sum a lane has: 8
// dimensions of each head.
template <int G>
struct Softmax {
  float top[G];
  float sum[G];
  float o[G][8];
};

inline void widen(thread float *f, uint4 w) {
  f[0] = bf_lo(w.x);
  f[1] = bf_hi(w.x);
  f[2] = bf_lo(w.y);
  f[3] = bf_hi(w.y);
  f[4] = bf_lo(w.z);
  f[5] = bf_hi(w.z);
  f[6] = bf_lo(w.w);
  f[7] = bf_hi(w.w);
}

// A tile of 8 positions from p0 for one simdgroup. For the scores 4 lanes share
// a position and each has every fourth 16 bytes of the key, so that little is
// left to be summed across lanes; for the values D/8 lanes share a row. Values
// are asked for once the keys are used up: Apple's GPUs have 128 registers to a
// thread.
template <int G, int D>
inline void attend_tile(
    thread Softmax<G> &a, threadgroup const float4 *q, threadgroup float *p, device const bfloat *keys,
    device const bfloat *values, uint row, uint p0, uint end, uint lane) {
  constexpr uint LANES = D / 8, ABREAST = 32 / LANES, STEPS = 8 / ABREAST;
  const uint at = p0 + lane / 4u, part = lane & 3u;
  uint4 k[D / 32];
  uint4 v[STEPS];
#pragma unroll
  for (uint c = 0; c < D / 32u; c++) {
    k[c] = uint4(0u);
    if (at < end) k[c] = ((device const uint4 *)(keys + (ulong)at * row))[c * 4u + part];
  }
  float s[G];
#pragma unroll
  for (int h = 0; h < G; h++) s[h] = 0.0f;
#pragma unroll
  for (uint c = 0; c < D / 32u; c++) {
    float f[8];
    widen(f, k[c]);
#pragma unroll
    for (int h = 0; h < G; h++) {
      const float4 qa = q[((uint)h * D / 8u + c * 4u + part) * 2u], qb = q[((uint)h * D / 8u + c * 4u + part) * 2u + 1u];
      s[h] = qa.x * f[0] + s[h];
      s[h] = qa.y * f[1] + s[h];
      s[h] = qa.z * f[2] + s[h];
      s[h] = qa.w * f[3] + s[h];
      s[h] = qb.x * f[4] + s[h];
      s[h] = qb.y * f[5] + s[h];
      s[h] = qb.z * f[6] + s[h];
      s[h] = qb.w * f[7] + s[h];
    }
  }
#pragma unroll
  for (uint i = 0; i < STEPS; i++) {
    const uint r = p0 + i * ABREAST + lane / LANES;
    v[i] = uint4(0u);
    if (r < end) v[i] = ((device const uint4 *)(values + (ulong)r * row))[lane % LANES];
  }
#pragma unroll
  for (int h = 0; h < G; h++) {
    s[h] += simd_shuffle_xor(s[h], (ushort)1);
    s[h] += simd_shuffle_xor(s[h], (ushort)2);
    if (at >= end) s[h] = as_type<float>(0xff800000u);
    float top = s[h];
    top = metal::max(top, simd_shuffle_xor(top, (ushort)4));
    top = metal::max(top, simd_shuffle_xor(top, (ushort)8));
    top = metal::max(top, simd_shuffle_xor(top, (ushort)16));
    if (top > a.top[h]) {
      const float shrink = metal::exp2(a.top[h] - top);
      a.top[h] = top;
      a.sum[h] *= shrink;
#pragma unroll
      for (int i = 0; i < 8; i++) a.o[h][i] *= shrink;
    }
    s[h] = metal::exp2(s[h] - a.top[h]);
    a.sum[h] += s[h]; // of this lane's positions; four lanes count each
    if (part == (uint)h % 4u) p[(lane / 4u) * G + (uint)h] = s[h];
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (uint i = 0; i < STEPS; i++) {
    float f[8];
    widen(f, v[i]);
#pragma unroll
    for (int h = 0; h < G; h++) {
      const float w = p[(i * ABREAST + lane / LANES) * G + (uint)h];
#pragma unroll
      for (int j = 0; j < 8; j++) a.o[h][j] = w * f[j] + a.o[h][j];
    }
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
}

// Merges the simdgroups' softmaxes, those of simdgroups sg, sg+SETS, ... , and
// writes the part's sums and (top, sum). o has room for a row of each of the 8
// simdgroups.
template <int G, int D, int SETS>
inline void attend_merge(
    thread Softmax<G> &a, threadgroup float *o, threadgroup float2 *stats, device float *out, device float2 *out_stats,
    uint splits, uint tid, uint sg, uint lane) {
  constexpr uint LANES = D / 8;
  const uint set = sg % SETS;
#pragma unroll
  for (int h = 0; h < G; h++) {
    // Each position was counted by its 4 lanes.
    const float sum = simd_sum(a.sum[h]) * 0.25f;
    if (lane == 0u) stats[sg * G + (uint)h] = float2(a.top[h], sum);
#pragma unroll
    for (int j = 0; j < 8; j++)
      for (uint d = LANES; d < 32u; d <<= 1) a.o[h][j] += simd_shuffle_xor(a.o[h][j], (ushort)d);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (int h = 0; h < G; h++) {
    float top = as_type<float>(0xff800000u);
    for (uint i = set; i < 8u; i += SETS) top = metal::max(top, stats[i * G + (uint)h].x);
    const float by = stats[sg * G + (uint)h].y > 0.0f ? metal::exp2(a.top[h] - top) : 0.0f;
    if (lane < LANES) {
#pragma unroll
      for (int j = 0; j < 8; j++) o[sg * D + (uint)j * LANES + lane] = a.o[h][j] * by;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = tid; i < SETS * D; i += 256u) {
      const uint of = i / D, d = i % D;
      float sum = 0.0f;
      for (uint k = of; k < 8u; k += SETS) sum += o[k * D + (d % 8u) * LANES + d / 8u];
      out[(of * G + (uint)h) * splits * D + d] = sum;
    }
    if (sg < SETS && lane == 0u) {
      float sum = 0.0f;
      for (uint i = sg; i < 8u; i += SETS)
        if (stats[i * G + (uint)h].y > 0.0f) sum += stats[i * G + (uint)h].y * metal::exp2(stats[i * G + (uint)h].x - top);
      out_stats[(sg * G + (uint)h) * splits] = float2(top, sum);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

// proj [heads*(q D | gate D) | k kv_heads*D | v kv_heads*D] of the token at
// step.pos; K and V [position][kv head][D] bfloat; rope [rotary/2] (cos, sin);
// out [heads][splits][D], not divided by the sums; stats [heads][splits] (top,
// sum), top in the logarithm to base 2, (-inf, 0) where the part is empty: out
// is not written there. The part that has the position of the step appends
// its key and value. Grid (splits, kv_heads) x 256 threads; G is
// heads/kv_heads. A simdgroup has H heads; where that is half of them, two
// simdgroups read the same keys and values, the second from the cache.
//@for G,H,D in 8,4,256 2,2,64 8,4,64
//@threads 256
kernel void attend_split_g@G@_d@D@(
    device const float *proj [[buffer(0)]],
    device const bfloat *q_gain [[buffer(1)]],
    device const bfloat *k_gain [[buffer(2)]],
    device const float2 *rope [[buffer(3)]],
    device const Step *step [[buffer(4)]],
    device bfloat *K [[buffer(5)]],
    device bfloat *V [[buffer(6)]],
    device float *out [[buffer(7)]],
    device float2 *stats [[buffer(8)]],
    constant AttendArgs &args [[buffer(9)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float4, q, [@G@ * @D@ / 4]);
  TG_ARRAY(float, o, [8 * @D@]);
  TG_ARRAY(float, p, [8 * 8 * @H@]);
  TG_ARRAY(float2, tops, [8 * @H@]);
  const uint pos = step[0].pos, row = args.kv_heads * @D@, split = tg.x, kv = tg.y;
  const uint each = part_length(pos, args.splits), begin = split * each;
  const uint end = metal::min(begin + each, pos + 1u), head = kv * @G@;
  device float *my_out = out + ((ulong)head * args.splits + split) * @D@;
  device float2 *my_stats = stats + head * args.splits + split;
  if (begin > pos) {
    if (tid < @G@) my_stats[tid * args.splits] = float2(as_type<float>(0xff800000u), 0.0f);
    return;
  }
  for (uint h = sg; h < @G@; h += 8u)
    norm_turn<@D@>((threadgroup float *)q + h * @D@, proj + (head + h) * 2u * @D@, q_gain, rope, args.rotary, args.eps, args.scale, lane);
  if (end == pos + 1u) {
    device const float *k_new = proj + args.heads * 2u * @D@ + kv * @D@;
    const ulong at = (ulong)pos * row + kv * @D@;
    if (sg == 0u) {
      norm_turn<@D@>(o, k_new, k_gain, rope, args.rotary, args.eps, 1.0f, lane);
      for (uint d = lane; d < @D@; d += 32u) K[at + d] = bfloat(o[d]);
    } else if (sg == 1u) {
      for (uint d = lane; d < @D@; d += 32u) V[at + d] = bfloat(k_new[row + d]);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  Softmax<@H@> a;
#pragma unroll
  for (int h = 0; h < @H@; h++) {
    a.top[h] = as_type<float>(0xff800000u);
    a.sum[h] = 0.0f;
#pragma unroll
    for (int j = 0; j < 8; j++) a.o[h][j] = 0.0f;
  }
  constexpr uint sets = @G@ / @H@;
  threadgroup const float4 *my_q = q + sg % sets * (@H@ * @D@ / 4);
  for (uint p0 = begin + sg / sets * 8u; p0 < end; p0 += 64u / sets)
    attend_tile<@H@, @D@>(a, my_q, p + sg * 8u * @H@, K + kv * @D@, V + kv * @D@, row, p0, end, lane);
  attend_merge<@H@, @D@, @G@ / @H@>(a, o, tops, my_out, my_stats, args.splits, tid, sg, lane);
}
//@end

struct CombineArgs {
  uint dim, splits;
};
// x[head][d] = sum over splits of 2^(top-TOP) out / sum of 2^(top-TOP) sum, times
// sigmoid(gate), the gate of proj. A threadgroup has 32 dimensions of a head,
// its simdgroups every eighth split. Grid (dim/32, heads) x 256 threads;
// threadgroup(0) 4*splits bytes.
//@threads 256
kernel void attend_combine(
    device const float *parts [[buffer(0)]],
    device const float2 *stats [[buffer(1)]],
    device const float *proj [[buffer(2)]],
    device float *x [[buffer(3)]],
    constant CombineArgs &args [[buffer(4)]],
    threadgroup float *by [[threadgroup(0)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, acc, [256]);
  const uint head = tg.y, d = tg.x * 32u + lane;
  device const float2 *mine = stats + head * args.splits;
  device const float *part = parts + (ulong)head * args.splits * args.dim + d;
  float v[8]; // all asked for before the first is used, with the gate and the statistics
#pragma unroll
  for (uint k = 0; k < 8u; k++) v[k] = part[metal::min(sg + 8u * k, args.splits - 1u) * args.dim];
  const float gate = proj[(head * 2u + 1u) * args.dim + d];
  // Each simdgroup finds the greatest and the sum for itself.
  float top = as_type<float>(0xff800000u);
  for (uint i = lane; i < args.splits; i += 32u) top = metal::max(top, mine[i].x);
  top = simd_max(top);
  float sum = 0.0f;
  for (uint i = lane; i < args.splits; i += 32u) {
    const float2 s = mine[i];
    const float w = s.y > 0.0f ? metal::exp2(s.x - top) : 0.0f;
    sum += w * s.y;
    if (i % 8u == sg) by[i] = w;
  }
  sum = simd_sum(sum);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  float o = 0.0f;
  for (uint base = sg; base < args.splits; base += 64u) {
    if (base > sg) {
#pragma unroll
      for (uint k = 0; k < 8u; k++) v[k] = part[metal::min(base + 8u * k, args.splits - 1u) * args.dim];
    }
#pragma unroll
    for (uint k = 0; k < 8u; k++) {
      const uint i = base + 8u * k;
      const float w = i < args.splits ? by[metal::min(i, args.splits - 1u)] : 0.0f;
      o += w > 0.0f ? w * v[k] : 0.0f; // what nobody wrote may be anything
    }
  }
  acc[sg * 32u + lane] = o;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sg != 0u) return;
  o = 0.0f;
  for (uint i = 0; i < 8u; i++) o += acc[i * 32u + lane];
  x[head * args.dim + d] = o / sum * sigmoid(gate);
}
