//@use mixer frag
// attend_rows_mma: attend_rows of attention_prefill.metal (the formula, the
// layouts and the promises are there) on NVIDIA's matrix units.
//
// A threadgroup has 128 rows of one kv head's queries, a simdgroup 16 of them
// with all columns of their sums in registers; keys and values come BK at a
// time, the next tiles while these are worked on; scores and weights never
// leave registers, the weights becoming bfloat. Only tiles with a key that some
// row of the simdgroup does not see are masked. q stays in threadgroup memory.
// Grid: (kvHeads, rows*group/128 rounded up), longest rows first; threads 256.
// threadgroup(0): (128 + 4 BK) dim bfloats: 192 KiB at dim 256 with BK 64,
// 32 KiB at dim 64 with BK 32.
struct AttendArgs {
  uint rows, padded, heads, kvHeads, rotary;
  uint strideQ, strideK, strideV, strideX;
  float eps;
};

// A tile of N rows of D numbers.
template <uint N, uint D>
inline void attend_fetch(threadgroup bfloat *to, device const bfloat *from, uint stride, uint tid) {
  constexpr uint ROWS = 256u / (D / 8u);  // at a time: a multiple of 8, so that the swizzle is always the same
  const uint r = tid / (D / 8u), c = tid % (D / 8u);
  const uint at = frag_swizzle(r, c, D);
  from += r * stride + c * 8u;
#pragma unroll
  for (uint i = 0; i < N / ROWS; i++) {
    frag_copy(to, at + i * ROWS * D, from);
    from += ROWS * stride;
  }
}

// The scores of 16 rows against BK keys.
template <uint D, uint BK>
inline void attend_scores(thread float (*s)[4], FragMemory q, FragMemory k, uint lane) {
  const uint r = lane & 7u, m = lane >> 3;
#pragma unroll
  for (uint j = 0; j < BK / 8u; j++) s[j][0] = s[j][1] = s[j][2] = s[j][3] = 0.0f;
#pragma unroll
  for (uint c = 0; c < D / 8u; c += 2u) {
    uint a[4];
    frag_load(a, q, frag_swizzle(r + (m & 1u) * 8u, c + (m >> 1), D), lane);
#pragma unroll
    for (uint j = 0; j < BK / 8u; j += 2u) {
      uint b[4];
      frag_load(b, k, frag_swizzle(j * 8u + r + (m >> 1) * 8u, c + (m & 1u), D), lane);
      frag_mma(s[j], a, b[0], b[1], lane);
      frag_mma(s[j + 1u], a, b[2], b[3], lane);
    }
  }
}

// o += p v, with the weights p of 16 rows and BK values.
template <uint D, uint BK>
inline void attend_blend(thread float (*o)[4], thread const float (*p)[4], FragMemory v, uint lane) {
  const uint r = lane & 7u, m = lane >> 3;
#pragma unroll
  for (uint j = 0; j < BK / 8u; j += 2u) {
    uint a[4];
    a[0] = frag_pack(p[j][0], p[j][1]);
    a[1] = frag_pack(p[j][2], p[j][3]);
    a[2] = frag_pack(p[j + 1u][0], p[j + 1u][1]);
    a[3] = frag_pack(p[j + 1u][2], p[j + 1u][3]);
#pragma unroll
    for (uint c = 0; c < D / 8u; c += 2u) {
      uint b[4];
      frag_load_t(b, v, frag_swizzle(j * 8u + r + (m & 1u) * 8u, c + (m >> 1), D), lane);
      frag_mma(o[c], a, b[0], b[1], lane);
      frag_mma(o[c + 1u], a, b[2], b[3], lane);
    }
  }
}

// A row's share of the online softmax: scores to weights, in place. i is 0 for
// row lane/4, 2 for the one 8 below. Returns what the sums so far are to be
// multiplied by.
template <uint BK>
inline float attend_weigh(thread float (*s)[4], uint i, float scale, thread float *top, thread float *sum) {
  float most = s[0][i];
#pragma unroll
  for (uint j = 0; j < BK / 8u; j++) most = metal::max(most, metal::max(s[j][i], s[j][i + 1u]));
  most = metal::max(most, simd_shuffle_xor(most, 1));
  most = metal::max(most, simd_shuffle_xor(most, 2)) * scale;
  float keep = 1.0f;
  if (most > *top + 8.0f) {
    keep = frag_exp2(*top - most);
    *top = most;
  }
  *sum *= keep;
#pragma unroll
  for (uint j = 0; j < BK / 8u; j++) {
    s[j][i] = frag_exp2(s[j][i] * scale - *top);
    s[j][i + 1u] = frag_exp2(s[j][i + 1u] * scale - *top);
    *sum += s[j][i] + s[j][i + 1u];
  }
  return keep;
}

// What a simdgroup has at the end, 32 columns at a time through its scratch
// [16][40], so that rows are written in whole pieces: x = o/sum * sigmoid(gate).
template <typename T, uint D>
inline void attend_finish(
    thread float (*o)[4], float scale0, float scale8, threadgroup float *mine, device const T *gate, device bfloat *x,
    constant AttendArgs &args, uint first, uint rows, uint kv, uint group, uint lane) {
#pragma unroll
  for (uint c = 0; c < D / 8u; c += 4u) {
    threadgroup float *to = mine + (lane / 4u) * 40u + (lane % 4u) * 2u;
#pragma unroll
    for (uint j = 0; j < 4u; j++) {
      to[j * 8u] = o[c + j][0] * scale0;
      to[j * 8u + 1u] = o[c + j][1] * scale0;
      to[320u + j * 8u] = o[c + j][2] * scale8;
      to[320u + j * 8u + 1u] = o[c + j][3] * scale8;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = lane / 8u; i < 16u; i += 4u) {
      const uint row = first + i, column = c * 8u + (lane % 8u) * 4u;
      if (row < rows) {
        const uint query = row / group, head = kv * group + row % group;
        float g[4], y[4];
        mixer_load<4u>(g, gate + ulong(query) * args.strideQ + head * 2u * D + D + column);
        for (uint j = 0; j < 4u; j++) y[j] = mine[i * 40u + (lane % 8u) * 4u + j] * mixer_sigmoid(g[j]);
        mixer_store<4u>(x + ulong(query) * args.strideX + head * D + column, y);
      }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
}

// The online softmax of a simdgroup's 16 rows over the keys of tiles from to
// stop-1: sums in o (not divided), maxima and sums of weights in top and sum,
// of row lane/4 and of the one 8 below. All simdgroups of the threadgroup take
// part.
template <uint D, uint BK>
inline void attend_walk(
    thread float (*o)[4], thread float *top, thread float *sum, device const bfloat *q, device const bfloat *keys,
    device const bfloat *values, constant AttendArgs &args, threadgroup bfloat *shared, uint from, uint stop, uint pos,
    uint n, uint first, uint tid, uint sg, uint lane) {
  const uint group = args.heads / args.kvHeads;
  const uint low = pos + metal::min(first / group, n - 1u);  // what the first row sees at last
  const uint limit0 = pos + metal::min((first + lane / 4u) / group, n - 1u);
  const uint limit8 = pos + metal::min((first + lane / 4u + 8u) / group, n - 1u);
  const float scale = metal::rsqrt(float(D)) * 1.44269504f;
  const uint stride = args.kvHeads * D;
  threadgroup bfloat *tiles = shared + 128u * D;  // keys, values; keys, values
#pragma unroll
  for (uint c = 0; c < D / 8u; c++) o[c][0] = o[c][1] = o[c][2] = o[c][3] = 0.0f;
  top[0] = top[1] = -1e28f;  // above what is masked, below all else
  sum[0] = sum[1] = 0.0f;
  if (from < stop) {
    attend_fetch<128u, D>(shared, q, D, tid);
    attend_fetch<BK, D>(tiles, keys + ulong(from * BK) * stride, stride, tid);
    attend_fetch<BK, D>(tiles + BK * D, values + ulong(from * BK) * stride, stride, tid);
    frag_commit();
  }
  for (uint i = from; i < stop; i++) {
    frag_wait<0>();
    threadgroup_barrier(mem_flags::mem_threadgroup);  // these tiles are there, and nobody reads the others
    threadgroup bfloat *k = tiles + ((i - from) % 2u) * (2u * BK * D);
    if (i + 1u < stop) {
      threadgroup bfloat *other = tiles + ((i - from + 1u) % 2u) * (2u * BK * D);
      attend_fetch<BK, D>(other, keys + ulong((i + 1u) * BK) * stride, stride, tid);
      attend_fetch<BK, D>(other + BK * D, values + ulong((i + 1u) * BK) * stride, stride, tid);
      frag_commit();
    }
    float s[BK / 8u][4];
    attend_scores<D, BK>(s, frag_memory(shared + sg * 16u * D), frag_memory(k), lane);
    if (i * BK + BK - 1u > low) {
#pragma unroll
      for (uint j = 0; j < BK / 8u; j++) {
        const uint key = i * BK + j * 8u + (lane % 4u) * 2u;
        if (key > limit0) s[j][0] = -1e30f;
        if (key + 1u > limit0) s[j][1] = -1e30f;
        if (key > limit8) s[j][2] = -1e30f;
        if (key + 1u > limit8) s[j][3] = -1e30f;
      }
    }
    const float keep0 = attend_weigh<BK>(s, 0u, scale, top, sum);
    const float keep8 = attend_weigh<BK>(s, 2u, scale, top + 1, sum + 1);
    if (frag_any(keep0 != 1.0f || keep8 != 1.0f)) {
#pragma unroll
      for (uint c = 0; c < D / 8u; c++) {
        o[c][0] *= keep0;
        o[c][1] *= keep0;
        o[c][2] *= keep8;
        o[c][3] *= keep8;
      }
    }
    attend_blend<D, BK>(o, s, frag_memory(k + BK * D), lane);
  }
#pragma unroll
  for (uint i = 0; i < 2u; i++) {
    sum[i] += simd_shuffle_xor(sum[i], 1);
    sum[i] += simd_shuffle_xor(sum[i], 2);
  }
}

template <typename T, uint D, uint BK>
inline void attend_rows_mma(
    device const bfloat *q, device const bfloat *keys, device const bfloat *values, device const T *gate,
    device const Step *step, device bfloat *x, constant AttendArgs &args, threadgroup bfloat *shared, uint tile, uint kv,
    uint tid, uint sg, uint lane) {
  const uint n = metal::min(args.rows, step->n);
  const uint group = args.heads / args.kvHeads;
  if (tile * 128u >= n * group) return;
  const uint first = tile * 128u + sg * 16u;
  const uint end = step->pos + metal::min((tile * 128u + 127u) / group, n - 1u) + 1u;
  float o[D / 8u][4], top[2], sum[2];
  attend_walk<D, BK>(
      o, top, sum, q + (ulong(kv) * args.padded * group + tile * 128u) * D, keys + kv * D, values + kv * D, args, shared, 0u,
      (end + BK - 1u) / BK, step->pos, n, first, tid, sg, lane);
  threadgroup_barrier(mem_flags::mem_threadgroup);  // all of threadgroup memory is free
  attend_finish<T, D>(
      o, 1.0f / sum[0], 1.0f / sum[1], (threadgroup float *)shared + sg * 640u, gate, x, args, first, n * group, kv, group, lane);
}

//@for S,T,D,BK in bf16,bfloat,64,32 bf16,bfloat,256,64 f32,float,64,32 f32,float,256,64
//@threads 256
kernel void attend_rows_mma_@S@_d@D@(
    device const bfloat *q [[buffer(0)]],
    device const bfloat *keys [[buffer(1)]],
    device const bfloat *values [[buffer(2)]],
    device const @T@ *gate [[buffer(3)]],
    device const Step *step [[buffer(4)]],
    device bfloat *x [[buffer(5)]],
    constant AttendArgs &args [[buffer(6)]],
    threadgroup bfloat *shared [[threadgroup(0)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint3 tgs [[threadgroups_per_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  attend_rows_mma<@T@, @D@u, @BK@u>(q, keys, values, gate, step, x, args, shared, tgs.y - 1u - tg.y, tg.x, tid, sg, lane);
}
//@end

// attend_part_mma: attend_rows_mma for few rows and many keys: the tiles of
// keys are cut into equal parts, one to a threadgroup. Sums and statistics as
// attend_part leaves them, for attend_merge. Grid: (kvHeads, tiles of 128 rows,
// parts), threads 256; threadgroup(0) as above.
template <uint D, uint BK>
inline void attend_part_mma(
    device const bfloat *q, device const bfloat *keys, device const bfloat *values, device const Step *step,
    device float *sums, device float2 *stats, constant AttendArgs &args, threadgroup bfloat *shared, uint3 tg, uint3 tgs,
    uint tid, uint sg, uint lane) {
  const uint n = metal::min(args.rows, step->n);
  const uint group = args.heads / args.kvHeads;
  const uint kv = tg.x, tile = tg.y;
  if (tile * 128u >= n * group) return;
  const uint first = tile * 128u + sg * 16u;
  const uint end = step->pos + metal::min((tile * 128u + 127u) / group, n - 1u) + 1u;
  const uint all = (end + BK - 1u) / BK;
  float o[D / 8u][4], top[2], sum[2];
  attend_walk<D, BK>(
      o, top, sum, q + (ulong(kv) * args.padded * group + tile * 128u) * D, keys + kv * D, values + kv * D, args, shared,
      all * tg.z / tgs.z, all * (tg.z + 1u) / tgs.z, step->pos, n, first, tid, sg, lane);
  const ulong row = (ulong(tg.z) * args.kvHeads + kv) * (tgs.y * 128u) + first + lane / 4u;
  if (lane % 4u == 0u) {
    stats[row] = float2(top[0], sum[0]);
    stats[row + 8u] = float2(top[1], sum[1]);
  }
  sums += row * D + (lane % 4u) * 2u;
#pragma unroll
  for (uint c = 0; c < D / 8u; c++) {
    *(device float2 *)(sums + c * 8u) = float2(o[c][0], o[c][1]);
    *(device float2 *)(sums + 8u * D + c * 8u) = float2(o[c][2], o[c][3]);
  }
}

//@for D,BK in 64,32 256,64
//@threads 256
kernel void attend_part_mma_d@D@(
    device const bfloat *q [[buffer(0)]],
    device const bfloat *keys [[buffer(1)]],
    device const bfloat *values [[buffer(2)]],
    device const Step *step [[buffer(3)]],
    device float *sums [[buffer(4)]],
    device float2 *stats [[buffer(5)]],
    constant AttendArgs &args [[buffer(6)]],
    threadgroup bfloat *shared [[threadgroup(0)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint3 tgs [[threadgroups_per_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  attend_part_mma<@D@u, @BK@u>(q, keys, values, step, sums, stats, args, shared, tg, tgs, tid, sg, lane);
}
//@end
