//@use early step act
// One token of the gated delta rule.
//
// proj holds, from the offsets of the arguments, the token's projections:
// q | k | v channels, z, b and a. Per value head, with q and k convolved and
// normed, q also scaled by 1/sqrt(key_dim):
//   S = keep*S;  d = beta*(v - k.S);  S += k d;  o = q.S
// computed from one reading of the old state: k.S and q.S are summed together,
// and q.(new S) = keep*(q.S) + (q.k) d.
struct DeltaArgs {
  uint key_heads, value_heads, key_dim, value_dim; // key_dim at most 128, both multiples of 32
  uint b_at, a_at;                                 // floats into proj
  float eps;                                       // of the norm of q and k
};

// A threadgroup has 32 value columns of a value head; 8 lanes have a row of
// them, 4 columns each, and the 32 threads of a column take rows t, t+32, ...
// The convolution is done again by each for the channels it needs; the ring's
// slot of this position is written by one only, and no one reads it.
// Grid (value_dim/32, value_heads) x 288 threads: with 128 keys each convolves
// one channel. The last simdgroup does no more than that.
// Ring [4][channels], row of position p in slot p & 3; taps [4][channels], oldest
// first; rate = exp(A_log), bias: [value_heads]; state [value_heads][key_dim][value_dim].
//@early
//@threads 288
kernel void delta_step(
    device const float *proj [[buffer(0)]],
    device const float *taps [[buffer(1)]],
    device const float *rate [[buffer(2)]],
    device const float *bias [[buffer(3)]],
    device const Step *step [[buffer(4)]],
    device float *ring [[buffer(5)]],
    device float *state [[buffer(6)]],
    device float *o [[buffer(7)]],
    constant DeltaArgs &args [[buffer(8)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, x, [288]); // q, k, and the 32 values
  TG_ARRAY(float4, sums, [128]);
  const uint K = args.key_dim, V = args.value_dim, head = tg.y;
  const uint each = args.value_heads / args.key_heads, key_head = head / each;
  const uint keys = args.key_heads * K, channels = 2u * keys + args.value_heads * V;
  const uint column = tid & 7u, first = tid >> 3;

  // The state is asked for first: it is what takes long, and the last token's.
  device float4 *s4 = (device float4 *)(state + (ulong)head * K * V + tg.x * 32u) + column;
  float4 s[4];
#pragma unroll
  for (uint i = 0; i < 4u; i++) {
    s[i] = float4(0.0f);
    if (sg < 8u && first + 32u * i < K) s[i] = s4[(first + 32u * i) * (V / 4u)];
  }

  // So is the ring's past. One channel to a thread, of q, k or the values.
  const uint pos = step[0].pos;
  const bool value = tid >= 2u * K, convolves = tid < 2u * K + 32u;
  const uint ch = value ? 2u * keys + head * V + tg.x * 32u + (tid - 2u * K)
                        : (tid < K ? key_head * K + tid : keys + key_head * K + (tid - K));
  float past = 0.0f, tap = 0.0f, now = 0.0f, a = 0.0f, b = 0.0f;
  if (!INPUTS_LATE) {
    if (convolves) now = proj[ch];
    a = proj[args.a_at + head];
    b = proj[args.b_at + head];
  }
  if (convolves) {
    for (uint t = 0; t < 3u; t++) past += taps[t * channels + ch] * ring[((pos + 1u + t) & 3u) * channels + ch];
    tap = taps[3u * channels + ch];
  }
  const float decay = rate[head], shift = bias[head];
  inputs_ready();
  if (INPUTS_LATE) {
    if (convolves) now = proj[ch];
    a = proj[args.a_at + head];
    b = proj[args.b_at + head];
  }

  if (convolves) {
    if (value || (tg.x == 0u && head % each == 0u)) ring[(pos & 3u) * channels + ch] = now;
    x[tid] = silu(tap * now + past);
  }
  const float keep = metal::exp(-decay * softplus(a + shift));
  const float beta = sigmoid(b);
  threadgroup_barrier(mem_flags::mem_threadgroup);

  // Every simdgroup norms for itself.
  float qq = 0.0f, kk = 0.0f, qk = 0.0f;
  for (uint i = lane; i < K; i += 32u) {
    const float q = x[i], k = x[K + i];
    qq += q * q;
    kk += k * k;
    qk += q * k;
  }
  const float inv_q = metal::rsqrt(simd_sum(qq) + args.eps) * metal::rsqrt((float)K);
  const float inv_k = metal::rsqrt(simd_sum(kk) + args.eps);
  qk = simd_sum(qk) * inv_q * inv_k;

  float k[4];
  float4 ks = float4(0.0f), qs = float4(0.0f);
#pragma unroll
  for (uint i = 0; i < 4u; i++) {
    const uint r = first + 32u * i;
    k[i] = 0.0f;
    if (sg < 8u && r < K) {
      k[i] = x[K + r] * inv_k;
      ks += s[i] * k[i];
      qs += s[i] * (x[r] * inv_q);
    }
  }
#pragma unroll
  for (uint d = 8; d < 32u; d <<= 1) {
#pragma unroll
    for (int c = 0; c < 4; c++) {
      ks[c] += simd_shuffle_xor(ks[c], (ushort)d);
      qs[c] += simd_shuffle_xor(qs[c], (ushort)d);
    }
  }
  if (sg < 8u && lane < 8u) {
    sums[sg * 16u + lane] = ks;
    sums[sg * 16u + 8u + lane] = qs;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sg >= 8u) return;
  ks = float4(0.0f);
  qs = float4(0.0f);
#pragma unroll
  for (uint i = 0; i < 8u; i++) {
    ks += sums[i * 16u + column];
    qs += sums[i * 16u + 8u + column];
  }
  const uint at = 2u * K + column * 4u;
  const float4 d = (float4(x[at], x[at + 1u], x[at + 2u], x[at + 3u]) - ks * keep) * beta;
#pragma unroll
  for (uint i = 0; i < 4u; i++)
    if (first + 32u * i < K) s4[(first + 32u * i) * (V / 4u)] = s[i] * keep + d * k[i];
  if (first == 0u) ((device float4 *)(o + head * V + tg.x * 32u))[column] = qs * keep + d * qk;
}
