//@use early act qmv route
// The experts of one token, in three levels: routes and the shared expert's
// first half; the chosen experts' first half; all second halves.

struct MoeInArgs {
  uint experts, cols, width; // width of the shared expert
  float eps;
};
// x = h*gain/rms(h); logits = router*x; gate = sigmoid(sgate*x);
// act = silu(g)*u with (g, u) = (shared gate, shared up) * x. Router and gate
// have 8 bits; shared holds the rows of gate, then those of up, with 4.
// A simdgroup has a row of the router or one of act; grid
// ceil((experts+1+width)/4) x 128 threads; threadgroup(0) 128*(cols/32+1) bytes,
// threadgroup(1) cols/4.
//@early
//@threads 128
kernel void moe_in(
    device const float *h [[buffer(0)]],
    device const bfloat *gain [[buffer(1)]],
    device const uint *router_w [[buffer(2)]],
    device const bfloat *router_s [[buffer(3)]],
    device const bfloat *router_b [[buffer(4)]],
    device const uint *gate_w [[buffer(5)]],
    device const bfloat *gate_s [[buffer(6)]],
    device const bfloat *gate_b [[buffer(7)]],
    device const uint *shared_w [[buffer(8)]],
    device const bfloat *shared_s [[buffer(9)]],
    device const bfloat *shared_b [[buffer(10)]],
    device float *logits [[buffer(11)]],
    device float *gate [[buffer(12)]],
    device float *act [[buffer(13)]],
    constant MoeInArgs &args [[buffer(14)]],
    threadgroup float4 *xs [[threadgroup(0)]],
    threadgroup float2 *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, red, [32]);
  const uint nb = args.cols / 32u, job = tg * nsg + sg;
  const bool wide = job <= args.experts, is_gate = job == args.experts;
  const Quant q = quant(is_gate ? gate_w : router_w, is_gate ? gate_s : router_s, is_gate ? gate_b : router_b);
  const Quant shared = quant(shared_w, shared_s, shared_b);
  const uint row = is_gate ? 0u : job;
  const uint unit = metal::min(job - args.experts - 1u, args.width - 1u);
  Octet t[4];
  Strip<2> one, two;
  uint rows[2];
  rows[0] = unit;
  rows[1] = unit + args.width;
  Fetched<4> x;
  Gains<4> gains;
  if (!INPUTS_LATE) fetch(x, h, nb, tid, nsg * 32u);
  fetch_gains(gains, gain, nb, tid, nsg * 32u);
  if (wide) {
    octets_load(t, q, row, nb, lane);
  } else {
    strip_load<2, 1>(one, shared, shared, rows, nb, lane);
    strip_load<2, 1>(two, shared, shared, rows, nb, lane + 32u);
  }
  inputs_ready();
  if (INPUTS_LATE) fetch(x, h, nb, tid, nsg * 32u);
  const float square = stage_normed(xs, sums, nb, x, gains, h, gain, tid, nsg * 32u);
  if (lane == 0u) red[sg] = square;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float inv = inverse_rms(red, nsg, args.cols, args.eps);
  if (wide) {
    const float y = octets_dot(t, q, row, nb, lane, xs) * inv;
    if (lane != 0u) return;
    if (is_gate)
      gate[0] = sigmoid(y);
    else
      logits[row] = y;
    return;
  }
  float y[2];
  strip_run<2, 1>(y, one, two, shared, shared, rows, xs, sums, nb, lane, 32u);
  const float g = simd_sum(y[0]) * inv, u = simd_sum(y[1]) * inv;
  if (lane == 0u && job - args.experts - 1u < args.width) act[unit] = silu(g) * u;
}

struct MoeUpArgs {
  uint experts, top, cols, width; // experts at most 256, top at most 16
  float eps;
};
// act[slot] = silu(g)*u with (g, u) = (gate, up of the slot's expert) * x, for
// the top experts by logits; pick and weight say which and how much.
// Every threadgroup finds them with its first simdgroup while the others stage
// x. A simdgroup has two rows of act; grid ceil(top*width/16) x 256 threads;
// threadgroup memory as above.
//@threads 256
kernel void moe_gate_up(
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
    constant MoeUpArgs &args [[buffer(12)]],
    threadgroup float4 *xs [[threadgroup(0)]],
    threadgroup float2 *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, red, [32]);
  TG_ARRAY(uint, picks, [16]);
  const uint nb = args.cols / 32u;
  if (sg == 0u) {
    const Route r = choose(logits, args.experts, args.top, lane);
    if (lane < args.top) picks[lane] = r.id;
    if (tg == 0u) {
      const float by = route_weight(r, args.top, lane);
      if (lane < args.top) {
        pick[lane] = r.id;
        weight[lane] = by;
      }
    }
    if (lane == 0u) red[0] = 0.0f;
  } else {
    Fetched<3> x;
    Gains<3> gains;
    fetch(x, h, nb, tid - 32u, (nsg - 1u) * 32u);
    fetch_gains(gains, gain, nb, tid - 32u, (nsg - 1u) * 32u);
    const float square = stage_normed(xs, sums, nb, x, gains, h, gain, tid - 32u, (nsg - 1u) * 32u);
    if (lane == 0u) red[sg] = square;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint each = args.width / 2u, job = metal::min(tg * nsg + sg, args.top * each - 1u);
  const uint slot = job / each, unit = job % each * 2u, row = picks[slot] * args.width + unit;
  const Quant gate = quant(gate_w, gate_s, gate_b), up = quant(up_w, up_s, up_b);
  uint rows[4];
  rows[0] = row;
  rows[1] = row;
  rows[2] = row + 1u;
  rows[3] = row + 1u;
  Strip<4> one, two;
  float y[4];
  strip_load<4, 2>(one, gate, up, rows, nb, lane);
  strip_load<4, 2>(two, gate, up, rows, nb, lane + 32u);
  const float inv = inverse_rms(red, nsg, args.cols, args.eps);
  strip_run<4, 2>(y, one, two, gate, up, rows, xs, sums, nb, lane, 32u);
  const float mine = sum_four(y, lane) * inv, other = simd_shuffle_xor(mine, (ushort)1);
  if (tg * nsg + sg < args.top * each && (lane == 0u || lane == 2u)) act[slot * args.width + unit + lane / 2u] = silu(mine) * other;
}

struct MoeDownArgs {
  uint top, rows, width, shared_width;
  uint lanes; // that share a row: a power of two, at least width/32 as far as 32
};
// h += sum of weight[k] * down[pick[k]] * act[k], + gate * shared * sact.
// A simdgroup has one slot, the last the shared expert, and 4*(32/lanes) rows,
// which the threadgroup adds up over slots. Grid ceil(rows/(128/lanes)) x
// 32*(top+1) threads; threadgroup(0) (top+1)*128*(n+1) bytes, threadgroup(1)
// (top+1)*8*n, n the greater of the widths/32.
//@threads 544
kernel void moe_down_add(
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
    constant MoeDownArgs &args [[buffer(12)]],
    threadgroup float4 *all_xs [[threadgroup(0)]],
    threadgroup float2 *all_sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, part, [17 * 64]);
  const bool is_shared = sg == args.top;
  const uint most = metal::max(args.width, args.shared_width) / 32u;
  const uint nb = (is_shared ? args.shared_width : args.width) / 32u;
  const uint shift = metal::popcount(args.lanes - 1u), abreast = 32u >> shift; // lanes is a power of two
  const uint mine = lane >> shift, first = lane & (args.lanes - 1u);
  const uint per = 4u * abreast, base = tg * per;
  threadgroup float4 *xs = all_xs + sg * 8u * (most + 1u);
  threadgroup float2 *sums = all_sums + sg * most;

  const Quant q = quant(is_shared ? shared_w : down_w, is_shared ? shared_s : down_s, is_shared ? shared_b : down_b);
  device const float *from = is_shared ? sact : act + sg * args.width;
  uint start = 0u;
  if (!is_shared) start = pick[sg] * args.rows;
  Fetched<4> x;
  fetch(x, from, nb, lane, 32u);
  uint rows[4];
#pragma unroll
  for (uint r = 0; r < 4u; r++) rows[r] = start + metal::min(base + r * abreast + mine, args.rows - 1u);
  Strip<4> one, two;
  float y[4];
  strip_load<4, 1>(one, q, q, rows, nb, first);
  strip_load<4, 1>(two, q, q, rows, nb, first + args.lanes);
  const float by = is_shared ? gate[0] : weight[sg];
  float old = 0.0f; // asked for with the rest, not at the end
  if (tid < per && base + tid < args.rows) old = h[base + tid];
  stage_plain(xs, sums, nb, x, from, lane, 32u);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  strip_run<4, 1>(y, one, two, q, q, rows, xs, sums, nb, first, args.lanes);
  for (uint d = 1; d < args.lanes; d <<= 1) {
#pragma unroll
    for (int r = 0; r < 4; r++) y[r] += simd_shuffle_xor(y[r], (ushort)d);
  }
  if (first == 0u) {
#pragma unroll
    for (uint r = 0; r < 4u; r++) part[sg * per + r * abreast + mine] = y[r] * by;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid >= per || base + tid >= args.rows) return;
  float sum = 0.0f;
  for (uint i = 0; i <= args.top; i++) sum += part[i * per + tid];
  h[base + tid] = old + sum;
}
