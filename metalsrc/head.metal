//@use early step act qmv best
// From the residual stream to the next token: logits, and the greatest.

struct HeadArgs {
  uint rows, cols, groups;
  float eps;
};
// logits = W (h*gain) / rms(h), and the best of each threadgroup's. Simdgroups
// take strips of 4 rows in turn, the next one's codes loaded while this one's
// are summed. Grid groups x 256 threads; threadgroup(0) 128*(cols/32+1) bytes,
// threadgroup(1) cols/4.
//@early
//@threads 256 2
kernel void head_argmax(
    device const uint *w [[buffer(0)]],
    device const bfloat *s [[buffer(1)]],
    device const bfloat *b [[buffer(2)]],
    device const float *h [[buffer(3)]],
    device const bfloat *gain [[buffer(4)]],
    device float *logits [[buffer(5)]],
    device Best *best [[buffer(6)]],
    constant HeadArgs &args [[buffer(7)]],
    threadgroup float4 *xs [[threadgroup(0)]],
    threadgroup float2 *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, red, [32]);
  TG_ARRAY(Best, bests, [32]);
  const Quant q = quant(w, s, b);
  const uint nb = args.cols / 32u, strips = (args.rows + 3u) / 4u, hop = args.groups * nsg;
  uint strip = tg * nsg + sg;
  uint row[4];
  Strip<4> one, two;
#pragma unroll
  for (uint r = 0; r < 4u; r++) row[r] = metal::min(strip * 4u + r, args.rows - 1u);
  Fetched<2> x;
  Gains<2> g;
  if (!INPUTS_LATE) {
    fetch(x, h, nb, tid, nsg * 32u);
    fetch_gains(g, gain, nb, tid, nsg * 32u);
  }
  strip_load<4, 1>(one, q, q, row, nb, lane);
  strip_load<4, 1>(two, q, q, row, nb, lane + 32u);
  inputs_ready();
  if (INPUTS_LATE) {
    fetch(x, h, nb, tid, nsg * 32u);
    fetch_gains(g, gain, nb, tid, nsg * 32u);
  }
  const float square = stage_normed(xs, sums, nb, x, g, h, gain, tid, nsg * 32u);
  if (lane == 0u) red[sg] = square;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float inv = inverse_rms(red, nsg, args.cols, args.eps);
  Best mine = no_token();
  for (; strip < strips; strip += hop) {
    float y[4];
    uint next[4];
#pragma unroll
    for (uint r = 0; r < 4u; r++) {
      y[r] = 0.0f;
      next[r] = metal::min((strip + hop) * 4u + r, args.rows - 1u);
    }
    strip_dot<4>(y, one, xs, sums, nb, lane);
    strip_load<4, 1>(one, q, q, next, nb, lane);
    strip_dot<4>(y, two, xs, sums, nb, lane + 32u);
    strip_load<4, 1>(two, q, q, next, nb, lane + 32u);
    for (uint block = lane + 64u; block - lane < nb; block += 32u) { // wider than 2048 columns
      Strip<4> more;
      strip_load<4, 1>(more, q, q, row, nb, block);
      strip_dot<4>(y, more, xs, sums, nb, block);
    }
    Best this_row;
    this_row.value = sum_four(y, lane) * inv;
    this_row.id = strip * 4u + (lane & 3u);
    if (this_row.id < args.rows) {
      if (lane < 4u) logits[this_row.id] = this_row.value;
      if (this_row.value > mine.value) mine = this_row;
    }
#pragma unroll
    for (uint r = 0; r < 4u; r++) row[r] = next[r];
  }
  mine = threadgroup_best(mine, bests, tid, sg, nsg);
  if (tid == 0u) best[tg] = mine;
}

struct FinalArgs {
  uint n;
};
// The step's end: the best of n becomes the next step's token and goes into the
// ring [1024] at the position of the step's last token; the position moves on.
// Grid 1 x 256 threads.
//@threads 256
kernel void argmax_final(
    device const Best *best [[buffer(0)]],
    device Step *step [[buffer(1)]],
    device uint *ring [[buffer(2)]],
    constant FinalArgs &args [[buffer(3)]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  TG_ARRAY(Best, bests, [8]);
  Best mine = no_token();
  for (uint i = tid; i < args.n; i += 256u)
    if (beats(best[i], mine)) mine = best[i];
  mine = threadgroup_best(mine, bests, tid, sg, 8u);
  if (tid != 0u) return;
  const uint end = step[0].pos + step[0].n;
  ring[(end - 1u) & 1023u] = mine.id;
  step[0].token = mine.id;
  step[0].pos = end;
  step[0].n = 1u;
}
