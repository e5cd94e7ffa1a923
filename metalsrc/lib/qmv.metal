// Products of quantised matrices with one vector.
//
// A lane takes blocks of 32 columns: 16 bytes of 4-bit codes, of several rows
// at once, so that one copy of x serves them all. A simdgroup takes 32 blocks
// of its rows in a pass. Loads of the first two passes are made before x is
// staged: weights wait for nothing, and x and its norm are ready by the time
// they arrive.
//
// A nibble becomes a float without a conversion and with half a shift: moved
// into the mantissa of 1.0 it makes 1 + q/16 at bits 19..22 and 1 + q/256 at
// bits 15..18, so one shift serves two. Summing those times x, with x times 16
// where the nibble is the lower one, gives sum(x') + sum(q x)/16; sum(x') is
// taken off once a block. Per 8 codes: 4 shifts, 8 three-input logic
// operations, 8 fused multiply-adds. The rounding of the sum is relative to
// about 256/7.5 of the term, 2e-6 in float32.
//
// x is staged as float4s, chunk c of block b at c*(nb+1) + b, so that neither
// the lanes that write a block's chunks nor those that read a chunk of
// neighbouring blocks meet in a bank; even elements times 16. Beside it, for
// each block, the sum of x and the sum of what is staged.

struct Quant {
  device const uint4 *w;
  device const bfloat *s;
  device const bfloat *b;
};

inline Quant quant(device const uint *w, device const bfloat *s, device const bfloat *b) {
  Quant q;
  q.w = (device const uint4 *)w;
  q.s = s;
  q.b = b;
  return q;
}

// What a lane holds of R rows: a block of each.
template <int R>
struct Strip {
  uint4 w[R];
  float s[R];
  float b[R];
};

// Loads block of R rows. With NM 2 even rows are of q0, odd ones of q1. Past
// the end of the row it leaves zeros.
template <int R, int NM>
inline void strip_load(thread Strip<R> &t, Quant q0, Quant q1, thread const uint *row, uint nb, uint block) {
  const bool in = block < nb;
#pragma unroll
  for (int r = 0; r < R; r++) {
    t.w[r] = uint4(0u);
    t.s[r] = 0.0f;
    t.b[r] = 0.0f;
    if (in) {
      const uint group = row[r] * (nb >> 1) + (block >> 1);
      if (NM == 2 && (r & 1)) {
        t.w[r] = q1.w[row[r] * nb + block];
        t.s[r] = float(q1.s[group]);
        t.b[r] = float(q1.b[group]);
      } else {
        t.w[r] = q0.w[row[r] * nb + block];
        t.s[r] = float(q0.s[group]);
        t.b[r] = float(q0.b[group]);
      }
    }
  }
}

// (w & mask) | 1.0. NVIDIA has it as one instruction, which its compiler does
// not choose where both constants are immediate.
inline float in_mantissa(uint w, uint mask) {
#ifdef MSL_CUDA
  uint r;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r) : "r"(w), "r"(mask), "r"(0x3f800000u));
  return as_type<float>(r);
#else
  return as_type<float>((w & mask) | 0x3f800000u);
#endif
}
inline float nibble_hi(uint w) { return in_mantissa(w, 0x00780000u); }
inline float nibble_lo(uint w) { return in_mantissa(w, 0x00078000u); }

// acc + the sum of (1 + q/16) * x' over the 8 codes of a word, a and b as staged.
inline float word_dot(uint w, float4 a, float4 b, float acc) {
  const uint w01 = w << 15, w23 = w << 7, w45 = w >> 1, w67 = w >> 9;
  acc = nibble_lo(w01) * a.x + acc;
  acc = nibble_hi(w01) * a.y + acc;
  acc = nibble_lo(w23) * a.z + acc;
  acc = nibble_hi(w23) * a.w + acc;
  acc = nibble_lo(w45) * b.x + acc;
  acc = nibble_hi(w45) * b.y + acc;
  acc = nibble_lo(w67) * b.z + acc;
  acc = nibble_hi(w67) * b.w + acc;
  return acc;
}

// y[r] += the block of row r times x.
template <int R>
inline void strip_dot(
    thread float *y, thread const Strip<R> &t, threadgroup const float4 *xs, threadgroup const float2 *sums, uint nb, uint block) {
  const uint at = metal::min(block, nb - 1u); // a lane past the end has zero scales
  float acc[R];
#pragma unroll
  for (int r = 0; r < R; r++) acc[r] = 0.0f;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const float4 a = xs[(uint)(2 * j) * (nb + 1u) + at];
    const float4 b = xs[(uint)(2 * j + 1) * (nb + 1u) + at];
#pragma unroll
    for (int r = 0; r < R; r++) acc[r] = word_dot(t.w[r][j], a, b, acc[r]);
  }
  const float2 sum = sums[at];
#pragma unroll
  for (int r = 0; r < R; r++) y[r] += t.s[r] * 16.0f * (acc[r] - sum.y) + t.b[r] * sum.x;
}

// All passes of a strip whose first two are loaded: blocks first, first+stride...
template <int R, int NM>
inline void strip_run(
    thread float *y, thread Strip<R> &p, thread Strip<R> &q, Quant q0, Quant q1, thread const uint *row,
    threadgroup const float4 *xs, threadgroup const float2 *sums, uint nb, uint first, uint stride) {
#pragma unroll
  for (int r = 0; r < R; r++) y[r] = 0.0f;
  for (uint base = 0; base < nb; base += 2u * stride) {
    const uint block = first + base;
    strip_dot<R>(y, p, xs, sums, nb, block);
    if (base + 2u * stride < nb) strip_load<R, NM>(p, q0, q1, row, nb, block + 2u * stride);
    if (base + stride < nb) {
      strip_dot<R>(y, q, xs, sums, nb, block + stride);
      if (base + 3u * stride < nb) strip_load<R, NM>(q, q0, q1, row, nb, block + 3u * stride);
    }
  }
}

// The sums over the simdgroup of four values, that of y[r] on the lanes l with
// l & 3 == r.
inline float sum_four(thread const float *y, uint lane) {
  const bool odd = (lane & 1u) != 0u, high = (lane & 2u) != 0u;
  float a = odd ? y[1] : y[0], b = odd ? y[3] : y[2];
  a += simd_shuffle_xor(odd ? y[0] : y[1], (ushort)1);
  b += simd_shuffle_xor(odd ? y[2] : y[3], (ushort)1);
  float c = high ? b : a;
  c += simd_shuffle_xor(high ? a : b, (ushort)2);
#pragma unroll
  for (uint d = 4; d < 32u; d <<= 1) c += simd_shuffle_xor(c, (ushort)d);
  return c;
}

// Stages float4 number i of x, zero past the end. All lanes of the simdgroup
// call it, with i's of lane 0 multiples of 8.
inline void stage(threadgroup float4 *xs, threadgroup float2 *sums, uint nb, uint i, float4 v) {
  float even = v.x + v.z, odd = v.y + v.w;
#pragma unroll
  for (uint d = 1; d < 8u; d <<= 1) {
    even += simd_shuffle_xor(even, (ushort)d);
    odd += simd_shuffle_xor(odd, (ushort)d);
  }
  if (i >= nb * 8u) return;
  xs[(i & 7u) * (nb + 1u) + (i >> 3)] = float4(v.x * 16.0f, v.y, v.z * 16.0f, v.w);
  if ((i & 7u) == 0u) sums[i >> 3] = float2(even + odd, even * 16.0f + odd);
}

// The first float4s of a vector that a thread stages, asked for early and all at
// once: numbers tid, tid+n, ... of nb*8, zero past the end.
template <int N>
struct Fetched {
  float4 x[N];
};
template <int N>
inline void fetch(thread Fetched<N> &f, device const float *x, uint nb, uint tid, uint n) {
#pragma unroll
  for (uint i = 0; i < N; i++) {
    f.x[i] = float4(0.0f);
    if (i * n + tid < nb * 8u) f.x[i] = ((device const float4 *)x)[i * n + tid];
  }
}
// A norm's gains for them.
template <int N>
struct Gains {
  uint2 g[N];
};
template <int N>
inline void fetch_gains(thread Gains<N> &f, device const bfloat *gain, uint nb, uint tid, uint n) {
#pragma unroll
  for (uint i = 0; i < N; i++) {
    f.g[i] = uint2(0u, 0u);
    if (i * n + tid < nb * 8u) f.g[i] = ((device const uint2 *)gain)[i * n + tid];
  }
}

// Stages h*gain by threads 0..n of the threadgroup, the first N float4s of each
// fetched, and returns this simdgroup's part of the sum of h squared.
template <int N>
inline float stage_normed(
    threadgroup float4 *xs, threadgroup float2 *sums, uint nb, thread const Fetched<N> &f, thread const Gains<N> &g,
    device const float *h, device const bfloat *gain, uint tid, uint n) {
  float square = 0.0f;
#pragma unroll
  for (uint i = 0; i < N; i++) {
    if (i * n < nb * 8u) {
      const float4 v = f.x[i];
      square += dot(v, v);
      stage(xs, sums, nb, i * n + tid, v * bf_four(g.g[i]));
    }
  }
  for (uint base = (uint)N * n; base < nb * 8u; base += n) {
    const uint i = base + tid;
    float4 v = float4(0.0f);
    if (i < nb * 8u) {
      v = ((device const float4 *)h)[i];
      square += dot(v, v);
      v *= bf_four(((device const uint2 *)gain)[i]);
    }
    stage(xs, sums, nb, i, v);
  }
  return simd_sum(square);
}

// Stages x as it is.
template <int N>
inline void stage_plain(
    threadgroup float4 *xs, threadgroup float2 *sums, uint nb, thread const Fetched<N> &f, device const float *x, uint tid, uint n) {
#pragma unroll
  for (uint i = 0; i < N; i++)
    if (i * n < nb * 8u) stage(xs, sums, nb, i * n + tid, f.x[i]);
  for (uint base = (uint)N * n; base < nb * 8u; base += n) {
    const uint i = base + tid;
    float4 v = float4(0.0f);
    if (i < nb * 8u) v = ((device const float4 *)x)[i];
    stage(xs, sums, nb, i, v);
  }
}

// 1/rms from the simdgroups' sums of squares.
inline float inverse_rms(threadgroup const float *red, uint nsg, uint cols, float eps) {
  float square = 0.0f;
  for (uint i = 0; i < nsg; i++) square += red[i];
  return metal::rsqrt(square / (float)cols + eps);
}

// 8-bit: a lane takes blocks of 16 columns of one row.
struct Octet {
  uint4 w;
  float s;
  float b;
};

inline void octet_load(thread Octet &t, Quant q, uint row, uint nb, uint half_block) {
  t.w = uint4(0u);
  t.s = 0.0f;
  t.b = 0.0f;
  if (half_block < nb * 2u) {
    const uint group = row * (nb >> 1) + (half_block >> 2);
    t.w = q.w[row * nb * 2u + half_block];
    t.s = float(q.s[group]);
    t.b = float(q.b[group]);
  }
}

// The block of the row times x. Codes are converted exactly: routes hang on it.
inline float octet_dot(thread const Octet &t, threadgroup const float4 *xs, uint nb, uint half_block) {
  const uint at = metal::min(half_block, nb * 2u - 1u);
  float even = 0.0f, odd = 0.0f, sum = 0.0f;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const float4 x = xs[((at & 1u) * 4u + (uint)j) * (nb + 1u) + (at >> 1)];
    const uint w = t.w[j];
    even += (float)(w & 255u) * x.x + (float)((w >> 16) & 255u) * x.z;
    odd += (float)((w >> 8) & 255u) * x.y + (float)(w >> 24) * x.w;
    sum += (x.x + x.z) * 0.0625f + (x.y + x.w);
  }
  return t.s * (even * 0.0625f + odd) + t.b * sum;
}

// Four passes of an 8-bit row, from half block first.
inline void octets_load(thread Octet *t, Quant q, uint row, uint nb, uint first) {
#pragma unroll
  for (uint p = 0; p < 4u; p++) octet_load(t[p], q, row, nb, p * 32u + first);
}
// A whole 8-bit row times x, on every lane; its first four passes are loaded.
inline float octets_dot(thread Octet *t, Quant q, uint row, uint nb, uint lane, threadgroup const float4 *xs) {
  float y = 0.0f;
  for (uint base = 0; base < nb * 2u; base += 128u) {
    if (base > 0u) octets_load(t, q, row, nb, base + lane);
#pragma unroll
    for (uint p = 0; p < 4u; p++) y += octet_dot(t[p], xs, nb, base + p * 32u + lane);
  }
  return simd_sum(y);
}
