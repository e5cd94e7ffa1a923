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
// j+rotary/2. One simdgroup a row and head (q heads, k heads, v heads). Rows of
// q that fill up the last tile are zeros: a NaN among them would come into its
// neighbours by the products with a diagonal matrix in attend_rows.
// Grid: (rows of q in whole tiles, ceil((heads+2*kvHeads)/4)), threads 128.
template <typename T, uint D>
inline void qk_rows(
    device const T *q, device const T *k, device const T *v, device const bfloat *gainQ, device const bfloat *gainK,
    device const float *rope, device const Step *step, device bfloat *outQ, device bfloat *keys, device bfloat *values,
    constant AttendArgs &args, threadgroup float *mine, uint row, uint slot, uint lane) {
  const bool query = slot < args.heads;
  const uint group = args.heads / args.kvHeads;
  if (slot >= args.heads + 2u * args.kvHeads) return;
  if (row >= metal::min(args.rows, step->n)) {
    if (query && row < args.padded) {
      outQ += ((ulong(slot / group) * args.padded + row) * group + slot % group) * D;
      for (uint i = lane; i < D; i += 32u) outQ[i] = bfloat(0.0f);
    }
    return;
  }
  const ulong cached = ulong(step->pos + row) * args.kvHeads;
  if (slot >= args.heads + args.kvHeads) {
    const uint head = slot - args.heads - args.kvHeads;
    v += ulong(row) * args.strideV + head * D;
    values += (cached + head) * D;
    for (uint i = lane; i < D; i += 32u) values[i] = bfloat(float(v[i]));
    return;
  }
  const uint head = query ? slot : slot - args.heads;
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
template <uint D>
struct AttendSums {
  simdgroup_matrix<float, 8, 8> o[D / 8u];
};

// How many positions a row sees. Rows behind the last see none: their queries
// are of any contents, and a score that is no number would get into the rows
// beside it by the product with the diagonal matrix.
inline uint attend_seen(uint row, uint rows, uint position) { return row < rows ? position + 1u : 0u; }

// The online softmax of a simdgroup's 8 rows over the keys of tiles from to
// stop-1, as far as the row sees them. The lane's row is first+lane/4; its share of the sum of the weights is
// sum, their maximum top. All simdgroups of the threadgroup take part.
template <uint D>
inline void attend_walk(
    thread AttendSums<D> &out, thread float &top, thread float &sum, device const bfloat *q, device const bfloat *keys,
    device const bfloat *values, constant AttendArgs &args, threadgroup float *mine, uint from, uint stop, uint seen,
    uint lane) {
  typedef simdgroup_matrix<float, 8, 8> Tile;
  typedef simdgroup_matrix<bfloat, 8, 8> Stored;
  threadgroup float *diagonal = mine + 256;
  threadgroup float *mark = mine + (lane / 4u) * 32u + lane % 4u;
  const float scale = metal::rsqrt(float(D)) * 1.44269504f;
  const uint stride = args.kvHeads * D;
  Tile zero = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
#pragma unroll
  for (uint c = 0; c < D / 8u; c++) out.o[c] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  diagonal[lane] = 0.0f;
  diagonal[lane + 32u] = 0.0f;
  top = -1e28f;  // above what is masked, below all else
  sum = 0.0f;
  for (uint at = from * 32u; at < stop * 32u; at += 32u) {
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
    float v[8];
    float most = -1e30f;
    for (uint i = 0; i < 8u; i++) {
      v[i] = at + lane % 4u + 4u * i < seen ? mark[4u * i] * scale : -1e30f;
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
    if (lane % 4u == 0u) diagonal[(lane / 4u) * 9u] = keep;
    const bool rescale = simd_max(keep == 1.0f ? 0u : 1u) != 0u;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (rescale) {
      Tile d;
      simdgroup_load(d, diagonal, 8);
#pragma unroll
      for (uint c = 0; c < D / 8u; c++) simdgroup_multiply_accumulate(out.o[c], d, out.o[c], zero);
    }
    for (uint j = 0; j < 4u; j++) {
      Tile a;
      simdgroup_load(a, mine + j * 8u, 32);
#pragma unroll
      for (uint c = 0; c < D / 8u; c++) {
        Stored b;
        simdgroup_load(b, values + ulong(at + j * 8u) * stride + c * 8u, stride);
        simdgroup_multiply_accumulate(out.o[c], a, b, out.o[c]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the scratch is free again
  }
  sum += simd_shuffle_xor(sum, 1);
  sum += simd_shuffle_xor(sum, 2);
}

template <typename T, uint D>
inline void attend_rows(
    device const bfloat *q, device const bfloat *keys, device const bfloat *values, device const T *gate,
    device const Step *step, device bfloat *x, constant AttendArgs &args, threadgroup float *mine, uint tile, uint kv,
    uint sg, uint lane) {
  const uint n = metal::min(args.rows, step->n);
  const uint group = args.heads / args.kvHeads;
  if (tile * 64u >= n * group) return;
  const uint first = tile * 64u + sg * 8u;
  const uint row = first + lane / 4u;
  const uint query = metal::min(row / group, n - 1u);
  const uint end = step->pos + metal::min((tile * 64u + 63u) / group, n - 1u) + 1u;
  AttendSums<D> a;
  float top, sum;
  attend_walk<D>(
      a, top, sum, q + (ulong(kv) * args.padded * group + first) * D, keys + kv * D, values + kv * D, args, mine, 0u,
      (end + 31u) / 32u, attend_seen(row, n * group, step->pos + query), lane);
  const uint head = kv * group + row % group;
  gate += ulong(query) * args.strideQ + head * 2u * D + D;
  x += ulong(query) * args.strideX + head * D;
#pragma unroll
  for (uint c = 0; c < D / 8u; c += 4u) {
    for (uint j = 0; j < 4u; j++) simdgroup_store(a.o[c + j], mine + j * 8u, 32);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (row < n * group) {
      for (uint i = lane % 4u * 8u; i < lane % 4u * 8u + 8u; i++)
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

// attend_part: attend_rows for few rows and many keys: the tiles of keys are
// cut into equal parts, one to a threadgroup, so that there are enough of them.
// What each finds (sums not divided, maximum and sum of the weights) goes to
// sums [part][kv head][tiles*64][dim] and stats [part][kv head][tiles*64];
// a part without keys that a row sees has weight zero. Grid: (kvHeads, tiles of
// 64 rows, parts), threads 256; 10 KiB.
template <uint D>
inline void attend_part(
    device const bfloat *q, device const bfloat *keys, device const bfloat *values, device const Step *step,
    device float *sums, device float2 *stats, constant AttendArgs &args, threadgroup float *mine, uint3 tg, uint3 tgs,
    uint sg, uint lane) {
  const uint n = metal::min(args.rows, step->n);
  const uint group = args.heads / args.kvHeads;
  const uint kv = tg.x, tile = tg.y;
  if (tile * 64u >= n * group) return;
  const uint first = tile * 64u + sg * 8u;
  const uint query = metal::min((first + lane / 4u) / group, n - 1u);
  const uint end = step->pos + metal::min((tile * 64u + 63u) / group, n - 1u) + 1u;
  const uint all = (end + 31u) / 32u;
  AttendSums<D> a;
  float top, sum;
  attend_walk<D>(
      a, top, sum, q + (ulong(kv) * args.padded * group + first) * D, keys + kv * D, values + kv * D, args, mine,
      all * tg.z / tgs.z, all * (tg.z + 1u) / tgs.z, attend_seen(first + lane / 4u, n * group, step->pos + query), lane);
  const ulong row = (ulong(tg.z) * args.kvHeads + kv) * (tgs.y * 64u) + first;
  if (lane % 4u == 0u) stats[row + lane / 4u] = float2(top, sum);
#pragma unroll
  for (uint c = 0; c < D / 8u; c++) simdgroup_store(a.o[c], sums + row * D + c * 8u, D);
}

//@for D in 64 256
//@threads 256 1
kernel void attend_part_d@D@(
    device const bfloat *q [[buffer(0)]],
    device const bfloat *keys [[buffer(1)]],
    device const bfloat *values [[buffer(2)]],
    device const Step *step [[buffer(3)]],
    device float *sums [[buffer(4)]],
    device float2 *stats [[buffer(5)]],
    constant AttendArgs &args [[buffer(6)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint3 tgs [[threadgroups_per_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, all, [8 * 320]);
  attend_part<@D@u>(q, keys, values, step, sums, stats, args, all + sg * 320u, tg, tgs, sg, lane);
}
//@end

// attend_merge: x of the parts, * sigmoid(gate). One simdgroup a row and head.
// Grid: (rows, ceil(heads/4)), threads 128.
struct AttendMergeArgs {
  uint rows, heads, kvHeads;
  uint parts;
  uint partRows;  // of a kv head in a part: whole tiles
  uint strideQ, strideX;
};

template <typename T, uint D>
inline void attend_merge(
    device const float *sums, device const float2 *stats, device const T *gate, device const Step *step, device bfloat *x,
    constant AttendMergeArgs &args, uint query, uint head, uint lane) {
  if (query >= metal::min(args.rows, step->n) || head >= args.heads) return;
  const uint group = args.heads / args.kvHeads;
  const uint row = head / group * args.partRows + query * group + head % group;
  const uint stride = args.kvHeads * args.partRows;
  float top = -1e30f, sum = 0.0f;
  for (uint i = lane; i < args.parts; i += 32u) top = metal::max(top, stats[row + i * stride].x);
  top = simd_max(top);
  float o[D / 32u];
  for (uint c = 0; c < D / 32u; c++) o[c] = 0.0f;
  for (uint i = 0; i < args.parts; i++) {
    const float2 s = stats[row + i * stride];
    if (s.y == 0.0f) continue;
    const float weight = metal::exp2(s.x - top);
    sum += weight * s.y;
    device const float *from = sums + (ulong(i) * stride + row) * D + lane;
    for (uint c = 0; c < D / 32u; c++) o[c] += weight * from[c * 32u];
  }
  gate += ulong(query) * args.strideQ + head * 2u * D + D + lane;
  x += ulong(query) * args.strideX + head * D + lane;
  for (uint c = 0; c < D / 32u; c++) x[c * 32u] = bfloat(o[c] / sum * mixer_sigmoid(float(gate[c * 32u])));
}

//@for S,T,D in bf16,bfloat,64 bf16,bfloat,256 f32,float,64 f32,float,256
//@threads 128
kernel void attend_merge_@S@_d@D@(
    device const float *sums [[buffer(0)]],
    device const float2 *stats [[buffer(1)]],
    device const @T@ *gate [[buffer(2)]],
    device const Step *step [[buffer(3)]],
    device bfloat *x [[buffer(4)]],
    constant AttendMergeArgs &args [[buffer(5)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  attend_merge<@T@, @D@u>(sums, stats, gate, step, x, args, tg.x, tg.y * 4u + sg, lane);
}
//@end
