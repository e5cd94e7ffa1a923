// Products of 4-bit matrices with one vector by matrix units, for decoding on
// NVIDIA: a third of the instructions that plain lanes need.
//
// A simdgroup takes 16 rows and a part of 512 columns, all of it asked for at
// once. Lane l has rows l/4 and l/4+8, and of each load of 128 columns the block
// of 32 number t = l%4: four words of 8 codes. A code moved to the top of a
// bfloat's mantissa makes 16 + q exactly, two codes to a word with one shift; the
// four shifts of a word are two pieces of A for both rows.
//
// x is the right side, as two bfloats that make 16 bits of each number. A group
// of 64 columns, which shares a scale, has two of the 8 columns of B to itself,
// one for each bfloat, zeros elsewhere: a lane's piece of C is then its row's
// sums over group t of each 256 columns. 16 times the sum of x comes off once a
// group.
//
// Staged, a word's 8 numbers are two uint4s, as B wants them, at
// (load*16 + word*4 + t)*2: the 8 lanes that have a load's numbers read 128 bytes
// that lie side by side.

struct Sixteen {
  uint4 w[4][2];              // by load, by half of the rows
  bfloat s[2][2], b[2][2];    // of groups t and t+4 of the part
};

// Where a lane's rows begin, of one or two matrices.
struct SixteenRows {
  Quant q0, q1;
  uint row0, row1;
};

inline void sixteen_codes(thread Sixteen &t, SixteenRows m, uint nb, uint part, int load, uint lane) {
  const uint block = part * 16u + (uint)load * 4u + (lane & 3u);
  t.w[load][0] = uint4(0u);
  t.w[load][1] = uint4(0u);
  if (block < nb) {
    t.w[load][0] = m.q0.w[m.row0 * nb + block];
    t.w[load][1] = m.q1.w[m.row1 * nb + block];
  }
}
inline void sixteen_scales(thread Sixteen &t, SixteenRows m, uint nb, uint part, uint lane) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const uint group = part * 8u + (uint)i * 4u + (lane & 3u), ng = nb >> 1;
    t.s[i][0] = bfloat(0.0f);
    t.s[i][1] = bfloat(0.0f);
    t.b[i][0] = bfloat(0.0f);
    t.b[i][1] = bfloat(0.0f);
    if (group < ng) {
      t.s[i][0] = m.q0.s[m.row0 * ng + group];
      t.s[i][1] = m.q1.s[m.row1 * ng + group];
      t.b[i][0] = m.q0.b[m.row0 * ng + group];
      t.b[i][1] = m.q1.b[m.row1 * ng + group];
    }
  }
}
inline void sixteen_load(thread Sixteen &t, SixteenRows m, uint nb, uint part, uint lane) {
#pragma unroll
  for (int i = 0; i < 4; i++) sixteen_codes(t, m, nb, part, i, lane);
  sixteen_scales(t, m, nb, part, lane);
}

// (w & 0x00780078) | two bfloats of 16.
inline uint sixteen_pair(uint w) {
#ifdef MSL_CUDA
  uint r;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r) : "r"(w), "r"(0x00780078u), "r"(0x41804180u));
  return r;
#else
  return (w & 0x00780078u) | 0x41804180u;
#endif
}

// c += a load's codes times x; xs as staged, from the load on.
inline void sixteen_dot(thread float *c, uint4 top, uint4 low, threadgroup const uint4 *xs, int load, uint lane) {
  const uint t = lane & 3u, n = lane >> 2;
  const bool mine = n >> 1 == 2u * ((uint)load & 1u) + (t >> 1);
#pragma unroll
  for (int j = 0; j < 4; j++) {
    uint4 x = uint4(0u);
    if (mine) x = xs[((uint)j * 4u + t) * 2u + (n & 1u)];
    uint a[4];
    a[0] = sixteen_pair(top[j] << 3);
    a[1] = sixteen_pair(low[j] << 3);
    a[2] = sixteen_pair(top[j] >> 1);
    a[3] = sixteen_pair(low[j] >> 1);
    frag_mma(c, a, x.x, x.y, lane);
    a[0] = sixteen_pair(top[j] >> 5);
    a[1] = sixteen_pair(low[j] >> 5);
    a[2] = sixteen_pair(top[j] >> 9);
    a[3] = sixteen_pair(low[j] >> 9);
    frag_mma(c, a, x.z, x.w, lane);
  }
}

// y = the products of rows l/4 and l/4+8, on all lanes l that have them, over
// parts first, first+stride, ... of which the first is loaded. If next is not
// negative it is the part of the rows m_next that is loaded meanwhile, for the
// next call.
struct Products {
  float top, low;
};
inline Products sixteen_run(
    thread Sixteen &t, SixteenRows m, uint nb, uint first, uint stride, threadgroup const uint4 *xs,
    threadgroup const float *sums, uint lane, bool again, SixteenRows m_next) {
  Products y;
  y.top = 0.0f;
  y.low = 0.0f;
  for (uint part = first; part * 16u < nb; part += stride) {
    const bool last = (part + stride) * 16u >= nb, more = !last || again;
    SixteenRows from = m;
    if (last) from = m_next;
    const uint ahead = last ? first : part + stride;
    float c[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
      for (int j = 0; j < 4; j++) c[i][j] = 0.0f;
      sixteen_dot(c[i], t.w[i][0], t.w[i][1], xs + (part * 4u + (uint)i) * 32u, i, lane);
      if (more) sixteen_codes(t, from, nb, ahead, i, lane);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const float sum = sums[part * 8u + (uint)i * 4u + (lane & 3u)];
      const float top = (c[2 * i][0] + c[2 * i + 1][0]) + (c[2 * i][1] + c[2 * i + 1][1]);
      const float low = (c[2 * i][2] + c[2 * i + 1][2]) + (c[2 * i][3] + c[2 * i + 1][3]);
      y.top += float(t.s[i][0]) * (top - 16.0f * sum) + float(t.b[i][0]) * sum;
      y.low += float(t.s[i][1]) * (low - 16.0f * sum) + float(t.b[i][1]) * sum;
    }
    if (more) sixteen_scales(t, from, nb, ahead, lane);
  }
  y.top += simd_shuffle_xor(y.top, (ushort)1);
  y.low += simd_shuffle_xor(y.low, (ushort)1);
  y.top += simd_shuffle_xor(y.top, (ushort)2);
  y.low += simd_shuffle_xor(y.low, (ushort)2);
  return y;
}

// How many words of 8 numbers are staged of nb blocks: whole parts.
inline uint sixteen_words(uint nb) { return (nb + 15u) / 16u * 64u; }

// Stages word i of x. All lanes of a simdgroup call it, with i's of lane 0
// multiples of 8.
inline void sixteen_stage(threadgroup uint4 *xs, threadgroup float *sums, uint words, uint i, float4 a, float4 b) {
  uint4 h, l;
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    h[j] = frag_pack(a[j], b[j]);
    l[j] = frag_rest(a[j], b[j], h[j]);
    sum += (frag_low(h[j]) + frag_low(l[j])) + (frag_high(h[j]) + frag_high(l[j]));
  }
#pragma unroll
  for (uint d = 1; d < 8u; d <<= 1) sum += simd_shuffle_xor(sum, (ushort)d);
  if (i >= words) return;
  const uint at = (i / 16u * 16u + (i & 3u) * 4u + (i / 4u & 3u)) * 2u;
  xs[at] = h;
  xs[at + 1u] = l;
  if ((i & 7u) == 0u) sums[i >> 3] = sum;
}

// 8 numbers of a vector, zero past its end.
struct Eight {
  float4 a, b;
};
inline Eight eight(device const float *x, uint nb, uint i) {
  Eight e;
  e.a = float4(0.0f);
  e.b = float4(0.0f);
  if (i < nb * 4u) {
    e.a = ((device const float4 *)x)[2u * i];
    e.b = ((device const float4 *)x)[2u * i + 1u];
  }
  return e;
}

// The gains of 8 numbers, zero past the end.
inline uint4 gains_of(device const bfloat *gain, uint nb, uint i) {
  uint4 g = uint4(0u);
  if (i < nb * 4u) g = ((device const uint4 *)gain)[i];
  return g;
}
// Stages h*gain by n threads of the threadgroup, and returns this simdgroup's
// part of the sum of h squared. g are the gains of word tid, see gains_of.
inline float sixteen_normed(
    threadgroup uint4 *xs, threadgroup float *sums, uint nb, device const float *h, device const bfloat *gain, uint4 g, uint tid, uint n) {
  float square = 0.0f;
  for (uint base = 0; base < sixteen_words(nb); base += n) {
    const uint i = base + tid;
    const Eight e = eight(h, nb, i);
    if (base > 0u) g = gains_of(gain, nb, i);
    square += dot(e.a, e.a) + dot(e.b, e.b);
    sixteen_stage(xs, sums, sixteen_words(nb), i, e.a * bf_four(uint2(g.x, g.y)), e.b * bf_four(uint2(g.z, g.w)));
  }
  return simd_sum(square);
}
