// What stands before the matrices of a layer when there are many rows.

struct NormArgs {
  uint n;  // a multiple of 4
  float eps;
};
// x[m][n] = h * gain / sqrt(mean h^2 + eps), as bfloat. Grid: m threadgroups of 256.
//@threads 256
kernel void rmsnorm_rows(
    device const float *h [[buffer(0)]],
    device const bfloat *gain [[buffer(1)]],
    device bfloat *x [[buffer(2)]],
    constant NormArgs &args [[buffer(3)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  TG_ARRAY(float, part, [8]);
  device const float4 *from = (device const float4 *)(h + ulong(tg.x) * args.n);
  float sum = 0.0f;
  for (uint i = tid; i < args.n / 4u; i += 256u) sum += metal::dot(from[i], from[i]);
  sum = simd_sum(sum);
  if (lane == 0u) part[sg] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float all = 0.0f;
  for (uint i = 0; i < 8u; i++) all += part[i];
  const float f = metal::rsqrt(all / float(args.n) + args.eps);
  device bfloat4 *to = (device bfloat4 *)(x + ulong(tg.x) * args.n);
  for (uint i = tid; i < args.n / 4u; i += 256u) {
    const float4 v = from[i];
    const bfloat4 g = ((device const bfloat4 *)gain)[i];
    to[i] = bfloat4(bfloat(v.x * f * float(g.x)), bfloat(v.y * f * float(g.y)), bfloat(v.z * f * float(g.z)), bfloat(v.w * f * float(g.w)));
  }
}

struct RouterArgs {
  uint m, n, k;  // rows, experts, columns of h; k is a multiple of 64
  float eps;
};
// The router: logits[m][n] = norm(h) * W^T and share[m] = sigmoid(norm(h) * S^T),
// W[n][k] and S[1][k] of 8 bits, norm as in rmsnorm_rows but not rounded. All in
// float, as when there is one row, so that the routes agree: an expert more or
// less is a large difference.
//
// A threadgroup of 128 threads makes 64 rows by 64 columns, each thread 8 by 4,
// 32 of k at a time. The factor of the norm is found on the way, since each
// threadgroup sees the whole of its rows. Grid: (ceil(n / 64), ceil(m / 64)).
// 4 * m * n * k FLOP at about 3 floats of threadgroup memory for 8 FMA.
//@threads 128
kernel void router_rows(
    device const float *h [[buffer(0)]],
    device const bfloat *gain [[buffer(1)]],
    device const uint *codes [[buffer(2)]],
    device const bfloat *scales [[buffer(3)]],
    device const bfloat *biases [[buffer(4)]],
    device const uint *share_codes [[buffer(5)]],
    device const bfloat *share_scales [[buffer(6)]],
    device const bfloat *share_biases [[buffer(7)]],
    device float *logits [[buffer(8)]],
    device float *share [[buffer(9)]],
    constant RouterArgs &args [[buffer(10)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]]) {
  TG_ARRAY(float4, sa, [32 * 17]);  // [k][row], padded by 4 rows
  TG_ARRAY(float4, sb, [32 * 17]);  // [k][column]
  TG_ARRAY(float, factor, [64]);
  threadgroup float *fa = (threadgroup float *)sa;
  threadgroup float *fb = (threadgroup float *)sb;
  // To bring: row tid / 2 of h, and of W, 16 columns of the 32 each.
  const uint r = tid / 2u, c = tid % 2u * 16u;
  const uint row = tg.y * 64u + r, col = tg.x * 64u + r;
  const bool ina = row < args.m, inb = col < args.n;
  device const float *hp = h + ulong(ina ? row : 0u) * args.k + c;
  const uint wrow = inb ? col : 0u;
  device const uint *wp = codes + wrow * (args.k / 4u) + c / 4u;
  device const bfloat *ws = scales + wrow * (args.k / 64u);
  device const bfloat *wb = biases + wrow * (args.k / 64u);
  // To make: rows 8 * ty.., columns 4 * tx..
  const uint tx = tid % 16u, ty = tid / 16u;
  float4 acc[8];
  for (uint i = 0; i < 8u; i++) acc[i] = float4(0.0f);
  float squares = 0.0f, gate = 0.0f;
  for (uint k0 = 0; k0 < args.k; k0 += 32u) {
    const float s = inb ? float(ws[k0 / 64u]) : 0.0f, b = inb ? float(wb[k0 / 64u]) : 0.0f;
    for (uint i = 0; i < 4u; i++) {
      float4 v = ina ? *(device const float4 *)(hp + k0 + i * 4u) : float4(0.0f);
      squares += metal::dot(v, v);
      const bfloat4 g = *(device const bfloat4 *)(gain + k0 + c + i * 4u);
      v = v * float4(float(g.x), float(g.y), float(g.z), float(g.w));
      if (tg.x == 0u) {
        const uint q = share_codes[(k0 + c) / 4u + i];
        const float ss = float(share_scales[k0 / 64u]), sb1 = float(share_biases[k0 / 64u]);
        gate += v.x * (ss * float(q & 255u) + sb1) + v.y * (ss * float((q >> 8u) & 255u) + sb1) +
                v.z * (ss * float((q >> 16u) & 255u) + sb1) + v.w * (ss * float(q >> 24u) + sb1);
      }
      const uint q = wp[k0 / 4u + i];
      threadgroup float *pa = fa + (c + i * 4u) * 68u + r;
      pa[0] = v.x;
      pa[68] = v.y;
      pa[136] = v.z;
      pa[204] = v.w;
      threadgroup float *pb = fb + (c + i * 4u) * 68u + r;
      pb[0] = s * float(q & 255u) + b;
      pb[68] = s * float((q >> 8u) & 255u) + b;
      pb[136] = s * float((q >> 16u) & 255u) + b;
      pb[204] = s * float(q >> 24u) + b;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < 32u; k++) {
      const float4 w = sb[k * 17u + tx];
      const float4 u = sa[k * 17u + ty * 2u], v = sa[k * 17u + ty * 2u + 1u];
      acc[0] += u.x * w;
      acc[1] += u.y * w;
      acc[2] += u.z * w;
      acc[3] += u.w * w;
      acc[4] += v.x * w;
      acc[5] += v.y * w;
      acc[6] += v.z * w;
      acc[7] += v.w * w;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  squares += simd_shuffle_xor(squares, ushort(1));
  gate += simd_shuffle_xor(gate, ushort(1));
  if (tid % 2u == 0u) {
    const float f = metal::rsqrt(squares / float(args.k) + args.eps);
    factor[r] = f;
    if (tg.x == 0u && ina) share[row] = 1.0f / (1.0f + metal::exp(-gate * f));
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = 0; i < 8u; i++) {
    const uint y = ty * 8u + i, to = tg.y * 64u + y;
    const uint x = tg.x * 64u + tx * 4u;
    if (to >= args.m) continue;
    const float4 v = acc[i] * factor[y];
    device float *l = logits + ulong(to) * args.n + x;
    for (uint j = 0; j < 4u; j++)
      if (x + j < args.n) l[j] = v[int(j)];
  }
}
