// A tile of the products of q4.metal for NVIDIA's matrix units: BM x BN results of
// GM * GN simdgroups, each with every GM-th 16 rows and BN / GN columns side by
// side; 64 of k at a time.
//
// Threadgroup memory: STAGES tiles of X, which arrive by asynchronous copies
// STAGES - 1 steps ahead, and two of W: while one is multiplied the other is
// unpacked from codes that were loaded a step earlier. One barrier a step. A row
// of a tile is 128 bytes; its 16-byte parts are permuted by the row's number, so
// that neither rows nor columns of 8 parts share a bank.
//
// Rows past the end are those of the last row again, columns past n those of the
// last one: they come to nothing, since they are not stored. Of a tile that is
// not full, 16 rows that are all past the end are left out.
template <int BM, int BN, int GM, int GN, int STAGES>
struct MmaTile {
  static constexpr constant uint ROWS = BM;
  static constexpr constant uint COLS = BN;
  static constexpr constant uint T = 32 * GM * GN;     // threads
  static constexpr constant uint MI = BM / 16 / GM;    // blocks of 16 rows of a simdgroup
  static constexpr constant uint NI = BN / 8 / GN;     // blocks of 8 columns, an even number
  static constexpr constant uint CA = BM * 8 / T;      // parts of a tile of X that a thread copies
  static constexpr constant uint CB = BN * 2 / T;      // runs of 32 codes that a thread unpacks
  static constexpr constant uint WAT = STAGES * BM * 128;  // where the tiles of W begin

  struct Acc {
    float4 c[MI][NI];
  };
  // What a thread brings of W: codes of one step, scale and bias twice.
  struct Codes {
    uint4 q[CB];
    uint s, b;
  };

  static inline void fetch(
      thread Codes &c, device const uint *codes, device const ushort *scales, device const ushort *biases, uint step) {
#pragma unroll
    for (uint i = 0; i < CB; i++) c.q[i] = ((device const uint4 *)(codes + step * 8u))[i];
    c.s = uint(scales[step]) * 0x10001u;
    c.b = uint(biases[step]) * 0x10001u;
  }

  // Unpacks a quarter of c to the tile of W at place to.
  static inline void unpack(thread const Codes &c, threadgroup float *mem, uint to, uint part, uint swizzle, uint quarter) {
#pragma unroll
    for (uint i = 0; i < CB; i++) {
      const uint4 w = mma_unpack(c.q[i][int(quarter)], c.s, c.b);
      mma_store(mem, to + (((part + i * 4u + quarter) ^ swizzle) << 4u), w);
    }
  }

  // acc += X * W^T of one step; FULL: all of the simdgroup's rows, else mine
  // blocks of them.
  template <bool FULL>
  static inline void multiply(
      thread Acc &acc, threadgroup float *mem, uint fa, uint fb, uint mine, uint lane, thread const Codes &next, uint to, uint part,
      uint swizzle) {
#pragma unroll
    for (uint q = 0; q < 4u; q++) {
      uint4 a[MI];
#pragma unroll
      for (uint i = 0; i < MI; i++)
        if (FULL || i < mine) mma_load(a[i], mem, (fa + i * (GM * 2048u)) ^ (q * 32u), lane);
#pragma unroll
      for (uint j = 0; j < NI; j += 2u) {
        uint4 b;
        mma_load(b, mem, (fb + j * 1024u) ^ (q * 32u), lane);
#pragma unroll
        for (uint i = 0; i < MI; i++)
          if (FULL || i < mine) {
            mma_add(acc.c[i][j], a[i], b.x, b.y, lane);
            mma_add(acc.c[i][j + 1u], a[i], b.z, b.w, lane);
          }
      }
      unpack(next, mem, to, part, swizzle, q);
    }
  }

  template <bool PAIR, typename Rows, typename Put>
  static inline void product(
      thread const Rows &rows, thread const Q4 &w0, thread const Q4 &w1, uint n0, uint n, uint k,
      threadgroup float *mem, uint tid, uint sg, thread const Put &out) {
    const uint lane = tid % 32u, gm = sg % uint(GM), gn = sg / uint(GM);
    const uint steps = k / 64u;
    const uint blocks = (metal::min(rows.end - rows.first, uint(BM)) + 15u) / 16u;
    const uint mine = (blocks + uint(GM) - 1u - gm) / uint(GM);

    // This thread's parts of X: part tid % 8 of rows tid / 8 and every T / 8 on.
    uint xat[CA];
#pragma unroll
    for (uint i = 0; i < CA; i++)
      xat[i] = Rows::at(rows, metal::min(rows.first + tid / 8u + i * (T / 8u), rows.end - 1u)) + tid % 8u * 8u;
    const uint xto = tid / 8u * 128u + (((tid % 8u) ^ (tid / 8u % 8u)) << 4u);
    // And of W: 32 * CB codes of one row.
    const uint brow = tid * CB / 2u, part = tid * CB % 2u * 4u;
    const uint row = metal::min(n0 + Side<PAIR>::row(brow), n - 1u);
    const bool up = Side<PAIR>::up(brow);
    device const uint *codes = (up ? w1.codes : w0.codes) + ulong(row) * (k / 8u) + part;
    device const ushort *scales = (device const ushort *)(up ? w1.scales : w0.scales) + ulong(row) * (k / 64u);
    device const ushort *biases = (device const ushort *)(up ? w1.biases : w0.biases) + ulong(row) * (k / 64u);
    const uint bto = WAT + brow * 128u;
    // Where its fragments are.
    const uint fa = (gm * 16u + lane % 16u) * 128u + (((lane / 16u) ^ (lane % 8u)) << 4u);
    const uint fb = WAT + (gn * (NI * 8u) + lane % 8u + lane / 16u * 8u) * 128u + (((lane / 8u % 2u) ^ (lane % 8u)) << 4u);

    Acc acc;
#pragma unroll
    for (uint i = 0; i < MI; i++)
#pragma unroll
      for (uint j = 0; j < NI; j++) acc.c[i][j] = float4(0.0f);

    for (uint s = 0; s < uint(STAGES - 1); s++) {
      if (s < steps) copy(rows.x, xat, mem, xto + s * (BM * 128u), s, tid, blocks);
      mma_commit();
    }
    Codes c;
    fetch(c, codes, scales, biases, 0u);
#pragma unroll
    for (uint q = 0; q < 4u; q++) unpack(c, mem, bto, part, brow % 8u, q);
    fetch(c, codes, scales, biases, metal::min(1u, steps - 1u));

    uint stage = 0u, ahead = STAGES - 1;  // stages to multiply, and to fill
    for (uint s = 0; s < steps; s++) {
      mma_wait<STAGES - 2>();
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (s + uint(STAGES - 1) < steps) copy(rows.x, xat, mem, xto + ahead * (BM * 128u), s + uint(STAGES - 1), tid, blocks);
      mma_commit();
      Codes later;
      fetch(later, codes, scales, biases, metal::min(s + 2u, steps - 1u));
      const uint here = s % 2u * (BN * 128u), there = BN * 128u - here;
      if (mine == MI)
        multiply<true>(acc, mem, fa + stage * (BM * 128u), fb + here, mine, lane, c, bto + there, part, brow % 8u);
      else
        multiply<false>(acc, mem, fa + stage * (BM * 128u), fb + here, mine, lane, c, bto + there, part, brow % 8u);
#pragma unroll
      for (uint i = 0; i < CB; i++) c.q[i] = later.q[i];
      c.s = later.s;
      c.b = later.b;
      stage = stage + 1u == uint(STAGES) ? 0u : stage + 1u;
      ahead = ahead + 1u == uint(STAGES) ? 0u : ahead + 1u;
    }
    finish(acc, rows, n0, gm, gn, lane, out);
  }

  static inline void copy(
      device const bfloat *x, thread const uint *xat, threadgroup float *mem, uint to, uint step, uint tid, uint blocks) {
#pragma unroll
    for (uint i = 0; i < CA; i++)
      if (tid / 8u + i * (T / 8u) < blocks * 16u) mma_copy(mem, to + i * (T * 16u), x + xat[i] + step * 64u);
  }

  template <typename Rows, typename Put>
  static inline void finish(thread const Acc &acc, thread const Rows &rows, uint n0, uint gm, uint gn, uint lane, thread const Put &out) {
#pragma unroll
    for (uint i = 0; i < MI; i++) {
      const uint r = rows.first + (i * uint(GM) + gm) * 16u + lane / 4u;
      const uint c = n0 + gn * (NI * 8u) + lane % 4u * 2u;
      if (r < rows.end) {
        const ulong at = Put::row(out, r);
#pragma unroll
        for (uint j = 0; j < NI; j++) Put::put(out, at, c + j * 8u, acc.c[i][j].x, acc.c[i][j].y);
      }
      if (r + 8u < rows.end) {
        const ulong at = Put::row(out, r + 8u);
#pragma unroll
        for (uint j = 0; j < NI; j++) Put::put(out, at, c + j * 8u, acc.c[i][j].z, acc.c[i][j].w);
      }
    }
  }
  template <typename Rows>
  static inline void finish(
      thread const Acc &acc, thread const Rows &rows, uint n0, uint gm, uint gn, uint lane, thread const PutSwiGLU &out) {
#pragma unroll
    for (uint i = 0; i < MI; i++) {
      const uint r = rows.first + (i * uint(GM) + gm) * 16u + lane / 4u;
      const uint c = n0 + gn * (NI * 4u) + lane % 4u * 2u;
#pragma unroll
      for (uint j = 0; j < NI; j += 2u) {
        const float4 g = acc.c[i][j], u = acc.c[i][j + 1u];
        if (r < rows.end) PutSwiGLU::pair(out, PutSwiGLU::row(out, r), c + j * 4u, g.x, u.x, g.y, u.y);
        if (r + 8u < rows.end) PutSwiGLU::pair(out, PutSwiGLU::row(out, r + 8u), c + j * 4u, g.z, u.z, g.w, u.w);
      }
    }
  }
};
