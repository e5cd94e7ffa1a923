// A tile of the products of q4.metal for NVIDIA's matrix units: BM x BN results of
// GM * GN simdgroups, each with every GM-th 16 rows and BN / GN columns side by
// side; 64 of k at a time.
//
// What comes from memory comes by asynchronous copies, STAGES - 1 steps ahead: in
// one batch X of a step and the codes of the step after. Threadgroup memory:
// STAGES tiles of X, STAGES times the codes, and two tiles of unpacked W: while one
// is multiplied the other is made. Codes are unpacked by the thread that copied
// them. One barrier a step. A row of a tile is 128 bytes; its 16-byte parts are
// permuted by the row's number, so that neither 8 parts of a row nor 8 rows of a
// part share a bank.
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
  static constexpr constant uint XSTEP = BM * 128;
  static constexpr constant uint CSTEP = BN * 32;
  static constexpr constant uint WSTEP = BN * 128;
  static constexpr constant uint CAT = STAGES * XSTEP;        // where the codes begin
  static constexpr constant uint WAT = CAT + STAGES * CSTEP;  // and the tiles of W

  struct Acc {
    float4 c[MI][NI];
  };
  // What a thread brings, and where to.
  struct Load {
    uint xat[CA];  // its parts of X, from x, if finding them takes long
    uint xto;
    uint blocks;   // 16 rows each that are there
    device const uint *codes;
    uint cat, cto;
    device const ushort *scales;
    device const ushort *biases;
    uint sat;  // its row of them
    uint wto;  // its first part of a row of W
  };

  template <typename Rows>
  static inline uint x_at(thread const Rows &rows, uint i, uint tid) {
    return Rows::at(rows, metal::min(rows.first + tid / 8u + i * (T / 8u), rows.end - 1u)) + tid % 8u * 8u;
  }
  template <typename Rows>
  static inline void copy_x(thread const Load &l, thread const Rows &rows, threadgroup float *mem, uint stage, uint step, uint tid) {
#pragma unroll
    for (uint i = 0; i < CA; i++)
      if (tid / 8u + i * (T / 8u) < l.blocks * 16u) {
        const uint at = Rows::NEAR ? x_at(rows, i, tid) : l.xat[i];
        mma_copy(mem, l.xto + stage * XSTEP + i * (T * 16u), (device const uint4 *)(rows.x + (at + step * 64u)));
      }
  }
  static inline void copy_codes(thread const Load &l, threadgroup float *mem, uint stage, uint step) {
#pragma unroll
    for (uint i = 0; i < CB; i++)
      mma_copy(mem, l.cto + stage * CSTEP + i * 16u, (device const uint4 *)(l.codes + (l.cat + step * 8u + i * 4u)));
  }

  // Scale, and bias above it, of a step.
  static inline uint scale_of(thread const Load &l, uint step) {
    return uint(l.scales[l.sat + step]) | (uint(l.biases[l.sat + step]) << 16u);
  }

  // Unpacks a quarter of the codes q to the tile of W at place to.
  static inline void unpack(thread const uint4 *q, uint sb, threadgroup float *mem, uint to, uint quarter) {
#pragma unroll
    for (uint i = 0; i < CB; i++) {
      const uint4 w = mma_unpack(q[i][int(quarter)], mma_twice(sb), mma_twice(sb >> 16u));
      mma_store(mem, to ^ ((i * 4u + quarter) * 16u), w);
    }
  }
  static inline void codes_of(thread const Load &l, thread uint4 *q, threadgroup float *mem, uint stage) {
#pragma unroll
    for (uint i = 0; i < CB; i++) q[i] = ((threadgroup uint4 *)mem)[(l.cto + stage * CSTEP) / 16u + i];
  }

  // acc += X * W^T of one step, and the codes q of the next to the tile at to. FULL:
  // all of the simdgroup's rows, else mine blocks of them.
  template <bool FULL>
  static inline void multiply(
      thread Acc &acc, thread const uint4 *q, uint sb, threadgroup float *mem, uint fa, uint fb, uint to,
      uint mine, uint lane) {
#pragma unroll
    for (uint k = 0; k < 4u; k++) {
      uint4 x[MI];
#pragma unroll
      for (uint i = 0; i < MI; i++)
        if (FULL || i < mine) mma_load(x[i], mem, (fa + i * (GM * 2048u)) ^ (k * 32u), lane);
#pragma unroll
      for (uint j = 0; j < NI; j += 2u) {
        uint4 w;
        mma_load(w, mem, (fb + j * 1024u) ^ (k * 32u), lane);
#pragma unroll
        for (uint i = 0; i < MI; i++)
          if (FULL || i < mine) {
            mma_add(acc.c[i][j], x[i], w.x, w.y, lane);
            mma_add(acc.c[i][j + 1u], x[i], w.z, w.w, lane);
          }
      }
      unpack(q, sb, mem, to, k);
    }
  }

  // What thread tid brings: part tid % 8 of rows tid / 8 and every T / 8 on of X, and
  // 32 * CB codes of a row of W.
  template <bool PAIR, typename Rows>
  static inline void begin(thread Load &l, thread const Rows &rows, thread const Q4 &w0, thread const Q4 &w1, uint n0, uint n, uint k, uint tid) {
    l.blocks = (metal::min(rows.end - rows.first, uint(BM)) + 15u) / 16u;
#pragma unroll
    for (uint i = 0; i < CA; i++)
      if (!Rows::NEAR) l.xat[i] = x_at(rows, i, tid);
    l.xto = tid / 8u * 128u + (((tid % 8u) ^ (tid / 8u % 8u)) << 4u);
    const uint brow = tid * CB / 2u, part = tid * CB % 2u * 4u;
    l.wto = WAT + brow * 128u + ((part ^ (brow % 8u)) << 4u);
    l.cto = CAT + tid * (CB * 16u);
    const uint row = metal::min(n0 + Side<PAIR>::row(brow), n - 1u);
    const bool up = Side<PAIR>::up(brow);
    l.codes = up ? w1.codes : w0.codes;
    l.cat = row * (k / 8u) + part;
    l.scales = (device const ushort *)(up ? w1.scales : w0.scales);
    l.biases = (device const ushort *)(up ? w1.biases : w0.biases);
    l.sat = row * (k / 64u);
  }

  // Starts the copies of the first steps and makes the first tile of W. Returns
  // scale and bias of the second step.
  template <typename Rows>
  static inline uint first(thread const Load &l, thread const Rows &rows, threadgroup float *mem, uint steps, uint tid) {
    copy_codes(l, mem, 0u, 0u);
    mma_commit();
    for (uint g = 0; g + 1u < uint(STAGES); g++) {
      if (g < steps) copy_x(l, rows, mem, g, g, tid);
      if (g + 1u < steps) copy_codes(l, mem, g + 1u, g + 1u);
      mma_commit();
    }
    const uint sb = scale_of(l, 0u);
    uint4 q[CB];
    mma_wait<STAGES - 1>();
    codes_of(l, q, mem, 0u);
#pragma unroll
    for (uint i = 0; i < 4u; i++) unpack(q, sb, mem, l.wto, i);
    return scale_of(l, metal::min(1u, steps - 1u));
  }

  // Starts the copies that step g leaves room for, and returns the next stage.
  template <typename Rows>
  static inline uint ahead(
      thread const Load &l, thread const Rows &rows, threadgroup float *mem, uint stage, uint g, uint steps, uint tid) {
    const uint before = stage == 0u ? uint(STAGES - 1) : stage - 1u;
    if (g + uint(STAGES - 1) < steps) copy_x(l, rows, mem, before, g + uint(STAGES - 1), tid);
    if (g + uint(STAGES) < steps) copy_codes(l, mem, stage, g + uint(STAGES));
    mma_commit();
    return stage + 1u == uint(STAGES) ? 0u : stage + 1u;
  }

  template <bool PAIR, typename Rows, typename Put>
  static inline void product(
      thread const Rows &rows, thread const Q4 &w0, thread const Q4 &w1, uint n0, uint n, uint k,
      threadgroup float *mem, uint tid, uint sg, thread const Put &out) {
    const uint lane = tid % 32u, gm = sg % uint(GM), gn = sg / uint(GM);
    const uint steps = k / 64u, last = steps - 1u;
    Load l;
    begin<PAIR>(l, rows, w0, w1, n0, n, k, tid);
    // Where the simdgroup's fragments are, and how many blocks of 16 rows it has.
    const uint fa = (gm * 16u + lane % 16u) * 128u + (((lane / 16u) ^ (lane % 8u)) << 4u);
    const uint fb = WAT + (gn * (NI * 8u) + lane % 8u + lane / 16u * 8u) * 128u + (((lane / 8u % 2u) ^ (lane % 8u)) << 4u);
    const uint mine = (l.blocks + uint(GM) - 1u - gm) / uint(GM);

    Acc acc;
#pragma unroll
    for (uint i = 0; i < MI; i++)
#pragma unroll
      for (uint j = 0; j < NI; j++) acc.c[i][j] = float4(0.0f);
    uint sb = first(l, rows, mem, steps, tid);
    uint4 q[CB];
    codes_of(l, q, mem, 0u);  // something, if there is no second step

    uint stage = 0u;  // the batch's that is multiplied
    for (uint g = 0; g < steps; g++) {
      mma_wait<STAGES - 2>();
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const uint next = ahead(l, rows, mem, stage, g, steps, tid);
      const uint later = scale_of(l, metal::min(g + 2u, last));
      if (g < last) codes_of(l, q, mem, next);
      const uint here = g % 2u * WSTEP;
      if (mine == MI)
        multiply<true>(acc, q, sb, mem, fa + stage * XSTEP, fb + here, l.wto + (WSTEP - here), mine, lane);
      else
        multiply<false>(acc, q, sb, mem, fa + stage * XSTEP, fb + here, l.wto + (WSTEP - here), mine, lane);
      sb = later;
      stage = next;
    }
    finish(acc, rows, n0, gm, gn, lane, out);
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
