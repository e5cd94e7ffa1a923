//@use early act qmv frag sixteen best
// Logits by matrix units, see head.metal and decode_matrix.metal.

struct HeadTileArgs {
  uint rows, cols, groups;
  float eps;
};
// As head_argmax. Simdgroups take tiles of 16 rows in turn, the next one's codes
// loaded as this one's are used up. Grid groups x 256 threads; threadgroup memory
// as in decode_matrix.metal.
//@early
//@threads 256 2
kernel void head_tiles(
    device const uint *w [[buffer(0)]],
    device const bfloat *s [[buffer(1)]],
    device const bfloat *b [[buffer(2)]],
    device const float *h [[buffer(3)]],
    device const bfloat *gain [[buffer(4)]],
    device float *logits [[buffer(5)]],
    device Best *best [[buffer(6)]],
    constant HeadTileArgs &args [[buffer(7)]],
    threadgroup uint4 *xs [[threadgroup(0)]],
    threadgroup float *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, red, [32]);
  TG_ARRAY(Best, bests, [32]);
  const uint nb = args.cols / 32u, tiles = (args.rows + 15u) / 16u, hop = args.groups * nsg;
  uint tile = tg * nsg + sg;
  SixteenRows m, m_next;
  m.q0 = quant(w, s, b);
  m.q1 = m.q0;
  m.row0 = metal::min(tile * 16u + (lane >> 2), args.rows - 1u);
  m.row1 = metal::min(tile * 16u + 8u + (lane >> 2), args.rows - 1u);
  m_next = m;
  Sixteen t;
  sixteen_load(t, m, nb, 0u, lane);
  const uint4 g = gains_of(gain, nb, tid);
  inputs_ready();
  const float square = sixteen_normed(xs, sums, nb, h, gain, g, tid, nsg * 32u);
  if (lane == 0u) red[sg] = square;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float inv = inverse_rms(red, nsg, args.cols, args.eps);
  Best mine = no_token();
  for (; tile < tiles; tile += hop) {
    m_next.row0 = metal::min((tile + hop) * 16u + (lane >> 2), args.rows - 1u);
    m_next.row1 = metal::min((tile + hop) * 16u + 8u + (lane >> 2), args.rows - 1u);
    const Products y = sixteen_run(t, m, nb, 0u, 1u, xs, sums, lane, tile + hop < tiles, m_next);
    m = m_next;
    // Of the four lanes that have a pair of rows the first two take one each.
    Best row;
    row.value = ((lane & 1u) != 0u ? y.low : y.top) * inv;
    row.id = tile * 16u + (lane & 1u) * 8u + (lane >> 2);
    if (row.id < args.rows) {
      if ((lane & 2u) == 0u) logits[row.id] = row.value;
      if (row.value > mine.value) mine = row;
    }
  }
  mine = threadgroup_best(mine, bests, tid, sg, nsg);
  if (tid == 0u) best[tg] = mine;
}
