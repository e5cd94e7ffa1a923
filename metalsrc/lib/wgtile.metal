// A tile of the products of q4.metal for Hopper's matrix units: BM x 128 results of
// BM / 64 groups of four simdgroups ("warpgroups"; PTX ISA, "wgmma"), which read
// both operands from threadgroup memory and work while the next codes are unpacked.
// Elsewhere it is MmaTile, whose layout of threadgroup memory it shares: 16-byte
// parts of 128-byte rows permuted by the row is what wgmma calls a 128-byte
// swizzle. It wants that to begin at a multiple of 1024 bytes.
template <int BM, int STAGES>
struct WgTile {
  typedef MmaTile<BM, 128, BM / 64, 4, STAGES> Base;
  static constexpr constant uint ROWS = BM;
  static constexpr constant uint COLS = 128;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  struct Acc {
    float d[64];  // [column / 8][row g, row g + 8][2 columns], g as in mma.metal
  };

  // Rows of 8 that follow one another lie 1024 bytes apart.
  static inline ulong tile(uint place) { return ulong((place & 0x3ffffu) >> 4u) | 1ul << 16u | 64ul << 32u | 1ul << 62u; }

  static inline void hold(thread Acc &acc) {
#pragma unroll
    for (uint i = 0; i < 64u; i++) asm volatile("" : "+f"(acc.d[i])::"memory");
  }
  // acc += 64 rows of X at a, times 128 rows of W at b, 16 of k.
  static inline void add(thread Acc &acc, ulong a, ulong b) {
    thread float *d = acc.d;
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %66, 0;\n\twgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, p, 1, 1, 0, 0;\n\t}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b), "r"(1));
  }

  template <bool PAIR, typename Rows, typename Put>
  static inline void product(
      thread const Rows &rows, thread const Q4 &w0, thread const Q4 &w1, uint n0, uint n, uint k,
      threadgroup float *mem, uint tid, uint sg, thread const Put &out) {
    mem += ((0u - mma_place(mem, 0u)) & 1023u) / 4u;
    const uint steps = k / 64u, last = steps - 1u;
    typename Base::Load l;
    Base::template begin<PAIR>(l, rows, w0, w1, n0, n, k, tid);
    const uint group = sg / 4u;
    const uint base = mma_place(mem, 0u);

    Acc acc;
#pragma unroll
    for (uint i = 0; i < 64u; i++) acc.d[i] = 0.0f;
    uint sb = Base::first(l, rows, mem, steps, tid);

    uint stage = 0u;
    for (uint g = 0; g < steps; g++) {
      mma_wait<STAGES - 2>();
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const uint here = g % 2u * Base::WSTEP;
      hold(acc);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      const ulong a = tile(base + stage * Base::XSTEP + group * 8192u), b = tile(base + Base::WAT + here);
#pragma unroll
      for (uint i = 0; i < 4u; i++) add(acc, a + i * 2u, b + i * 2u);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      const uint next = Base::ahead(l, rows, mem, stage, g, steps, tid);
      const uint later = Base::scale_of(l, metal::min(g + 2u, last));
      if (g < last) {
        uint4 q[Base::CB];
        Base::codes_of(l, q, mem, next);
#pragma unroll
        for (uint i = 0; i < 4u; i++) Base::unpack(q, sb, mem, l.wto + (Base::WSTEP - here), i);
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      hold(acc);
      sb = later;
      stage = next;
    }
    const uint lane = tid % 32u;
    finish(acc, rows, rows.first + sg * 16u + lane / 4u, n0, lane, out);
  }

  template <typename Rows, typename Put>
  static inline void finish(thread const Acc &acc, thread const Rows &rows, uint r, uint n0, uint lane, thread const Put &out) {
#pragma unroll
    for (uint half = 0; half < 2u; half++) {
      if (r + half * 8u >= rows.end) continue;
      const ulong at = Put::row(out, r + half * 8u);
#pragma unroll
      for (uint j = 0; j < 16u; j++)
        Put::put(out, at, n0 + j * 8u + lane % 4u * 2u, acc.d[j * 4u + half * 2u], acc.d[j * 4u + half * 2u + 1u]);
    }
  }
  template <typename Rows>
  static inline void finish(thread const Acc &acc, thread const Rows &rows, uint r, uint n0, uint lane, thread const PutSwiGLU &out) {
#pragma unroll
    for (uint half = 0; half < 2u; half++) {
      if (r + half * 8u >= rows.end) continue;
      const ulong at = PutSwiGLU::row(out, r + half * 8u);
#pragma unroll
      for (uint j = 0; j < 16u; j += 2u) {
        const uint i = j * 4u + half * 2u;
        PutSwiGLU::pair(out, at, n0 + j * 4u + lane % 4u * 2u, acc.d[i], acc.d[i + 4u], acc.d[i + 1u], acc.d[i + 5u]);
      }
    }
  }
#else
  template <bool PAIR, typename Rows, typename Put>
  static inline void product(
      thread const Rows &rows, thread const Q4 &w0, thread const Q4 &w1, uint n0, uint n, uint k,
      threadgroup float *mem, uint tid, uint sg, thread const Put &out) {
    Base::template product<PAIR>(rows, w0, w1, n0, n, k, mem, tid, sg, out);
  }
#endif
};
