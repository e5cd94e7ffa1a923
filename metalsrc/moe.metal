// Experts for many rows, around the products of gemm.metal: which rows go to
// which expert, and the sum of what comes back. A choice is number row * k + i:
// the i-th expert of a row. Everything is sized by the host's upper bound, so no
// count has to come back to it.
//
// The order, for m rows, E experts, k choices each: topk_rows, moe_count,
// moe_place, moe_gate_up_rows_*, moe_down_rows_*, moe_combine_rows.

struct TopkArgs {
  uint m, experts, k;  // experts <= 1024, k <= 32
};
// pick[m][k], weight[m][k]: the k greatest logits of each row, greatest first, the
// lower number first among equals, and a softmax over them.
// Grid: ceil(m / 8) threadgroups of 256 threads, a simdgroup for a row.
//@threads 256
kernel void topk_rows(
    device const float *logits [[buffer(0)]],
    device uint *pick [[buffer(1)]],
    device float *weight [[buffer(2)]],
    constant TopkArgs &args [[buffer(3)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  const uint row = tg.x * 8u + sg;
  if (row >= args.m) return;
  device const float *l = logits + ulong(row) * args.experts;
  uint taken = 0u;  // bit j: expert j * 32 + lane
  float mine = 0.0f, top = 0.0f;
  uint mypick = 0u;
  for (uint i = 0; i < args.k; i++) {
    float best = as_type<float>(0xff800000u);  // -inf
    uint at = 0xffffffffu;
    for (uint j = 0; j * 32u + lane < args.experts; j++) {
      const float v = l[j * 32u + lane];
      if (((taken >> j) & 1u) == 0u && (at == 0xffffffffu || v > best)) {
        best = v;
        at = j * 32u + lane;
      }
    }
    const float high = simd_max(best);
    const uint e = simd_min(best == high ? at : 0xffffffffu);
    if (e % 32u == lane) taken |= 1u << (e / 32u);
    if (i == 0u) top = high;
    if (i == lane) {
      mine = high;
      mypick = e;
    }
  }
  const float w = lane < args.k ? metal::exp(mine - top) : 0.0f;
  const float sum = simd_sum(w);
  if (lane < args.k) {
    pick[row * args.k + lane] = mypick;
    weight[row * args.k + lane] = w / sum;
  }
}

// Four choices from at, with no expert where they are past the end.
inline uint4 four(device const uint *pick, uint at, uint end) {
  uint4 v = uint4(0xffffffffu);
  if (at + 4u <= end) {
    v = *(device const uint4 *)(pick + at);
  } else {
    if (at < end) v.x = pick[at];
    if (at + 1u < end) v.y = pick[at + 1u];
    if (at + 2u < end) v.z = pick[at + 2u];
  }
  return v;
}
inline uint equal(thread const uint4 &v, uint e) {
  return (v.x == e ? 1u : 0u) + (v.y == e ? 1u : 0u) + (v.z == e ? 1u : 0u) + (v.w == e ? 1u : 0u);
}

// Sums v over 256 threads; all of them call it.
inline uint sum256(uint v, threadgroup uint *part, uint lane, uint sg) {
  const uint s = simd_sum(v);
  if (lane == 0u) part[sg] = s;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint all = 0;
  for (uint i = 0; i < 8u; i++) all += part[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return all;
}

struct PlaceArgs {
  uint choices;  // rows * k
  uint experts;
  uint rows;  // of a tile
  uint tiles;  // there is room for: at least ceil(choices / rows) + min(experts, choices)
};

// counts[E]: how many choices each expert has. Grid: E threadgroups of 256.
//@threads 256
kernel void moe_count(
    device const uint *pick [[buffer(0)]],
    device uint *counts [[buffer(1)]],
    constant PlaceArgs &args [[buffer(2)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  TG_ARRAY(uint, part, [8]);
  uint n = 0;
#pragma unroll 4
  for (uint i = tid * 4u; i < args.choices; i += 1024u) {
    const uint4 v = four(pick, i, args.choices);
    n += equal(v, tg.x);
  }
  const uint all = sum256(n, part, lane, sg);
  if (tid == 0u) counts[tg.x] = all;
}

// slots[choices]: the choices sorted by expert, in order among one expert's; and
// the tiles (expert, first slot, end slot, 0) of at most args.rows slots of one
// expert, the unused ones zero. Grid: E threadgroups of 256.
//@threads 256
kernel void moe_place(
    device const uint *pick [[buffer(0)]],
    device const uint *counts [[buffer(1)]],
    device uint *slots [[buffer(2)]],
    device uint4 *tiles [[buffer(3)]],
    constant PlaceArgs &args [[buffer(4)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  TG_ARRAY(uint, part, [8]);
  const uint e = tg.x;
  uint before = 0, tilesbefore = 0;
  for (uint i = tid; i < e; i += 256u) {
    before += counts[i];
    tilesbefore += (counts[i] + args.rows - 1u) / args.rows;
  }
  const uint base = sum256(before, part, lane, sg);
  const uint tbase = sum256(tilesbefore, part, lane, sg);
  const uint count = counts[e];
  const uint mine = (count + args.rows - 1u) / args.rows;
  for (uint i = tid; i < mine; i += 256u)
    tiles[tbase + i] = uint4(e, base + i * args.rows, base + metal::min((i + 1u) * args.rows, count), 0u);
  if (e + 1u == args.experts)
    for (uint i = tbase + mine + tid; i < args.tiles; i += 256u) tiles[i] = uint4(0u);

  // Each simdgroup places a run of the choices, 128 at a time, after those of the
  // simdgroups before it.
  const uint run = (args.choices + 1023u) / 1024u * 128u;
  const uint from = metal::min(sg * run, args.choices), to = metal::min(from + run, args.choices);
  uint n = 0;
#pragma unroll 4
  for (uint i = from + lane * 4u; i < to; i += 128u) {
    const uint4 v = four(pick, i, to);
    n += equal(v, e);
  }
  n = simd_sum(n);
  if (lane == 0u) part[sg] = n;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint next = base;
  for (uint i = 0; i < sg; i++) next += part[i];
  for (uint i = from; i < to; i += 128u) {
    const uint at = i + lane * 4u;
    const uint4 v = four(pick, at, to);
    const uint own = equal(v, e);
    if (simd_max(own) == 0u) continue;
    uint upto = own;  // of the lanes up to and with this one
    for (uint d = 1; d < 32u; d *= 2u) {
      const uint other = simd_shuffle_up(upto, ushort(d));
      if (lane >= d) upto += other;
    }
    uint place = next + upto - own;
    if (v.x == e) slots[place++] = at;
    if (v.y == e) slots[place++] = at + 1u;
    if (v.z == e) slots[place++] = at + 2u;
    if (v.w == e) slots[place] = at + 3u;
    next += simd_broadcast(upto, ushort(31));
  }
}

struct CombineArgs {
  uint m, n, k;
};
// h[m][n] += sum over a row's choices c of weight[c] * y[c][n] + gate[m] * shared[m][n].
// The sum goes in the order of the choices. Grid: (ceil(n / 1024), m) threadgroups
// of 256 threads, 4 columns each; n is a multiple of 4.
//@threads 256
kernel void moe_combine_rows(
    device const bfloat *y [[buffer(0)]],
    device const float *weight [[buffer(1)]],
    device const bfloat *shared [[buffer(2)]],
    device const float *gate [[buffer(3)]],
    device float *h [[buffer(4)]],
    constant CombineArgs &args [[buffer(5)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]]) {
  const uint row = tg.y, c = (tg.x * 256u + tid) * 4u;
  if (c >= args.n) return;
  const float g = gate[row];
  const bfloat4 s = *(device const bfloat4 *)(shared + ulong(row) * args.n + c);
  float4 sum = float4(g * float(s.x), g * float(s.y), g * float(s.z), g * float(s.w));
  for (uint i = 0; i < args.k; i++) {
    const float w = weight[row * args.k + i];
    const bfloat4 v = *(device const bfloat4 *)(y + ulong(row * args.k + i) * args.n + c);
    sum += float4(w * float(v.x), w * float(v.y), w * float(v.z), w * float(v.w));
  }
  device float4 *to = (device float4 *)(h + ulong(row) * args.n + c);
  *to = *to + sum;
}
