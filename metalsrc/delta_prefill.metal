//@use mixer
// Gated DeltaNet over the rows of a prefill step, in chunks of 64 rows. With g
// the logarithm of a row's decay, G its running sum inside the chunk, S the
// state before the chunk and V' the values that each row adds to it:
//
//   V'[i] = b[i] (v[i] - e^G[i] k[i]S - sum(j<i) e^(G[i]-G[j]) (k[i].k[j]) V'[j])
//   o[i]  = e^G[i] q[i]S + sum(j<=i) e^(G[i]-G[j]) (q[i].k[j]) V'[j]
//   S     = e^G[last] S + sum(j) e^(G[last]-G[j]) k[j] x V'[j]
//
// Row i of the first line, solved for V': V' = T (v - e^G kS), with T the
// inverse of I + (the weights of the sum, times b) and then b[j] on column j;
// the second line is o = e^G qS + P V'. T and P need no state, so delta_intra
// makes them for all chunks and heads at once, and delta_scan then walks the
// chunks. Rows beyond the step's last are rows of zeros, which change nothing.
//
// q, k, v are bfloat [head][padded][dim], padded = rows rounded up to 64; gates
// are float4 [value head][padded]: G in two parts, the sum and its rounding
// (only differences of G matter), then b, then 0. T and P are float
// [value head][chunk][64][64]; the state is float [value head][key][value].
struct DeltaArgs {
  uint rows;       // that the launch is made for; step.n counts if less
  uint padded;     // rows rounded up to 64
  uint keyHeads;
  uint valueHeads;
  uint stride;     // of the projection (delta_conv), in elements
};

// delta_conv: causal convolution with 4 taps over time, then SiLU; heads of q
// and k are made unit vectors, q also scaled by 1/sqrt(dim).
// One simdgroup: 16 rows of one head (q heads, then k heads, then v heads), a
// lane dim/32 neighbouring channels. Grid: (padded/64, 2*keyHeads+valueHeads),
// threads 128. Rows before the step come from the ring.
template <typename T, uint D>
inline void delta_conv(
    device const T *p, device const float *ring, device const float *taps, device const Step *step,
    device bfloat *q, device bfloat *k, device bfloat *v, constant DeltaArgs &args, uint2 tg, uint sg, uint lane) {
  constexpr uint N = D / 32u;
  const uint n = metal::min(args.rows, step->n);
  const uint channels = (2u * args.keyHeads + args.valueHeads) * D;
  const uint c = tg.y * D + lane * N;
  const uint first = tg.x * 64u + sg * 16u;
  device bfloat *out = v;
  uint head = tg.y;
  if (head < args.keyHeads) {
    out = q;
  } else if (head < 2u * args.keyHeads) {
    out = k;
    head -= args.keyHeads;
  } else {
    head -= 2u * args.keyHeads;
  }
  out += (ulong(head) * args.padded) * D + lane * N;
  float w[4][N], x[7][N];  // x: the three rows before, and four
  for (uint j = 0; j < 4u; j++) mixer_load<N>(w[j], taps + j * channels + c);
  for (uint j = 0; j < 3u; j++) {
    const uint r = first + j;  // three more than the row
    for (uint i = 0; i < N; i++) x[j][i] = 0.0f;
    if (r >= 3u) {
      mixer_load<N>(x[j], p + ulong(metal::min(r - 3u, n - 1u)) * args.stride + c);
    } else if (step->pos + r >= 3u) {
      mixer_load<N>(x[j], ring + ((step->pos + r - 3u) & 3u) * channels + c);
    }
  }
  for (uint r = first; r < first + 16u; r += 4u) {
#pragma unroll
    for (uint t = 0; t < 4u; t++) mixer_load<N>(x[3u + t], p + ulong(metal::min(r + t, n - 1u)) * args.stride + c);
#pragma unroll
    for (uint t = 0; t < 4u; t++) {
      float y[N];
      float sum = 0.0f;
      for (uint i = 0; i < N; i++) {
        const float a = w[0][i] * x[t][i] + w[1][i] * x[t + 1u][i] + w[2][i] * x[t + 2u][i] + w[3][i] * x[t + 3u][i];
        y[i] = a * mixer_sigmoid(a);
        sum += y[i] * y[i];
      }
      float scale = 1.0f;
      if (tg.y < 2u * args.keyHeads) {
        scale = metal::rsqrt(simd_sum(sum) + 1e-6f);
        if (tg.y < args.keyHeads) scale *= metal::rsqrt(float(D));
      }
      for (uint i = 0; i < N; i++) y[i] = r + t < n ? y[i] * scale : 0.0f;
      mixer_store<N>(out + ulong(r + t) * D, y);
    }
#pragma unroll
    for (uint j = 0; j < 3u; j++)
      for (uint i = 0; i < N; i++) x[j][i] = x[j + 4u][i];
  }
}

//@for S,T,D in bf16,bfloat,32 bf16,bfloat,64 bf16,bfloat,128 f32,float,32 f32,float,64 f32,float,128
//@threads 128 5
kernel void delta_conv_@S@_d@D@(
    device const @T@ *p [[buffer(0)]],
    device const float *ring [[buffer(1)]],
    device const float *taps [[buffer(2)]],
    device const Step *step [[buffer(3)]],
    device bfloat *q [[buffer(4)]],
    device bfloat *k [[buffer(5)]],
    device bfloat *v [[buffer(6)]],
    constant DeltaArgs &args [[buffer(7)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  delta_conv<@T@, @D@u>(p, ring, taps, step, q, k, v, args, uint2(tg.x, tg.y), sg, lane);
}
//@end

// delta_tail: the last rows of the step into the ring, for the step that
// follows. Must come after delta_conv. Grid: (ceil(channels/256), 4), threads
// 256.
struct DeltaTailArgs {
  uint rows, stride, channels;
};

//@for S,T in bf16,bfloat f32,float
//@threads 256
kernel void delta_tail_@S@(
    device const @T@ *p [[buffer(0)]],
    device const Step *step [[buffer(1)]],
    device float *ring [[buffer(2)]],
    constant DeltaTailArgs &args [[buffer(3)]],
    uint3 at [[thread_position_in_grid]]) {
  const uint n = metal::min(args.rows, step->n);
  if (at.x >= args.channels || at.y >= n) return;
  const uint row = n - 1u - at.y;
  ring[((step->pos + row) & 3u) * args.channels + at.x] = float(p[ulong(row) * args.stride + at.x]);
}
//@end

// delta_gates: from the projections a and b of each value head the decay and
// its running sum inside the chunk, and b = sigmoid. g = -decay softplus(a+dt),
// decay = e^A_log. Grid: (chunks, ceil(valueHeads/32)), threads 256; 8 KiB.
// The sum has two parts: a chunk's G may reach -10000 where one float would
// leave differences, which are what matters, with an error of 1e-3.
struct DeltaGateArgs {
  uint rows, padded, valueHeads;
  uint strideA, strideB;  // elements between rows
};

template <typename T>
inline void delta_gates(
    device const T *a, device const T *b, device const float *decay, device const float *dt, device const Step *step,
    device float4 *gates, constant DeltaGateArgs &args, threadgroup float *g, uint2 tg, uint tid) {
  const uint n = metal::min(args.rows, step->n);
  const uint head = tg.y * 32u + tid % 32u;
  const bool on = head < args.valueHeads;
  for (uint i = tid / 32u; i < 64u; i += 8u) {
    const uint r = tg.x * 64u + i;
    float x = 0.0f;
    if (on && r < n) {
      x = float(a[ulong(r) * args.strideA + head]) + dt[head];
      x = mixer_softplus(x);
      x *= -decay[head];
    }
    g[i * 32u + tid % 32u] = x;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid >= 32u || !on) return;
  float sum = 0.0f, rest = 0.0f;
  for (uint i = 0; i < 64u; i++) {
    const uint r = tg.x * 64u + i;
    const float x = g[i * 32u + tid];
    const float s = sum + x;
    const float v = s - sum;
    rest += (sum - (s - v)) + (x - v);
    sum = s;
    const float beta = r < n ? mixer_sigmoid(float(b[ulong(r) * args.strideB + head])) : 0.0f;
    gates[ulong(head) * args.padded + r] = float4(sum, rest, beta, 0.0f);
  }
}

//@for S,T in bf16,bfloat f32,float
//@threads 256
kernel void delta_gates_@S@(
    device const @T@ *a [[buffer(0)]],
    device const @T@ *b [[buffer(1)]],
    device const float *decay [[buffer(2)]],
    device const float *dt [[buffer(3)]],
    device const Step *step [[buffer(4)]],
    device float4 *gates [[buffer(5)]],
    constant DeltaGateArgs &args [[buffer(6)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]]) {
  TG_ARRAY(float, g, [64 * 32]);
  delta_gates<@T@>(a, b, decay, dt, step, gates, args, g, uint2(tg.x, tg.y), tid);
}
//@end

// delta_intra: T and P of every chunk and value head.
// Grid: (chunks, valueHeads), threads 128 (each simdgroup 16 rows of the
// products; then each of 64 threads one column of the inverse, by forward
// substitution in registers). 17 KiB.
template <uint D>
inline void delta_products(device const bfloat *a, device const bfloat *b, threadgroup float *m, uint sg) {
  simdgroup_matrix<float, 8, 8> acc[2][8];
  for (uint i = 0; i < 2u; i++)
    for (uint j = 0; j < 8u; j++) acc[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  a += (sg * 16u) * D;
  for (uint c = 0; c < D; c += 8u) {
    simdgroup_matrix<bfloat, 8, 8> fa[2];
    simdgroup_load(fa[0], a + c, D);
    simdgroup_load(fa[1], a + 8u * D + c, D);
    for (uint j = 0; j < 8u; j++) {
      simdgroup_matrix<bfloat, 8, 8> fb;
      simdgroup_load(fb, b + j * 8u * D + c, D, ulong2(0, 0), true);
      simdgroup_multiply_accumulate(acc[0][j], fa[0], fb, acc[0][j]);
      simdgroup_multiply_accumulate(acc[1][j], fa[1], fb, acc[1][j]);
    }
  }
  for (uint i = 0; i < 2u; i++)
    for (uint j = 0; j < 8u; j++) simdgroup_store(acc[i][j], m + (sg * 16u + i * 8u) * 64u + j * 8u, 64);
}

// delta_inverse: column j of (I+m)^-1, m strictly lower triangular with zeros
// written elsewhere; the column times scale goes to out[i*64].
inline void delta_inverse(threadgroup const float *m, uint j, float scale, device float *out) {
  float c[64];
#pragma unroll
  for (uint i = 0; i < 64u; i++) c[i] = 0.0f;
#pragma unroll
  for (uint i = 0; i < 64u; i++) {
    float x = 0.0f;
#pragma unroll
    for (uint k = 0; k < i; k += 4u) {
      const float4 r = *(threadgroup const float4 *)(m + i * 64u + k);
      x += r.x * c[k] + r.y * c[k + 1u] + r.z * c[k + 2u] + r.w * c[k + 3u];
    }
    c[i] = (i == j ? 1.0f : 0.0f) - x;
    out[i * 64u] = c[i] * scale;
  }
}

inline float delta_decay(float4 to, float4 from) { return metal::exp((to.x - from.x) + (to.y - from.y)); }

//@for D in 32 64 128
//@threads 128
kernel void delta_intra_d@D@(
    device const bfloat *q [[buffer(0)]],
    device const bfloat *k [[buffer(1)]],
    device const float4 *gates [[buffer(2)]],
    device float *inverse [[buffer(3)]],
    device float *scores [[buffer(4)]],
    constant DeltaArgs &args [[buffer(5)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  TG_ARRAY(float, m, [64 * 64]);
  TG_ARRAY(float4, g, [64]);
  const uint head = tg.y / (args.valueHeads / args.keyHeads);
  const ulong at = (ulong(head) * args.padded + tg.x * 64u) * @D@u;
  const ulong to = (ulong(tg.y) * (args.padded / 64u) + tg.x) * 4096u;
  if (tid < 64u) g[tid] = gates[ulong(tg.y) * args.padded + tg.x * 64u + tid];
  delta_products<@D@u>(k + at, k + at, m, sg);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint x = tid; x < 4096u; x += 128u) {
    const uint i = x / 64u, j = x % 64u;
    m[x] = j < i ? g[i].z * delta_decay(g[i], g[j]) * m[x] : 0.0f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid < 64u) delta_inverse(m, tid, g[tid].z, inverse + to + tid);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  delta_products<@D@u>(q + at, k + at, m, sg);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint x = tid; x < 4096u; x += 128u) {
    const uint i = x / 64u, j = x % 64u;
    scores[to + x] = j <= i ? delta_decay(g[i], g[j]) * m[x] : 0.0f;
  }
}
//@end

// A simdgroup's part of delta_scan: columns column to column+7 of a value
// head. mine is its scratch: three strips [8][64], and 8x8 for a diagonal.
template <uint D>
inline void delta_scan(
    device const bfloat *q, device const bfloat *k, device const bfloat *v, device const float4 *gates,
    device const float *inverse, device const float *scores, device const Step *step, device float *state,
    device float *o, constant DeltaArgs &args, threadgroup float *mine, uint head, uint column, uint lane) {
  typedef simdgroup_matrix<float, 8, 8> Tile;
  typedef simdgroup_matrix<bfloat, 8, 8> Stored;
  threadgroup float *xs = mine;
  threadgroup float *ys = mine + 512;
  threadgroup float *zs = mine + 1024;
  threadgroup float *diagonal = mine + 1536;
  const uint n = metal::min(args.rows, step->n);
  const uint keyHead = head / (args.valueHeads / args.keyHeads);
  q += ulong(keyHead) * args.padded * D;
  k += ulong(keyHead) * args.padded * D;
  v += ulong(head) * args.padded * D + column;
  gates += ulong(head) * args.padded;
  inverse += ulong(head) * args.padded * 64u;
  scores += ulong(head) * args.padded * 64u;
  state += ulong(head) * D * D + column;
  o += head * D + column;
  Tile s[D / 8u];
  Tile zero = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
#pragma unroll
  for (uint c = 0; c < D / 8u; c++) simdgroup_load(s[c], state + c * 8u * D, D, ulong2(0, 0), true);
  diagonal[lane] = 0.0f;
  diagonal[lane + 32u] = 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);

  for (uint first = 0; first < n; first += 64u) {
    for (uint t = 0; t < 64u; t += 8u) {  // S'k' and S'q'
      Tile x = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      Tile y = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
#pragma unroll
      for (uint c = 0; c < D / 8u; c++) {
        Stored b;
        simdgroup_load(b, k + ulong(first + t) * D + c * 8u, D, ulong2(0, 0), true);
        simdgroup_multiply_accumulate(x, s[c], b, x);
        simdgroup_load(b, q + ulong(first + t) * D + c * 8u, D, ulong2(0, 0), true);
        simdgroup_multiply_accumulate(y, s[c], b, y);
      }
      simdgroup_store(x, xs + t, 64);
      simdgroup_store(y, ys + t, 64);
    }
    const float4 last = gates[first + 63u];
    if (lane < 8u) diagonal[lane * 9u] = metal::exp(last.x + last.y);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = lane; i < 512u; i += 32u) {
      const uint r = i / 8u, c = i % 8u;
      const float4 g = gates[first + r];
      const float keep = metal::exp(g.x + g.y);
      xs[c * 64u + r] = float(v[ulong(first + r) * D + c]) - keep * xs[c * 64u + r];
      ys[c * 64u + r] *= keep;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint t = 0; t < 64u; t += 8u) {  // V', transposed
      Tile z = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      for (uint j = 0; j <= t; j += 8u) {
        Tile x, b;
        simdgroup_load(x, xs + j, 64);
        simdgroup_load(b, inverse + ulong(first + t) * 64u + j, 64, ulong2(0, 0), true);
        simdgroup_multiply_accumulate(z, x, b, z);
      }
      simdgroup_store(z, zs + t, 64);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint t = 0; t < 64u; t += 8u) {
      Tile y;
      simdgroup_load(y, ys + t, 64);
      for (uint j = 0; j <= t; j += 8u) {
        Tile z, b;
        simdgroup_load(z, zs + j, 64);
        simdgroup_load(b, scores + ulong(first + t) * 64u + j, 64, ulong2(0, 0), true);
        simdgroup_multiply_accumulate(y, z, b, y);
      }
      simdgroup_store(y, xs + t, 64);  // which nobody needs any more
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = lane; i < 512u; i += 32u) {
      const uint r = i / 8u, c = i % 8u;
      zs[c * 64u + r] *= delta_decay(last, gates[first + r]);
      if (first + r < n) o[ulong(first + r) * (args.valueHeads * D) + c] = xs[c * 64u + r];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Tile d;
    simdgroup_load(d, diagonal, 8);
#pragma unroll
    for (uint c = 0; c < D / 8u; c++) simdgroup_multiply_accumulate(s[c], d, s[c], zero);
    for (uint t = 0; t < 64u; t += 8u) {
      Tile z;
      simdgroup_load(z, zs + t, 64);
#pragma unroll
      for (uint c = 0; c < D / 8u; c++) {
        Stored b;
        simdgroup_load(b, k + ulong(first + t) * D + c * 8u, D);
        simdgroup_multiply_accumulate(s[c], z, b, s[c]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the scratch is free again
  }
#pragma unroll
  for (uint c = 0; c < D / 8u; c++) simdgroup_store(s[c], state + c * 8u * D, D, ulong2(0, 0), true);
}

// delta_scan: the chunks of a head in order; the state before and after.
// A simdgroup keeps 8 value columns of the state in its simdgroup matrices,
// transposed (S' [8][dim]), so that everything of those columns stays with it:
// what it multiplies by (k, q, T, P) comes from device memory, the same for all
// simdgroups, and the scratch for scaling by row is its own. The barriers are
// the threadgroup's all the same: they keep the simdgroups together, so that
// one of them fetches what the others then find in the cache.
// Grid: (dim/32, valueHeads), threads 128; 25 KiB. o is float [rows][valueHeads*dim].
//@for D in 32 64 128
//@threads 128
kernel void delta_scan_d@D@(
    device const bfloat *q [[buffer(0)]],
    device const bfloat *k [[buffer(1)]],
    device const bfloat *v [[buffer(2)]],
    device const float4 *gates [[buffer(3)]],
    device const float *inverse [[buffer(4)]],
    device const float *scores [[buffer(5)]],
    device const Step *step [[buffer(6)]],
    device float *state [[buffer(7)]],
    device float *o [[buffer(8)]],
    constant DeltaArgs &args [[buffer(9)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(float, scratch, [4 * 1600]);
  delta_scan<@D@u>(q, k, v, gates, inverse, scores, step, state, o, args, scratch + sg * 1600u, tg.y, tg.x * 32u + sg * 8u, lane);
}
//@end

// delta_norm: x = rmsnorm(o)*gain*silu(z) for each row and value head.
// One simdgroup a row and head. Grid: (rows, ceil(valueHeads/4)), threads 128.
struct DeltaNormArgs {
  uint rows, valueHeads;
  uint strideZ, strideX;  // elements between rows
  float eps;
};

template <typename T, uint D>
inline void delta_norm(
    device const float *o, device const T *z, device const float *gain, device const Step *step, device bfloat *x,
    constant DeltaNormArgs &args, uint row, uint head, uint lane) {
  constexpr uint N = D / 32u;
  if (row >= metal::min(args.rows, step->n) || head >= args.valueHeads) return;
  const uint c = head * D + lane * N;
  float a[N], b[N], w[N];
  mixer_load<N>(a, o + ulong(row) * (args.valueHeads * D) + c);
  mixer_load<N>(b, z + ulong(row) * args.strideZ + c);
  mixer_load<N>(w, gain + lane * N);
  float sum = 0.0f;
  for (uint i = 0; i < N; i++) sum += a[i] * a[i];
  const float scale = metal::rsqrt(simd_sum(sum) / float(D) + args.eps);
  for (uint i = 0; i < N; i++) a[i] = a[i] * scale * w[i] * (b[i] * mixer_sigmoid(b[i]));
  mixer_store<N>(x + ulong(row) * args.strideX + c, a);
}

//@for S,T,D in bf16,bfloat,32 bf16,bfloat,64 bf16,bfloat,128 f32,float,32 f32,float,64 f32,float,128
//@threads 128
kernel void delta_norm_@S@_d@D@(
    device const float *o [[buffer(0)]],
    device const @T@ *z [[buffer(1)]],
    device const float *gain [[buffer(2)]],
    device const Step *step [[buffer(3)]],
    device bfloat *x [[buffer(4)]],
    constant DeltaNormArgs &args [[buffer(5)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  delta_norm<@T@, @D@u>(o, z, gain, step, x, args, tg.x, tg.y * 4u + sg, lane);
}
//@end
