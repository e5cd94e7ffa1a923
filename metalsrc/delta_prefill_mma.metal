//@use mixer frag
// delta_intra_mma, delta_scan_mma: delta_intra and delta_scan of
// delta_prefill.metal (the formulas are there) on NVIDIA's matrix units.
//
// q, k and v are bfloats and go in as they are. What is float (the state, V',
// T, P) goes in as two bfloats, the number rounded and what that left out, so
// that 16 of its bits count; of a product of two such pairs the three larger
// terms. T and P are kept that way: bfloat [value head][chunk][2][64][64], of
// which the 16x16 blocks above the diagonal are not used.
struct DeltaArgs {
  uint rows, padded, keyHeads, valueHeads, stride;
};

inline float delta_decay(float4 to, float4 from) { return metal::exp((to.x - from.x) + (to.y - from.y)); }

// ROWS rows of N 16-byte pieces, to rows of pitch numbers.
template <uint ROWS, uint N, uint THREADS>
inline void delta_fetch(threadgroup bfloat *to, device const bfloat *from, uint stride, uint pitch, uint tid) {
  const uint c = tid % N;
  from += tid / N * stride + c * 8u;
#pragma unroll
  for (uint i = 0; i < ROWS * N / THREADS; i++) {
    const uint r = tid / N + i * (THREADS / N);
    frag_copy(to, frag_swizzle(r, c, pitch), from + i * (THREADS / N) * stride);
  }
}

// Where lane has to point for a piece of A of rows row to row+15, columns c*8
// to c*8+15; for pieces of B of two times 8 columns that are rows of the tile;
// and for pieces of B that are transposed.
inline uint delta_at_a(uint row, uint c, uint pitch, uint lane) {
  return frag_swizzle(row + (lane & 15u), c + (lane >> 4), pitch);
}
inline uint delta_at_b(uint row, uint c, uint pitch, uint lane) {
  return frag_swizzle(row + (lane & 7u) + ((lane >> 4) << 3), c + ((lane >> 3) & 1u), pitch);
}

// acc[j] = rows row..row+15 of a times rows 8j.. of b, for j up to the diagonal.
template <uint D, uint PITCH>
inline void delta_products(thread float (*acc)[4], FragMemory a, FragMemory b, uint row, uint lane) {
#pragma unroll
  for (uint j = 0; j < 8u; j++) acc[j][0] = acc[j][1] = acc[j][2] = acc[j][3] = 0.0f;
#pragma unroll
  for (uint c = 0; c < D / 8u; c += 2u) {
    uint x[4];
    frag_load(x, a, delta_at_a(row, c, PITCH, lane), lane);
#pragma unroll
    for (uint j = 0; j < 8u; j += 2u) {
      if (j * 8u <= row) {
        uint y[4];
        frag_load(y, b, delta_at_b(j * 8u, c, PITCH, lane), lane);
        frag_mma(acc[j], x, y[0], y[1], lane);
        frag_mma(acc[j + 1u], x, y[2], y[3], lane);
      }
    }
  }
}

// Column j >= FROM of (I+m)^-1 by forward substitution, times scale, as two
// bfloats. m has rows of 68 floats, strictly lower triangular.
template <uint FROM>
inline void delta_inverse(threadgroup const float *m, uint j, float scale, device bfloat *out) {
  float c[64 - FROM];
#pragma unroll
  for (uint i = 0; i < 64u - FROM; i++) c[i] = 0.0f;
#pragma unroll
  for (uint i = 0; i < 64u - FROM; i++) {
    float x = 0.0f, y = 0.0f;
#pragma unroll
    for (uint k = 0; k < i; k += 4u) {
      const float4 r = *(threadgroup const float4 *)(m + (FROM + i) * 68u + FROM + k);
      x += r.x * c[k] + r.y * c[k + 1u];
      y += r.z * c[k + 2u] + r.w * c[k + 3u];
    }
    c[i] = (FROM + i == j ? 1.0f : 0.0f) - (x + y);
    const float t = c[i] * scale;
    const bfloat high = bfloat(t);
    out[(FROM + i) * 64u] = high;
    out[4096u + (FROM + i) * 64u] = bfloat(t - float(high));
  }
}

// delta_intra_mma: T and P of every chunk and value head. Each simdgroup makes
// 16 rows of kk'; then two of them the inverse, a column to a thread, while the
// other two make P. Grid: (chunks, valueHeads), threads 128; 18 KiB, and
// threadgroup(0): 2*64*pitch bfloats, pitch = dim, but at least 64.
template <uint D, uint PITCH>
inline void delta_intra_mma(
    device const bfloat *q, device const bfloat *k, device const float4 *gates, device bfloat *inverse,
    device bfloat *scores, constant DeltaArgs &args, threadgroup float *m, threadgroup float4 *g,
    threadgroup bfloat *shared, uint chunk, uint head, uint tid, uint sg, uint lane) {
  const ulong at = (ulong(head / (args.valueHeads / args.keyHeads)) * args.padded + chunk * 64u) * D;
  const ulong to = (ulong(head) * (args.padded / 64u) + chunk) * 8192u;
  delta_fetch<64u, D / 8u, 128u>(shared, k + at, D, PITCH, tid);
  delta_fetch<64u, D / 8u, 128u>(shared + 64u * PITCH, q + at, D, PITCH, tid);
  frag_commit();
  if (tid < 64u) g[tid] = gates[ulong(head) * args.padded + chunk * 64u + tid];
  frag_wait<0>();
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const FragMemory keys = frag_memory(shared);
  float acc[8][4];
  delta_products<D, PITCH>(acc, keys, keys, sg * 16u, lane);
#pragma unroll
  for (uint j = 0; j < 8u; j++) {
#pragma unroll
    for (uint e = 0; e < 4u; e++) {
      const uint row = sg * 16u + lane / 4u + (e & 2u) * 4u;
      const uint column = j * 8u + (lane % 4u) * 2u + (e & 1u);
      m[row * 68u + column] = column < row ? g[row].z * delta_decay(g[row], g[column]) * acc[j][e] : 0.0f;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sg == 0u) {
    delta_inverse<0u>(m, lane, g[lane].z, inverse + to + lane);
    return;
  }
  if (sg == 1u) {
    delta_inverse<32u>(m, 32u + lane, g[32u + lane].z, inverse + to + 32u + lane);
    return;
  }
#pragma unroll
  for (uint part = 0; part < 2u; part++) {  // rows 0 and 48, or 16 and 32: the same work
    const uint row = part == 0u ? (sg - 2u) * 16u : 48u - (sg - 2u) * 16u;
    delta_products<D, PITCH>(acc, frag_memory(shared + 64u * PITCH), keys, row, lane);
    const uint r = row + lane / 4u;
    device uint *high = (device uint *)(scores + to);  // pairs
#pragma unroll
    for (uint j = 0; j < 8u; j++) {
      if (j * 8u > row + 8u) continue;
      const uint c = j * 8u + (lane % 4u) * 2u;
      float p[4];
      p[0] = c <= r ? delta_decay(g[r], g[c]) * acc[j][0] : 0.0f;
      p[1] = c + 1u <= r ? delta_decay(g[r], g[c + 1u]) * acc[j][1] : 0.0f;
      p[2] = c <= r + 8u ? delta_decay(g[r + 8u], g[c]) * acc[j][2] : 0.0f;
      p[3] = c + 1u <= r + 8u ? delta_decay(g[r + 8u], g[c + 1u]) * acc[j][3] : 0.0f;
      const uint x = frag_pack(p[0], p[1]), y = frag_pack(p[2], p[3]);
      high[(r * 64u + c) / 2u] = x;
      high[((r + 8u) * 64u + c) / 2u] = y;
      high[2048u + (r * 64u + c) / 2u] = frag_rest(p[0], p[1], x);
      high[2048u + ((r + 8u) * 64u + c) / 2u] = frag_rest(p[2], p[3], y);
    }
  }
}

//@for D,P in 32,64 64,64 128,128
//@threads 128
kernel void delta_intra_mma_d@D@(
    device const bfloat *q [[buffer(0)]],
    device const bfloat *k [[buffer(1)]],
    device const float4 *gates [[buffer(2)]],
    device bfloat *inverse [[buffer(3)]],
    device bfloat *scores [[buffer(4)]],
    constant DeltaArgs &args [[buffer(5)]],
    threadgroup bfloat *shared [[threadgroup(0)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, m, [64 * 68]);
  TG_ARRAY(float4, g, [64]);
  delta_intra_mma<@D@u, @P@u>(q, k, gates, inverse, scores, args, m, g, shared, tg.x, tg.y, tid, sg, lane);
}
//@end

// Two pieces of C side by side += a times a 16x16 piece of b. What adds to the
// same piece is kept apart in the text, since each waits for the one before.
inline void delta_two(thread float (*acc)[4], thread const uint *a, thread const uint *b, uint lane) {
  frag_mma(acc[0], a, b[0], b[1], lane);
  frag_mma(acc[1], a, b[2], b[3], lane);
}

// acc += (a+rest) times 64 rows of a lower triangular matrix of pairs, a its
// columns 16j to 16j+15.
inline void delta_triangle(
    thread float (*acc)[4], thread const uint *a, thread const uint *rest, FragMemory t, FragMemory u, uint j, uint lane) {
  uint x[4][4], y[4][4];
#pragma unroll
  for (uint i = 0; i < 4u; i++) {
    if (i >= j) {
      frag_load(x[i], t, delta_at_b(i * 16u, j * 2u, 64u, lane), lane);
      frag_load(y[i], u, delta_at_b(i * 16u, j * 2u, 64u, lane), lane);
    }
  }
#pragma unroll
  for (uint i = 0; i < 4u; i++)
    if (i >= j) delta_two(acc + 2u * i, rest, x[i], lane);
#pragma unroll
  for (uint i = 0; i < 4u; i++)
    if (i >= j) delta_two(acc + 2u * i, a, y[i], lane);
#pragma unroll
  for (uint i = 0; i < 4u; i++)
    if (i >= j) delta_two(acc + 2u * i, a, x[i], lane);
}

// delta_scan_mma: the chunks of a head in order; the state before and after. A
// simdgroup keeps 16 value columns of the state in registers, transposed, as
// pieces of C; what comes of them is transposed too, so that each result is the
// left operand of the next product without leaving the lanes. Two simdgroups
// share what is fetched, the next chunk while this one is worked on.
// Grid: (dim/32, valueHeads), threads 64; 1 KiB, and threadgroup(0): two times
// 64*(2*pitch+5*64) bfloats, pitch = dim, but at least 64 (144 KiB at 128).
template <uint D, uint PITCH>
inline void delta_scan_mma(
    device const bfloat *q, device const bfloat *k, device const bfloat *v, device const float4 *gates,
    device const bfloat *inverse, device const bfloat *scores, device const Step *step, device float *state,
    device float *o, constant DeltaArgs &args, threadgroup float *weights, threadgroup bfloat *shared, uint head,
    uint columns, uint tid, uint sg, uint lane) {
  constexpr uint SIZE = 64u * (2u * PITCH + 5u * 64u);
  constexpr uint Q = 64u * PITCH, T = 2u * Q, P = T + 8192u, V = P + 8192u;
  const uint n = metal::min(args.rows, step->n);
  const uint keyHead = head / (args.valueHeads / args.keyHeads);
  q += ulong(keyHead) * args.padded * D;
  k += ulong(keyHead) * args.padded * D;
  v += ulong(head) * args.padded * D + columns;
  gates += ulong(head) * args.padded;
  inverse += ulong(head) * args.padded * 128u;
  scores += ulong(head) * args.padded * 128u;
  const uint mine = sg * 16u + lane / 4u;  // this lane's column, and the one 8 further on
  state += ulong(head) * D * D + columns + mine;
  o += head * D + columns + mine;

  float s[D / 8u][4];
#pragma unroll
  for (uint c = 0; c < D / 8u; c++) {
    const uint at = (c * 8u + (lane % 4u) * 2u) * D;
    s[c][0] = state[at];
    s[c][1] = state[at + D];
    s[c][2] = state[at + 8u];
    s[c][3] = state[at + D + 8u];
  }
  float4 gate = gates[tid], last = gates[63];
  for (uint first = 0; first < n; first += 64u) {
    threadgroup bfloat *now = shared + (first / 64u % 2u) * SIZE;
    threadgroup float *keep = weights + (first / 64u % 2u) * 128u;
    if (first == 0u) {
      delta_fetch<64u, D / 8u, 64u>(now, k, D, PITCH, tid);
      delta_fetch<64u, D / 8u, 64u>(now + Q, q, D, PITCH, tid);
      delta_fetch<128u, 8u, 64u>(now + T, inverse, 64u, 64u, tid);
      delta_fetch<128u, 8u, 64u>(now + P, scores, 64u, 64u, tid);
      delta_fetch<64u, 4u, 64u>(now + V, v, D, 64u, tid);
      frag_commit();
    }
    keep[tid] = metal::exp(gate.x + gate.y);
    keep[64u + tid] = delta_decay(last, gate);
    const float kept = metal::exp(last.x + last.y);
    frag_wait<0>();
    threadgroup_barrier(mem_flags::mem_threadgroup);  // this chunk is there, and nobody reads the one before
    if (first + 64u < n) {
      threadgroup bfloat *next = shared + ((first / 64u + 1u) % 2u) * SIZE;
      const ulong at = first + 64u;
      delta_fetch<64u, D / 8u, 64u>(next, k + at * D, D, PITCH, tid);
      delta_fetch<64u, D / 8u, 64u>(next + Q, q + at * D, D, PITCH, tid);
      delta_fetch<128u, 8u, 64u>(next + T, inverse + at * 128u, 64u, 64u, tid);
      delta_fetch<128u, 8u, 64u>(next + P, scores + at * 128u, 64u, 64u, tid);
      delta_fetch<64u, 4u, 64u>(next + V, v + at * D, D, 64u, tid);
      frag_commit();
      gate = gates[at + tid];
      last = gates[at + 63u];
    }
    const FragMemory keys = frag_memory(now);

    float x[8][4], y[8][4];  // S'k' and S'q'
#pragma unroll
    for (uint j = 0; j < 8u; j++) x[j][0] = x[j][1] = x[j][2] = x[j][3] = y[j][0] = y[j][1] = y[j][2] = y[j][3] = 0.0f;
#pragma unroll
    for (uint c = 0; c < D / 8u; c += 2u) {
      uint a[4], rest[4];
      frag_split(a, rest, s[c], s[c + 1u]);
      uint bk[4][4], bq[4][4];
#pragma unroll
      for (uint j = 0; j < 4u; j++) {
        frag_load(bk[j], keys, delta_at_b(j * 16u, c, PITCH, lane), lane);
        frag_load(bq[j], frag_memory(now + Q), delta_at_b(j * 16u, c, PITCH, lane), lane);
      }
#pragma unroll
      for (uint j = 0; j < 4u; j++) delta_two(x + 2u * j, rest, bk[j], lane);
#pragma unroll
      for (uint j = 0; j < 4u; j++) delta_two(y + 2u * j, rest, bq[j], lane);
#pragma unroll
      for (uint j = 0; j < 4u; j++) delta_two(x + 2u * j, a, bk[j], lane);
#pragma unroll
      for (uint j = 0; j < 4u; j++) delta_two(y + 2u * j, a, bq[j], lane);
    }
#pragma unroll
    for (uint j = 0; j < 8u; j += 2u) {  // v - e^G S'k', e^G S'q'
      uint b[4];
      frag_load_t(
          b, frag_memory(now + V), frag_swizzle(j * 8u + (lane & 7u) + ((lane >> 4) << 3), sg * 2u + ((lane >> 3) & 1u), 64u), lane);
#pragma unroll
      for (uint i = 0; i < 2u; i++) {
        const float2 e = *(threadgroup const float2 *)(keep + (j + i) * 8u + (lane % 4u) * 2u);
        x[j + i][0] = frag_low(b[2u * i]) - e.x * x[j + i][0];
        x[j + i][1] = frag_high(b[2u * i]) - e.y * x[j + i][1];
        x[j + i][2] = frag_low(b[2u * i + 1u]) - e.x * x[j + i][2];
        x[j + i][3] = frag_high(b[2u * i + 1u]) - e.y * x[j + i][3];
        y[j + i][0] *= e.x;
        y[j + i][1] *= e.y;
        y[j + i][2] *= e.x;
        y[j + i][3] *= e.y;
      }
    }
    float z[8][4];  // V', transposed
#pragma unroll
    for (uint j = 0; j < 8u; j++) z[j][0] = z[j][1] = z[j][2] = z[j][3] = 0.0f;
#pragma unroll
    for (uint j = 0; j < 4u; j++) {
      uint a[4], rest[4];
      frag_split(a, rest, x[2u * j], x[2u * j + 1u]);
      delta_triangle(z, a, rest, frag_memory(now + T), frag_memory(now + T + 4096u), j, lane);
    }
#pragma unroll
    for (uint j = 0; j < 4u; j++) {
      uint a[4], rest[4];
      frag_split(a, rest, z[2u * j], z[2u * j + 1u]);
      delta_triangle(y, a, rest, frag_memory(now + P), frag_memory(now + P + 4096u), j, lane);
    }
#pragma unroll
    for (uint c = 0; c < D / 8u; c++)
      for (uint e = 0; e < 4u; e++) s[c][e] *= kept;
#pragma unroll
    for (uint j = 0; j < 8u; j += 2u) {
#pragma unroll
      for (uint i = 0; i < 2u; i++) {
        const float2 e = *(threadgroup const float2 *)(keep + 64u + (j + i) * 8u + (lane % 4u) * 2u);
        z[j + i][0] *= e.x;
        z[j + i][1] *= e.y;
        z[j + i][2] *= e.x;
        z[j + i][3] *= e.y;
      }
      uint a[4], rest[4];
      frag_split(a, rest, z[j], z[j + 1u]);
#pragma unroll
      for (uint c = 0; c < D / 8u; c += 4u) {
        uint b[4], d[4];
        frag_load_t(b, keys, delta_at_a(j * 8u, c, PITCH, lane), lane);
        frag_load_t(d, keys, delta_at_a(j * 8u, c + 2u, PITCH, lane), lane);
        delta_two(s + c, rest, b, lane);
        delta_two(s + c + 2u, rest, d, lane);
        delta_two(s + c, a, b, lane);
        delta_two(s + c + 2u, a, d, lane);
      }
    }
#pragma unroll
    for (uint j = 0; j < 8u; j++) {
      const uint r = first + j * 8u + (lane % 4u) * 2u;
      device float *to = o + ulong(r) * (args.valueHeads * D);
      if (r < n) {
        to[0] = y[j][0];
        to[8] = y[j][2];
      }
      if (r + 1u < n) {
        to[args.valueHeads * D] = y[j][1];
        to[args.valueHeads * D + 8u] = y[j][3];
      }
    }
  }
#pragma unroll
  for (uint c = 0; c < D / 8u; c++) {
    const uint at = (c * 8u + (lane % 4u) * 2u) * D;
    state[at] = s[c][0];
    state[at + D] = s[c][1];
    state[at + 8u] = s[c][2];
    state[at + D + 8u] = s[c][3];
  }
}

//@for D,P in 32,64 64,64 128,128
//@threads 64
kernel void delta_scan_mma_d@D@(
    device const bfloat *q [[buffer(0)]],
    device const bfloat *k [[buffer(1)]],
    device const bfloat *v [[buffer(2)]],
    device const float4 *gates [[buffer(3)]],
    device const bfloat *inverse [[buffer(4)]],
    device const bfloat *scores [[buffer(5)]],
    device const Step *step [[buffer(6)]],
    device float *state [[buffer(7)]],
    device float *o [[buffer(8)]],
    constant DeltaArgs &args [[buffer(9)]],
    threadgroup bfloat *shared [[threadgroup(0)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, weights, [256]);
  delta_scan_mma<@D@u, @P@u>(
      q, k, v, gates, inverse, scores, step, state, o, args, weights, shared, tg.y, tg.x * 32u, tid, sg, lane);
}
//@end
