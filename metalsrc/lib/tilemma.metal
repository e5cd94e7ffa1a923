// One small abstraction over the two ways to multiply a staged tile:
//   auto acc = TileMma<T, BM, BN, BK, NSG>::make();  no copy: the value is born in place
//   ::clear(acc, sg)
//   ::step(acc, sa, sb, sg)   C += A * B^T with A[BM][BK], B[BN][BK] staged in
//                             threadgroup memory, row major, no padding
//   ::store(acc, sc, sg)      C[BM][BN] into threadgroup memory
// All NSG simdgroups of the threadgroup call each of them together. The tensor
// variant uses only what is independent of the lane layout: plain tensors as
// operands, a cooperative tensor as destination, store().
#ifdef TENSOR_OPS
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>

template <typename T, int BM, int BN, int BK, int NSG>
struct TileMma {
  typedef tensor<threadgroup T, dextents<int32_t, 2>, tensor_inline> Operand;
  typedef tensor<threadgroup float, dextents<int32_t, 2>, tensor_inline> Result;
  typedef mpp::tensor_ops::matmul2d<
      mpp::tensor_ops::matmul2d_descriptor(
          BM, BN, BK, false, true, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate),
      execution_simdgroups<NSG>>
      Op;

  static inline auto make() { return Op().template get_destination_cooperative_tensor<Operand, Operand, float>(); }
  template <typename Acc>
  static inline void clear(thread Acc &acc, uint) {
    for (ushort i = 0; i < acc.get_capacity(); i++)
      if (acc.is_valid_element(i)) acc[i] = 0.0f;
  }
  template <typename Acc>
  static inline void step(thread Acc &acc, threadgroup T *sa, threadgroup T *sb, uint) {
    Operand a(sa, dextents<int32_t, 2>(BK, BM));
    Operand b(sb, dextents<int32_t, 2>(BK, BN));
    Op().run(a, b, acc);
  }
  template <typename Acc>
  static inline void store(thread Acc &acc, threadgroup float *sc, uint) {
    Result c(sc, dextents<int32_t, 2>(BN, BM));
    acc.store(c);
  }
};
#else
template <int PM, int PN>
struct TileAcc {
  simdgroup_matrix<float, 8, 8> c[PM][PN];
};
template <typename T, int BM, int BN, int BK, int NSG>
struct TileMma {
  // Simdgroups in two columns; each takes a (BM/(NSG/2)) x (BN/2) patch.
  static constexpr constant int PM = BM / (NSG / 2) / 8;
  static constexpr constant int PN = BN / 2 / 8;
  typedef TileAcc<PM, PN> Acc;
  static inline Acc make() { return Acc(); }
  static inline void clear(thread Acc &acc, uint) {
#pragma unroll
    for (int i = 0; i < PM; i++)
#pragma unroll
      for (int j = 0; j < PN; j++) acc.c[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  static inline void step(thread Acc &acc, threadgroup T *sa, threadgroup T *sb, uint sg) {
    threadgroup T *pa = sa + (sg / 2u) * (PM * 8) * BK;
    threadgroup T *pb = sb + (sg % 2u) * (PN * 8) * BK;
    for (int k = 0; k < BK; k += 8) {
      simdgroup_matrix<T, 8, 8> fa[PM];
      simdgroup_matrix<T, 8, 8> fb[PN];
#pragma unroll
      for (int i = 0; i < PM; i++) simdgroup_load(fa[i], pa + i * 8 * BK + k, BK);
#pragma unroll
      for (int j = 0; j < PN; j++) simdgroup_load(fb[j], pb + j * 8 * BK + k, BK, ulong2(0, 0), true);
#pragma unroll
      for (int i = 0; i < PM; i++)
#pragma unroll
        for (int j = 0; j < PN; j++) simdgroup_multiply_accumulate(acc.c[i][j], fa[i], fb[j], acc.c[i][j]);
    }
  }
  static inline void store(thread Acc &acc, threadgroup float *sc, uint sg) {
    threadgroup float *pc = sc + (sg / 2u) * (PM * 8) * BN + (sg % 2u) * (PN * 8);
#pragma unroll
    for (int i = 0; i < PM; i++)
#pragma unroll
      for (int j = 0; j < PN; j++) simdgroup_store(acc.c[i][j], pc + i * 8 * BN + j * 8, BN);
  }
};
#endif
