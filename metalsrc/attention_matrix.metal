//@use early step act attend frag
// Attention of one token by NVIDIA's matrix units, for 8 query heads to a key
// head. The heads are rows 0..7 of a piece of 16; rows 8..15 are what rounding
// the same numbers to bfloat left out, so queries and weights keep 16 bits and
// no row is idle.

// Asks for 16 positions from p0 of keys and values, the last ones again past
// the end: rows of D, swizzled, values behind keys.
template <int D>
inline void fetch_tile(
    threadgroup bfloat *to, device const bfloat *keys, device const bfloat *values, uint row, uint p0, uint end, uint lane) {
#pragma unroll
  for (uint i = 0; i < D / 16u; i++) {
    const uint piece = i * 32u + lane, r = piece / (D / 8u), c = piece % (D / 8u);
    const ulong from = (ulong)metal::min(p0 + r, end - 1u) * row + c * 8u;
    frag_copy(to, frag_swizzle(r, c, D), keys + from);
    frag_copy(to, 16u * D + frag_swizzle(r, c, D), values + from);
  }
}

// The running softmax of 8 heads. A lane has head lane/4; of a sum over values
// dimensions 2(lane%4) and the next of each 8, and what rounding left out.
template <int D>
struct Heads {
  float top, sum;
  float o[D / 8][4];
};

// One tile that has arrived.
template <int D>
inline void attend_fragments(
    thread Heads<D> &a, threadgroup const uint4 *q, FragMemory tile, uint p0, uint end, uint lane) {
  float s[2][2][4]; // halves of the positions; even and odd steps, so that sums wait less for one another
#pragma unroll
  for (int i = 0; i < 16; i++) s[i / 8][i / 4 % 2][i % 4] = 0.0f;
#pragma unroll
  for (uint k = 0; k < D / 32u; k++) {
    const uint4 q0 = q[2u * k * 32u + lane], q1 = q[(2u * k + 1u) * 32u + lane];
    uint even[4], odd[4];
    even[0] = q0.x;
    even[1] = q0.y;
    even[2] = q0.z;
    even[3] = q0.w;
    odd[0] = q1.x;
    odd[1] = q1.y;
    odd[2] = q1.z;
    odd[3] = q1.w;
#pragma unroll
    for (uint n = 0; n < 2u; n++) {
      uint b[4];
      frag_load(b, tile, frag_swizzle(n * 8u + (lane & 7u), 4u * k + lane / 8u, D), lane);
      frag_mma(s[n][0], even, b[0], b[1], lane);
      frag_mma(s[n][1], odd, b[2], b[3], lane);
    }
  }
  float p[4]; // of positions 2(lane%4), +1, +8, +9
  float top = a.top;
#pragma unroll
  for (uint i = 0; i < 4u; i++) {
    const uint n = i / 2u, j = i & 1u, pos = p0 + n * 8u + 2u * (lane & 3u) + j;
    p[i] = (s[n][0][j] + s[n][1][j]) + (s[n][0][j + 2u] + s[n][1][j + 2u]);
    if (pos >= end) p[i] = as_type<float>(0xff800000u);
    top = metal::max(top, p[i]);
  }
  top = metal::max(top, simd_shuffle_xor(top, (ushort)1));
  top = metal::max(top, simd_shuffle_xor(top, (ushort)2));
  if (frag_any(top > a.top)) {
    const float shrink = frag_exp2(a.top - top);
    a.top = top;
    a.sum *= shrink;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) a.o[n][i] *= shrink;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    p[i] = frag_exp2(p[i] - a.top);
    a.sum += p[i];
  }
  uint w[4];
  w[0] = frag_pack(p[0], p[1]);
  w[1] = frag_rest(p[0], p[1], w[0]);
  w[2] = frag_pack(p[2], p[3]);
  w[3] = frag_rest(p[2], p[3], w[2]);
  const uint r = (lane & 7u) + (lane & 8u), half_of = lane / 16u;
#pragma unroll
  for (uint j = 0; j < D / 16u; j++) {
    uint v[4];
    frag_load_t(v, tile, 16u * D + frag_swizzle(r, 2u * j + half_of, D), lane);
    frag_mma(a.o[2u * j], w, v[0], v[1], lane);
    frag_mma(a.o[2u * j + 1u], w, v[2], v[3], lane);
  }
}

// As attend_split_g8_d@D@, but 32*n threads, each simdgroup with STAGES tiles of
// its own under way; threadgroup(0) 64*D*STAGES*n bytes. What was in the cache
// before this token is asked for before the launch before has ended.
//@for D,STAGES in 256,3 128,3 64,3
//@early
//@threads 128
kernel void attend_matrix_d@D@(
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
    threadgroup bfloat *tiles [[threadgroup(0)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(uint4, qf, [@D@ / 16 * 32]);
  TG_ARRAY(float2, tops, [4 * 8]);
  const uint pos = step[0].pos, row = args.kv_heads * @D@, split = tg.x, kv = tg.y, head = kv * 8u;
  const uint each = part_length(pos, args.splits), begin = split * each, end = metal::min(begin + each, pos + 1u);
  device float *my_out = out + ((ulong)head * args.splits + split) * @D@;
  device float2 *my_stats = stats + head * args.splits + split;
  if (begin > pos) {
    inputs_ready();
    if (tid < 8u) my_stats[tid * args.splits] = float2(as_type<float>(0xff800000u), 0.0f);
    return;
  }
  device const bfloat *keys = K + kv * @D@;
  device const bfloat *values = V + kv * @D@;
  threadgroup bfloat *mine = tiles + sg * (@STAGES@ * 32u * @D@);
  const uint first = begin + sg * 16u, hop = nsg * 16u;
  uint asked = 0u; // tiles asked for; a batch each, also where there is no tile
  while (asked < @STAGES@ - 1u && first + asked * hop + 16u <= pos && first + asked * hop < end) {
    fetch_tile<@D@>(mine + asked * 32u * @D@, keys, values, row, first + asked * hop, end, lane);
    frag_commit();
    asked++;
  }
  inputs_ready();

  // Queries, and where it is this part's, the new key, in the first simdgroup's
  // last stage, which nobody asked for yet.
  threadgroup float *q = (threadgroup float *)(tiles + (@STAGES@ - 1) * 32 * @D@);
  threadgroup float *k = q + 8 * @D@;
  for (uint h = sg; h < 8u; h += nsg)
    norm_turn<@D@>(q + h * @D@, proj + (head + h) * 2u * @D@, q_gain, rope, args.rotary, args.eps, args.scale, lane);
  if (end == pos + 1u) {
    device const float *k_new = proj + args.heads * 2u * @D@ + kv * @D@;
    const ulong at = (ulong)pos * row + kv * @D@;
    if (sg == 0u) {
      norm_turn<@D@>(k, k_new, k_gain, rope, args.rotary, args.eps, 1.0f, lane);
      for (uint d = lane; d < @D@; d += 32u) K[at + d] = bfloat(k[d]);
    }
    if (sg == nsg - 1u)
      for (uint d = lane; d < @D@; d += 32u) V[at + d] = bfloat(k_new[row + d]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  for (uint i = tid; i < @D@ / 16u * 32u; i += nsg * 32u) {
    threadgroup const float *x = q + (i % 32u / 4u) * @D@ + i / 32u * 16u + 2u * (i & 3u);
    uint4 f;
    f.x = frag_pack(x[0], x[1]);
    f.y = frag_rest(x[0], x[1], f.x);
    f.z = frag_pack(x[8], x[9]);
    f.w = frag_rest(x[8], x[9], f.z);
    qf[i] = f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  for (; asked < @STAGES@ - 1u; asked++) {
    if (first + asked * hop < end) fetch_tile<@D@>(mine + asked * 32u * @D@, keys, values, row, first + asked * hop, end, lane);
    frag_commit();
  }
  Heads<@D@> a;
  a.top = as_type<float>(0xff800000u);
  a.sum = 0.0f;
#pragma unroll
  for (int n = 0; n < @D@ / 8; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) a.o[n][i] = 0.0f;
  uint now = 0u, next = @STAGES@ - 1u; // stages
  for (uint p0 = first; p0 < end; p0 += hop) {
    const uint ahead = p0 + (@STAGES@ - 1u) * hop;
    if (ahead < end) fetch_tile<@D@>(mine + next * 32u * @D@, keys, values, row, ahead, end, lane);
    frag_commit();
    frag_wait<@STAGES@ - 1>();
    simdgroup_barrier(mem_flags::mem_threadgroup);
    attend_fragments<@D@>(a, qf, frag_memory(mine + now * 32u * @D@), p0, end, lane);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    now = now + 1u == @STAGES@ ? 0u : now + 1u;
    next = next + 1u == @STAGES@ ? 0u : next + 1u;
  }
  frag_wait<0>();

  a.sum += simd_shuffle_xor(a.sum, (ushort)1);
  a.sum += simd_shuffle_xor(a.sum, (ushort)2);
  if ((lane & 3u) == 0u) tops[sg * 8u + lane / 4u] = float2(a.top, a.sum);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Rows of the merge are padded, so that the heads of a store are in
  // different banks.
  constexpr uint pitch = @D@ + 8;
  threadgroup float *merge = (threadgroup float *)tiles;
  float top = as_type<float>(0xff800000u);
  for (uint i = 0; i < nsg; i++) top = metal::max(top, tops[i * 8u + lane / 4u].x);
  const float by = a.sum > 0.0f ? frag_exp2(a.top - top) : 0.0f;
#pragma unroll
  for (int n = 0; n < @D@ / 8; n++) {
    threadgroup float *to = merge + (sg * 8u + lane / 4u) * pitch + (uint)n * 8u + 2u * (lane & 3u);
    to[0] = (a.o[n][0] + a.o[n][2]) * by;
    to[1] = (a.o[n][1] + a.o[n][3]) * by;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = tid; i < 8u * @D@; i += nsg * 32u) {
    const uint h = i / @D@, d = i % @D@;
    float sum = 0.0f;
    for (uint w = 0; w < nsg; w++) sum += merge[(w * 8u + h) * pitch + d];
    my_out[h * args.splits * @D@ + d] = sum;
  }
  if (tid < 8u) {
    float most = as_type<float>(0xff800000u), sum = 0.0f;
    for (uint w = 0; w < nsg; w++) most = metal::max(most, tops[w * 8u + tid].x);
    for (uint w = 0; w < nsg; w++)
      if (tops[w * 8u + tid].y > 0.0f) sum += tops[w * 8u + tid].y * frag_exp2(tops[w * 8u + tid].x - most);
    my_stats[tid * args.splits] = float2(most, sum);
  }
}
//@end
