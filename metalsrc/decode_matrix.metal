//@use early act qmv frag sixteen
// One token's product with a wide 4-bit matrix by matrix units: as qmv4_norm_f32
// of decode.metal, but for x, which is rounded to 16 bits.

struct TileArgs {
  uint rows, cols; // cols a multiple of 64
  uint parts;      // simdgroups that share a tile of 16 rows: a power of two
  float eps;
};
// y = W (h*gain) / rms(h). 32*n threads, n a multiple of parts and at most 8;
// grid ceil(rows / (16*n/parts)); threadgroup(0) 64*W bytes and threadgroup(1)
// W/2, W the columns/16 rounded up to a multiple of 32.
//@early
//@threads 256 3
kernel void tile4_norm(
    device const uint *w [[buffer(0)]],
    device const bfloat *s [[buffer(1)]],
    device const bfloat *b [[buffer(2)]],
    device const float *h [[buffer(3)]],
    device const bfloat *gain [[buffer(4)]],
    device float *to [[buffer(5)]],
    constant TileArgs &args [[buffer(6)]],
    threadgroup uint4 *xs [[threadgroup(0)]],
    threadgroup float *sums [[threadgroup(1)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, red, [32]);
  TG_ARRAY(float, part, [8 * 16]);
  const uint nb = args.cols / 32u, shift = metal::popcount(args.parts - 1u);
  const uint tiles = nsg >> shift, first = sg & (args.parts - 1u);
  const uint row = (tg * tiles + (sg >> shift)) * 16u + (lane >> 2);
  SixteenRows m;
  m.q0 = quant(w, s, b);
  m.q1 = m.q0;
  m.row0 = metal::min(row, args.rows - 1u);
  m.row1 = metal::min(row + 8u, args.rows - 1u);
  Sixteen t;
  sixteen_load(t, m, nb, first, lane);
  const uint4 g = gains_of(gain, nb, tid);
  inputs_ready();
  const float square = sixteen_normed(xs, sums, nb, h, gain, g, tid, nsg * 32u);
  if (lane == 0u) red[sg] = square;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const Products y = sixteen_run(t, m, nb, first, args.parts, xs, sums, lane, false, m);
  if ((lane & 3u) == 0u) {
    part[sg * 16u + (lane >> 2)] = y.top;
    part[sg * 16u + 8u + (lane >> 2)] = y.low;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint out = tg * tiles * 16u + tid;
  if (tid >= tiles * 16u || out >= args.rows) return;
  float sum = 0.0f;
  for (uint p = 0; p < args.parts; p++) sum += part[((tid >> 4) * args.parts + p) * 16u + (tid & 15u)];
  to[out] = sum * inverse_rms(red, nsg, args.cols, args.eps);
}
