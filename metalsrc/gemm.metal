//@use tilemma q4 plaintile qgemm
// Products with 4-bit matrices for many rows, on any GPU; gemm_mma.metal has the
// same kernels for NVIDIA's matrix units. Variant tR: R rows and 64 columns of the
// result (of a swiglu 32) for a threadgroup of 128 threads.
//
// Grid: (ceil(n / columns), ceil(m / rows) or the number of tiles, 1).
// Threadgroup memory (0): the larger of (R + 64) * 128 and R * 256 bytes.
typedef PlainTile<64, 64> Tile_t64;
typedef PlainTile<32, 64> Tile_t32;

// y[m][n] = x[m][k] * W^T, as bfloat (store), as float (store_f32), or added to
// what y holds (add).
//@for NAME,V,PUT,Y,G in store_t64,t64,PutBf16,bfloat,4 store_f32_t64,t64,PutF32,float,4 add_t64,t64,PutAdd,float,4 store_t32,t32,PutBf16,bfloat,6 store_f32_t32,t32,PutF32,float,6 add_t32,t32,PutAdd,float,6
//@threads 128 @G@
kernel void qgemm_@NAME@(
    device const bfloat *x [[buffer(0)]],
    device const uint *codes [[buffer(1)]],
    device const bfloat *scales [[buffer(2)]],
    device const bfloat *biases [[buffer(3)]],
    device @Y@ *y [[buffer(4)]],
    constant QgemmArgs &args [[buffer(5)]],
    threadgroup float *mem [[threadgroup(0)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  qgemm<Tile_@V@, @PUT@>(x, codes, scales, biases, y, args, mem, tg, tid, sg);
}
//@end

// y[m][n] = silu(x * gate^T) * (x * up^T), as bfloat.
//@for V,G in t64,4 t32,6
//@threads 128 @G@
kernel void qgemm_swiglu_@V@(
    device const bfloat *x [[buffer(0)]],
    device const uint *gate_codes [[buffer(1)]],
    device const bfloat *gate_scales [[buffer(2)]],
    device const bfloat *gate_biases [[buffer(3)]],
    device const uint *up_codes [[buffer(4)]],
    device const bfloat *up_scales [[buffer(5)]],
    device const bfloat *up_biases [[buffer(6)]],
    device bfloat *y [[buffer(7)]],
    constant QgemmArgs &args [[buffer(8)]],
    threadgroup float *mem [[threadgroup(0)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  Q4 gate;
  q4_set(gate, gate_codes, gate_scales, gate_biases, 0u, 0u, 0u);
  Q4 up;
  q4_set(up, up_codes, up_scales, up_biases, 0u, 0u, 0u);
  qgemm_pair<Tile_@V@>(x, gate, up, y, args, mem, tg, tid, sg);
}
//@end

// Experts, first half: row s of y[choices][n] = swiglu of row slots[s] / per of x
// with the gate and up of its tile's expert.
//@for V,G in t64,4 t32,6
//@threads 128 @G@
kernel void moe_gate_up_rows_@V@(
    device const bfloat *x [[buffer(0)]],
    device const uint *slots [[buffer(1)]],
    device const uint4 *tiles [[buffer(2)]],
    device const uint *gate_codes [[buffer(3)]],
    device const bfloat *gate_scales [[buffer(4)]],
    device const bfloat *gate_biases [[buffer(5)]],
    device const uint *up_codes [[buffer(6)]],
    device const bfloat *up_scales [[buffer(7)]],
    device const bfloat *up_biases [[buffer(8)]],
    device bfloat *y [[buffer(9)]],
    constant ExpertArgs &args [[buffer(10)]],
    threadgroup float *mem [[threadgroup(0)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  experts_pair<Tile_@V@>(x, slots, tiles, gate_codes, gate_scales, gate_biases, up_codes, up_scales, up_biases, y, args, mem, tg, tid, sg);
}
//@end

// Experts, second half: row slots[s] of y[choices][n] = row s of x * down^T.
//@for V,G in t64,4 t32,6
//@threads 128 @G@
kernel void moe_down_rows_@V@(
    device const bfloat *x [[buffer(0)]],
    device const uint *slots [[buffer(1)]],
    device const uint4 *tiles [[buffer(2)]],
    device const uint *codes [[buffer(3)]],
    device const bfloat *scales [[buffer(4)]],
    device const bfloat *biases [[buffer(5)]],
    device bfloat *y [[buffer(6)]],
    constant ExpertArgs &args [[buffer(7)]],
    threadgroup float *mem [[threadgroup(0)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  experts_down<Tile_@V@>(x, slots, tiles, codes, scales, biases, y, args, mem, tg, tid, sg);
}
//@end
