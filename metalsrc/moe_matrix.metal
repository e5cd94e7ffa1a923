//@use early act qmv frag sixteen route ahead
// The chosen experts of one token by matrix units, see moe_decode.metal and
// decode_matrix.metal.

struct ExpertsUpArgs {
  uint experts, top, cols, width; // experts at most 256, top at most 16, width a multiple of 64
  uint rows;                      // of the second halves, which are asked for ahead
  uint parts;                     // simdgroups that share a tile: a power of two
  float eps;
};
// As moe_gate_up. A tile is 8 rows of gate and the 8 of up. Every threadgroup
// finds the experts with its first simdgroup while the others stage x; what
// they will want of down is asked for as soon as they are known. 32*n threads, n
// a multiple of parts, 2..16; grid ceil(top*width/8 / (n/parts)); threadgroup memory
// as in decode_matrix.metal.
//@threads 512
kernel void experts_gate_up(
    device const float *h [[buffer(0)]],
    device const bfloat *gain [[buffer(1)]],
    device const float *logits [[buffer(2)]],
    device const uint *gate_w [[buffer(3)]],
    device const bfloat *gate_s [[buffer(4)]],
    device const bfloat *gate_b [[buffer(5)]],
    device const uint *up_w [[buffer(6)]],
    device const bfloat *up_s [[buffer(7)]],
    device const bfloat *up_b [[buffer(8)]],
    device const uint *down_w [[buffer(9)]],
    device const uint *down_s [[buffer(10)]],
    device const uint *down_b [[buffer(11)]],
    device float *act [[buffer(12)]],
    device uint *pick [[buffer(13)]],
    device float *weight [[buffer(14)]],
    constant ExpertsUpArgs &args [[buffer(15)]],
    device const uint *next [[buffer(16)]],
    device const uint *then [[buffer(17)]],
    constant AheadArgs &ahead [[buffer(18)]],
    threadgroup uint4 *xs [[threadgroup(0)]],
    threadgroup float *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tgs [[threadgroups_per_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, red, [32]);
  TG_ARRAY(float, part, [16 * 16]);
  TG_ARRAY(uint, picks, [16]);
  const uint nb = args.cols / 32u, shift = metal::popcount(args.parts - 1u), tiles = nsg >> shift;
  const uint each = args.width / 8u, all = args.top * each;
  const uint job = metal::min(tg * tiles + (sg >> shift), all - 1u), slot = job / each, unit = job % each * 8u + (lane >> 2);
  const uint mine = tg % args.top;
  if (sg == 0u) {
    const Route r = choose(logits, args.experts, args.top, lane);
    if (lane < args.top) picks[lane] = r.id;
    if (lane == 0u) red[0] = 0.0f;
    if (tg == 0u) {
      const float by = route_weight(r, args.top, lane);
      if (lane < args.top) {
        pick[lane] = r.id;
        weight[lane] = by;
      }
    }
  } else {
    const float square = sixteen_normed(xs, sums, nb, h, gain, gains_of(gain, nb, tid - 32u), tid - 32u, (nsg - 1u) * 32u);
    if (lane == 0u) red[sg] = square;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  SixteenRows m;
  m.q0 = quant(gate_w, gate_s, gate_b);
  m.q1 = quant(up_w, up_s, up_b);
  m.row0 = picks[slot] * args.width + unit;
  m.row1 = m.row0;
  Sixteen t;
  const uint first = sg & (args.parts - 1u);
  sixteen_load(t, m, nb, first, lane);
  if (sg == nsg - 1u) {
    if (ahead.bytes > 0u) {
      const uint weights = args.rows * args.width, at = picks[mine], n = tgs / args.top + 1u;
      ask_ahead(down_w + at * (weights / 8u), weights / 2u, tg / args.top, n, lane);
      ask_ahead(down_s + at * (weights / 128u), weights / 32u, tg / args.top, n, lane);
      ask_ahead(down_b + at * (weights / 128u), weights / 32u, tg / args.top, n, lane);
    }
    ask_ahead(next, ahead.bytes, tg, tgs, lane);
    ask_ahead(then, ahead.then_bytes, tg, tgs, lane);
  }
  const Products y = sixteen_run(t, m, nb, first, args.parts, xs, sums, lane, false, m);
  if ((lane & 3u) == 0u) {
    part[sg * 16u + (lane >> 2)] = y.top;
    part[sg * 16u + 8u + (lane >> 2)] = y.low;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint out = tg * tiles * 8u + tid;
  if (tid >= tiles * 8u || out >= all * 8u) return;
  float g = 0.0f, u = 0.0f;
  for (uint p = 0; p < args.parts; p++) {
    g += part[((tid >> 3) * args.parts + p) * 16u + (tid & 7u)];
    u += part[((tid >> 3) * args.parts + p) * 16u + 8u + (tid & 7u)];
  }
  const float inv = inverse_rms(red, nsg, args.cols, args.eps);
  act[out] = silu(g * inv) * (u * inv);
}

struct ExpertsDownArgs {
  uint top, rows, width, shared_width;
};
// As moe_down_add. A simdgroup has one slot, the last the shared expert, and 16
// rows, which the threadgroup adds up over slots. Grid ceil(rows/16) x
// 32*(top+1) threads; threadgroup(0) (top+1)*64*W bytes and threadgroup(1)
// (top+1)*W/2, W the greater width/32 rounded up to a multiple of 16.
//@early
//@threads 544
kernel void experts_down_add(
    device const float *act [[buffer(0)]],
    device const float *sact [[buffer(1)]],
    device const float *gate [[buffer(2)]],
    device const uint *pick [[buffer(3)]],
    device const float *weight [[buffer(4)]],
    device const uint *down_w [[buffer(5)]],
    device const bfloat *down_s [[buffer(6)]],
    device const bfloat *down_b [[buffer(7)]],
    device const uint *shared_w [[buffer(8)]],
    device const bfloat *shared_s [[buffer(9)]],
    device const bfloat *shared_b [[buffer(10)]],
    device float *h [[buffer(11)]],
    constant ExpertsDownArgs &args [[buffer(12)]],
    device const uint *next [[buffer(13)]],
    device const uint *then [[buffer(14)]],
    constant AheadArgs &ahead [[buffer(15)]],
    threadgroup uint4 *all_xs [[threadgroup(0)]],
    threadgroup float *all_sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tgs [[threadgroups_per_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, part, [17 * 16]);
  const bool is_shared = sg == args.top;
  const uint words = sixteen_words(metal::max(args.width, args.shared_width) / 32u);
  const uint nb = (is_shared ? args.shared_width : args.width) / 32u;
  threadgroup uint4 *xs = all_xs + sg * words * 2u;
  threadgroup float *sums = all_sums + sg * (words / 8u);
  SixteenRows m;
  m.q0 = quant(is_shared ? shared_w : down_w, is_shared ? shared_s : down_s, is_shared ? shared_b : down_b);
  m.q1 = m.q0;
  m.row0 = metal::min(tg * 16u + (lane >> 2), args.rows - 1u);
  m.row1 = metal::min(tg * 16u + 8u + (lane >> 2), args.rows - 1u);
  device const float *from = is_shared ? sact : act + sg * args.width;
  Sixteen t;
  if (is_shared) {
    sixteen_load(t, m, nb, 0u, lane);
    ask_ahead(next, ahead.bytes, tg, tgs, lane);
    ask_ahead(then, ahead.then_bytes, tg, tgs, lane);
  }
  inputs_ready();
  if (!is_shared) {
    const uint start = pick[sg] * args.rows;
    m.row0 += start;
    m.row1 += start;
    sixteen_load(t, m, nb, 0u, lane);
  }
  const float by = is_shared ? gate[0] : weight[sg];
  sixteen_plain(xs, sums, nb, from, lane, 32u);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  const Products y = sixteen_run(t, m, nb, 0u, 1u, xs, sums, lane, false, m);
  if ((lane & 3u) == 0u) {
    part[sg * 16u + (lane >> 2)] = y.top * by;
    part[sg * 16u + 8u + (lane >> 2)] = y.low * by;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid >= 16u || tg * 16u + tid >= args.rows) return;
  float sum = 0.0f;
  for (uint i = 0; i <= args.top; i++) sum += part[i * 16u + tid];
  h[tg * 16u + tid] += sum;
}
