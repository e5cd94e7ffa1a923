// Products with 4-bit matrices, C[m][n] = X[m][k] * W[n][k]^T, a tile of a
// threadgroup at a time. What a kernel does with a tile is put together from
// - a tile: how the product is made (PlainTile, and MmaTile on NVIDIA);
// - rows: where the rows of X are (DenseRows, SlotRows);
// - a put: what becomes of the results (the Put structs).
// k is a multiple of 64; rows of X begin at multiples of 16 bytes. Weights are
// rounded to bfloat as they are unpacked; sums are float.

// A 4-bit matrix: 8 codes in a word, low end first; a scale and a bias for each
// 64 columns; value = scale * code + bias.
struct Q4 {
  device const uint *codes;
  device const bfloat *scales;
  device const bfloat *biases;
};

// Makes q matrix e of several, [n][k] each, that lie one after the other.
inline void q4_set(
    thread Q4 &q, device const uint *codes, device const bfloat *scales, device const bfloat *biases, uint e, uint n, uint k) {
  const ulong at = ulong(e) * ulong(n) * ulong(k);
  q.codes = codes + at / 8u;
  q.scales = scales + at / 64u;
  q.biases = biases + at / 64u;
}

inline uint pack_bf16(float lo, float hi) {
  return uint(as_type<ushort>(bfloat(lo))) | (uint(as_type<ushort>(bfloat(hi))) << 16u);
}

// The 8 weights of a word, as bfloat.
inline uint4 q4_unpack(uint w, float s, float b) {
  uint4 r;
  r.x = pack_bf16(s * float(w & 15u) + b, s * float((w >> 4u) & 15u) + b);
  r.y = pack_bf16(s * float((w >> 8u) & 15u) + b, s * float((w >> 12u) & 15u) + b);
  r.z = pack_bf16(s * float((w >> 16u) & 15u) + b, s * float((w >> 20u) & 15u) + b);
  r.w = pack_bf16(s * float((w >> 24u) & 15u) + b, s * float(w >> 28u) + b);
  return r;
}

// ---- rows of X ---------------------------------------------------------------
// first and end are rows of C; at() is where row r of C begins in x, for r below
// end. NEAR: it costs little to ask again.
struct DenseRows {
  device const bfloat *x;
  uint stride;
  uint first;
  uint end;
  static constexpr constant bool NEAR = true;
  static inline uint at(thread const DenseRows &s, uint r) { return r * s.stride; }
};
// Row r belongs to choice slots[r], and choice c to row c / per of x.
struct SlotRows {
  device const bfloat *x;
  uint stride;
  uint first;
  uint end;
  device const uint *slots;
  uint per;
  static constexpr constant bool NEAR = false;
  static inline uint at(thread const SlotRows &s, uint r) { return s.slots[r] / s.per * s.stride; }
};

inline float silu(float x) { return x / (1.0f + metal::exp(-x)); }

// Stores columns c and c + 1 of a row of n.
inline void put_bf16(device bfloat *y, uint stride, uint n, uint c, float a, float b) {
  if (c + 1u < n && stride % 2u == 0u) {
    *(device uint *)y = pack_bf16(a, b);
    return;
  }
  if (c < n) y[0] = bfloat(a);
  if (c + 1u < n) y[1] = bfloat(b);
}

// ---- results -------------------------------------------------------------------
// row() is where row r of C begins in y; put() stores two neighbouring columns c
// and c+1 of it (c is even), pair() those of gate and up. If rows begin at even
// places both go in one store.
struct PutBf16 {
  device bfloat *y;
  uint stride;
  uint n;
  static inline ulong row(thread const PutBf16 &o, uint r) { return ulong(r) * o.stride; }
  static inline void put(thread const PutBf16 &o, ulong at, uint c, float a, float b) { put_bf16(o.y + at + c, o.stride, o.n, c, a, b); }
};
struct PutF32 {
  device float *y;
  uint stride;
  uint n;
  static inline ulong row(thread const PutF32 &o, uint r) { return ulong(r) * o.stride; }
  static inline void put(thread const PutF32 &o, ulong at, uint c, float a, float b) {
    device float *y = o.y + at + c;
    if (c + 1u < o.n && o.stride % 2u == 0u) {
      *(device float2 *)y = float2(a, b);
      return;
    }
    if (c < o.n) y[0] = a;
    if (c + 1u < o.n) y[1] = b;
  }
};
struct PutAdd {
  device float *y;
  uint stride;
  uint n;
  static inline ulong row(thread const PutAdd &o, uint r) { return ulong(r) * o.stride; }
  static inline void put(thread const PutAdd &o, ulong at, uint c, float a, float b) {
    device float *y = o.y + at + c;
    if (c + 1u < o.n && o.stride % 2u == 0u) {
      *(device float2 *)y = *(device float2 *)y + float2(a, b);
      return;
    }
    if (c < o.n) y[0] += a;
    if (c + 1u < o.n) y[1] += b;
  }
};
struct PutSwiGLU {
  device bfloat *y;
  uint stride;
  uint n;
  static inline ulong row(thread const PutSwiGLU &o, uint r) { return ulong(r) * o.stride; }
  static inline void pair(thread const PutSwiGLU &o, ulong at, uint c, float g0, float u0, float g1, float u1) {
    put_bf16(o.y + at + c, o.stride, o.n, c, silu(g0) * u0, silu(g1) * u1);
  }
};
// Row r goes where its choice has its place.
struct PutSlots {
  device bfloat *y;
  uint stride;
  uint n;
  device const uint *slots;
  static inline ulong row(thread const PutSlots &o, uint r) { return ulong(o.slots[r]) * o.stride; }
  static inline void put(thread const PutSlots &o, ulong at, uint c, float a, float b) { put_bf16(o.y + at + c, o.stride, o.n, c, a, b); }
};

// ---- gate beside up --------------------------------------------------------------
// The rows of W in a tile: one matrix's, or those of gate and up by turns of 8,
// so that whoever holds a result of gate holds that of up too.
template <bool PAIR>
struct Side {
  static inline uint row(uint j) { return PAIR ? ((j >> 4u) << 3u) | (j & 7u) : j; }
  static inline bool up(uint j) { return PAIR && (j & 8u) != 0u; }
  static inline uint cols(uint bn) { return PAIR ? bn / 2u : bn; }
};
