//@use act qmv frag sixteen route
// The chosen experts' first half of one token by matrix units, see
// moe_decode.metal and decode_matrix.metal.

struct ExpertsUpArgs {
  uint experts, top, cols, width; // experts at most 256, top at most 16, width a multiple of 64
  uint parts;                     // simdgroups that share a tile: a power of two
  float eps;
};
// As moe_gate_up. A tile is 8 rows of gate and the 8 of up. Every threadgroup
// finds the experts with its first simdgroup while the others stage x. 32*n
// threads, n a multiple of parts, 2..16; grid ceil(top*width/8 / (n/parts));
// threadgroup memory as in decode_matrix.metal.
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
    device float *act [[buffer(9)]],
    device uint *pick [[buffer(10)]],
    device float *weight [[buffer(11)]],
    constant ExpertsUpArgs &args [[buffer(12)]],
    threadgroup uint4 *xs [[threadgroup(0)]],
    threadgroup float *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
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
