// A tile of the products of q4.metal for any GPU: BM x BN results of 128 threads,
// 64 of k at a time, through TileMma. Threadgroup memory: both operands, and in the
// end the results in their place.
template <int BM, int BN>
struct PlainTile {
  typedef TileMma<bfloat, BM, BN, 64, 4> Mma;
  static constexpr constant uint ROWS = BM;
  static constexpr constant uint COLS = BN;

  template <bool PAIR, typename Rows, typename Put>
  static inline void product(
      thread const Rows &rows, thread const Q4 &w0, thread const Q4 &w1, uint n0, uint n, uint k,
      threadgroup float *mem, uint tid, uint sg, thread const Put &out) {
    threadgroup bfloat *sa = (threadgroup bfloat *)mem;
    threadgroup bfloat *sb = sa + BM * 64;
    constexpr uint WA = BM / 2;  // columns of X, and of W, that a thread brings
    constexpr uint WB = BN / 2;
    const uint ra = tid / (64u / WA), ca = tid % (64u / WA) * WA;
    const uint rb = tid / (64u / WB), cb = tid % (64u / WB) * WB;
    const bool ina = rows.first + ra < rows.end;
    device const bfloat *x = rows.x + (ina ? Rows::at(rows, rows.first + ra) : 0u) + ca;
    const uint row = n0 + Side<PAIR>::row(rb);
    const bool inb = row < n;
    const uint at = inb ? row : 0u;
    const bool up = Side<PAIR>::up(rb);
    device const uint *codes = (up ? w1.codes : w0.codes) + ulong(at) * (k / 8u) + cb / 8u;
    device const bfloat *scales = (up ? w1.scales : w0.scales) + ulong(at) * (k / 64u);
    device const bfloat *biases = (up ? w1.biases : w0.biases) + ulong(at) * (k / 64u);
    threadgroup uint4 *ta = (threadgroup uint4 *)(sa + ra * 64u + ca);
    threadgroup uint4 *tb = (threadgroup uint4 *)(sb + rb * 64u + cb);

    auto acc = Mma::make();
    Mma::clear(acc, sg);
    for (uint k0 = 0; k0 < k; k0 += 64u) {
      for (uint i = 0; i < WA / 8u; i++)
        ta[i] = ina ? ((device const uint4 *)(x + k0))[i] : uint4(0u);
      const float s = inb ? float(scales[k0 / 64u]) : 0.0f;
      const float b = inb ? float(biases[k0 / 64u]) : 0.0f;
      for (uint i = 0; i < WB / 8u; i++) tb[i] = q4_unpack(codes[k0 / 8u + i], s, b);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      Mma::step(acc, sa, sb, sg);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    Mma::store(acc, mem, sg);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    finish(rows, mem, n0, tid, out);
  }

  // One result after the other: neighbouring threads have neighbouring columns.
  template <typename Rows, typename Put>
  static inline void finish(thread const Rows &rows, threadgroup float *mem, uint n0, uint tid, thread const Put &out) {
    for (uint i = tid; i < uint(BM * BN / 2); i += 128u) {
      const uint r = i / (BN / 2), c = i % (BN / 2) * 2u;
      if (rows.first + r < rows.end) Put::put(out, Put::row(out, rows.first + r), n0 + c, mem[r * BN + c], mem[r * BN + c + 1u]);
    }
  }
  template <typename Rows>
  static inline void finish(thread const Rows &rows, threadgroup float *mem, uint n0, uint tid, thread const PutSwiGLU &out) {
    for (uint i = tid; i < uint(BM * BN / 4); i += 128u) {
      const uint r = i / (BN / 4), c = i % (BN / 4) * 2u;
      threadgroup float *p = mem + r * BN + (c >> 3u) * 16u + (c & 7u);
      if (rows.first + r < rows.end) PutSwiGLU::pair(out, PutSwiGLU::row(out, rows.first + r), n0 + c, p[0], p[8], p[1], p[9]);
    }
  }
};
