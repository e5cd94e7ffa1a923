//@use mixer
// Softmax attention of grouped heads over the rows of a prefill step: their
// queries against the keys and values of all positions up to their own, which
// are in the cache, those of the step too.
//
// The cache is bfloat [position][kv head][dim], keys and values apart. Its
// length in positions is a multiple of 64, and all of it holds finite numbers:
// a tile of keys may reach past the last position, where the weights are zero.
// q is bfloat [kv head][padded][group][dim], padded = rows rounded up to 128:
// the heads that share keys lie together, so that each tile of rows reads the
// cache once for all of them.
struct AttendArgs {
  uint rows;       // that the launch is made for; step.n counts if less
  uint padded;     // rows rounded up to 128
  uint heads;
  uint kvHeads;
  uint rotary;     // dimensions that turn
  uint strideQ;    // of the projections: query and gate, head by head; k; v
  uint strideK;
  uint strideV;
  uint strideX;    // of the result
  float eps;
};

// qk_rows: norm and rotation of q and k; k and v to their places in the cache.
// rope is float [row][rotary/2][2], cosine and sine; dimension j turns with
// j+rotary/2. One simdgroup a row and head (q heads, k heads, v heads).
// Grid: (rows, ceil((heads+2*kvHeads)/4)), threads 128.
template <typename T, uint D>
inline void qk_rows(
    device const T *q, device const T *k, device const T *v, device const bfloat *gainQ, device const bfloat *gainK,
    device const float *rope, device const Step *step, device bfloat *outQ, device bfloat *keys, device bfloat *values,
    constant AttendArgs &args, threadgroup float *mine, uint row, uint slot, uint lane) {
  if (row >= metal::min(args.rows, step->n) || slot >= args.heads + 2u * args.kvHeads) return;
  const ulong cached = ulong(step->pos + row) * args.kvHeads;
  if (slot >= args.heads + args.kvHeads) {
    const uint head = slot - args.heads - args.kvHeads;
    v += ulong(row) * args.strideV + head * D;
    values += (cached + head) * D;
    for (uint i = lane; i < D; i += 32u) values[i] = bfloat(float(v[i]));
    return;
  }
  const bool query = slot < args.heads;
  const uint head = query ? slot : slot - args.heads;
  const uint group = args.heads / args.kvHeads;
  device const T *from = query ? q + ulong(row) * args.strideQ + head * 2u * D : k + ulong(row) * args.strideK + head * D;
  device const bfloat *gain = query ? gainQ : gainK;
  device bfloat *to = query ? outQ + ((ulong(head / group) * args.padded + row) * group + head % group) * D : keys + (cached + head) * D;
  float x[D / 32u];
  float sum = 0.0f;
  for (uint i = 0; i < D / 32u; i++) {
    x[i] = float(from[i * 32u + lane]);
    sum += x[i] * x[i];
  }
  const float scale = metal::rsqrt(simd_sum(sum) / float(D) + args.eps);
  for (uint i = 0; i < D / 32u; i++) {
    x[i] = x[i] * scale * float(gain[i * 32u + lane]);
    mine[i * 32u + lane] = x[i];
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  const uint half_ = args.rotary / 2u;
  rope += ulong(row) * args.rotary;
  for (uint i = 0; i < D / 32u; i++) {
    const uint c = i * 32u + lane;
    if (c < args.rotary) {
      const uint j = c < half_ ? c : c - half_;
      const float other = mine[c < half_ ? c + half_ : c - half_];
      x[i] = x[i] * rope[2u * j] + (c < half_ ? -other : other) * rope[2u * j + 1u];
    }
    to[c] = bfloat(x[i]);
  }
}

//@for S,T,D in bf16,bfloat,64 bf16,bfloat,256 f32,float,64 f32,float,256
//@threads 128
kernel void qk_rows_@S@_d@D@(
    device const @T@ *q [[buffer(0)]],
    device const @T@ *k [[buffer(1)]],
    device const @T@ *v [[buffer(2)]],
    device const bfloat *gainQ [[buffer(3)]],
    device const bfloat *gainK [[buffer(4)]],
    device const float *rope [[buffer(5)]],
    device const Step *step [[buffer(6)]],
    device bfloat *outQ [[buffer(7)]],
    device bfloat *keys [[buffer(8)]],
    device bfloat *values [[buffer(9)]],
    constant AttendArgs &args [[buffer(10)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, all, [4 * @D@]);
  qk_rows<@T@, @D@u>(q, k, v, gainQ, gainK, rope, step, outQ, keys, values, args, all + sg * @D@u, tg.x, tg.y * 4u + sg, lane);
}
//@end

// attend_rows: x = softmax(q k' / sqrt(dim)) v * sigmoid(gate), online.
// A threadgroup has 64 rows of one kv head's queries (row = query*group + head
// of the group), a simdgroup 8 of them with all columns of their sums in its
// simdgroup matrices; keys come 32 at a time, straight from the cache. Scores
// go through 1 KiB of scratch of the simdgroup, four lanes to a row. The sums
// are rescaled, by a product with a diagonal matrix, only when a row's maximum
// has grown by more than 8 (as a power of two: float has room for that). Long
// rows come first. Grid: (rows*group/64 rounded up, kvHeads), threads 256;
// 10 KiB. Only whole threadgroups leave early, so the barriers are everyone's.
template <typename T, uint D>
inline void attend_rows(
    device const bfloat *q, device const bfloat *keys, device const bfloat *values, device const T *gate,
    device const Step *step, device bfloat *x, constant AttendArgs &args, threadgroup float *mine, uint tile, uint kv,
    uint sg, uint lane) {
  typedef simdgroup_matrix<float, 8, 8> Tile;
  typedef simdgroup_matrix<bfloat, 8, 8> Stored;
  threadgroup float *diagonal = mine + 256;
  const uint n = metal::min(args.rows, step->n);
  const uint group = args.heads / args.kvHeads;
  if (tile * 64u >= n * group) return;
  const uint first = tile * 64u + sg * 8u;
  const uint row = first + lane / 4u;
  const uint part = lane % 4u;
  const uint query = metal::min(row / group, n - 1u);
  const uint limit = step->pos + query;  // the last position that the row sees
  // Rows behind the last are of any contents, NaN too: they must not get into
  // the products with the diagonal matrix, which meet whole tiles.
  const bool counts = row < n * group;
  const uint end = step->pos + metal::min((tile * 64u + 63u) / group, n - 1u) + 1u;
  const float scale = metal::rsqrt(float(D)) * 1.44269504f;
  const uint stride = args.kvHeads * D;
  q += (ulong(kv) * args.padded * group + first) * D;
  keys += kv * D;
  values += kv * D;
  Tile o[D / 8u];
  Tile zero = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
#pragma unroll
  for (uint c = 0; c < D / 8u; c++) o[c] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  diagonal[lane] = 0.0f;
  diagonal[lane + 32u] = 0.0f;
  float top = -1e30f, sum = 0.0f;

  for (uint at = 0; at < end; at += 32u) {
    Tile s[4];
#pragma unroll
    for (uint j = 0; j < 4u; j++) s[j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint c = 0; c < D; c += 8u) {
      Stored a;
      simdgroup_load(a, q + c, D);
#pragma unroll
      for (uint j = 0; j < 4u; j++) {
        Stored b;
        simdgroup_load(b, keys + ulong(at + j * 8u) * stride + c, stride, ulong2(0, 0), true);
        simdgroup_multiply_accumulate(s[j], a, b, s[j]);
      }
    }
#pragma unroll
    for (uint j = 0; j < 4u; j++) simdgroup_store(s[j], mine + j * 8u, 32);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup float *mark = mine + (lane / 4u) * 32u + part;
    float v[8];
    float most = -1e30f;
    for (uint i = 0; i < 8u; i++) {
      v[i] = counts && at + part + 4u * i <= limit ? mark[4u * i] * scale : -1e30f;
      most = metal::max(most, v[i]);
    }
    most = metal::max(most, simd_shuffle_xor(most, 1));
    most = metal::max(most, simd_shuffle_xor(most, 2));
    float keep = 1.0f;
    if (most > top + 8.0f) {
      keep = metal::exp2(top - most);
      top = most;
    }
    sum *= keep;
    for (uint i = 0; i < 8u; i++) {
      const float p = metal::exp2(v[i] - top);
      sum += p;
      mark[4u * i] = p;
    }
    if (part == 0u) diagonal[(lane / 4u) * 9u] = keep;
    const bool rescale = simd_max(keep == 1.0f ? 0u : 1u) != 0u && at != 0u;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (rescale) {
      Tile d;
      simdgroup_load(d, diagonal, 8);
#pragma unroll
      for (uint c = 0; c < D / 8u; c++) simdgroup_multiply_accumulate(o[c], d, o[c], zero);
    }
    for (uint j = 0; j < 4u; j++) {
      Tile a;
      simdgroup_load(a, mine + j * 8u, 32);
#pragma unroll
      for (uint c = 0; c < D / 8u; c++) {
        Stored b;
        simdgroup_load(b, values + ulong(at + j * 8u) * stride + c * 8u, stride);
        simdgroup_multiply_accumulate(o[c], a, b, o[c]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the scratch is free again
  }
  sum += simd_shuffle_xor(sum, 1);
  sum += simd_shuffle_xor(sum, 2);
  const uint head = kv * group + row % group;
  gate += ulong(query) * args.strideQ + head * 2u * D + D;
  x += ulong(query) * args.strideX + head * D;
#pragma unroll
  for (uint c = 0; c < D / 8u; c += 4u) {
    for (uint j = 0; j < 4u; j++) simdgroup_store(o[c + j], mine + j * 8u, 32);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (row < n * group) {
      for (uint i = part * 8u; i < part * 8u + 8u; i++)
        x[c * 8u + i] = bfloat(mine[(lane / 4u) * 32u + i] / sum * mixer_sigmoid(float(gate[c * 8u + i])));
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

//@for S,T,D in bf16,bfloat,64 bf16,bfloat,256 f32,float,64 f32,float,256
//@threads 256
kernel void attend_rows_@S@_d@D@(
    device const bfloat *q [[buffer(0)]],
    device const bfloat *keys [[buffer(1)]],
    device const bfloat *values [[buffer(2)]],
    device const @T@ *gate [[buffer(3)]],
    device const Step *step [[buffer(4)]],
    device bfloat *x [[buffer(5)]],
    constant AttendArgs &args [[buffer(6)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint3 tgs [[threadgroups_per_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, all, [8 * 320]);
  attend_rows<@T@, @D@u>(q, keys, values, gate, step, x, args, all + sg * 320u, tgs.x - 1u - tg.x, tg.y, sg, lane);
}
//@end
