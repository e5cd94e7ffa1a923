//@use q4 mma mmatile wgtile qgemm
// The kernels of gemm.metal for NVIDIA's matrix units (sm_80 and later): the same
// arguments, grids by the tile's own sizes.
// Rows and columns of a tile's result (of a swiglu half the columns), and threads:
//   n128  128 x 128, 256    w128  128 x 128, 128    n64  64 x 128, 128
//   n32    32 x 64,  128
//   g128  128 x 128, 256    g64    64 x 128, 128, by wgmma on Hopper
// Threadgroup memory (0): stages * (rows * 128 + columns * 32) + columns * 256 bytes;
// g tiles 1024 more.
typedef MmaTile<128, 128, 2, 4, 3> Tile_n128;
typedef MmaTile<128, 128, 2, 2, 3> Tile_w128;
typedef MmaTile<64, 128, 1, 4, 3> Tile_n64;
typedef MmaTile<32, 64, 1, 4, 6> Tile_n32;
typedef WgTile<128, 3> Tile_g128;
typedef WgTile<64, 3> Tile_g64;

// y[m][n] = x[m][k] * W^T, as bfloat (store), as float (store_f32), or added to
// what y holds (add).
//@for OP,V,T,G,PUT,Y in store,n128,256,2,PutBf16,bfloat store_f32,n128,256,2,PutF32,float add,n128,256,2,PutAdd,float store,w128,128,2,PutBf16,bfloat store_f32,w128,128,2,PutF32,float add,w128,128,2,PutAdd,float store,n64,128,3,PutBf16,bfloat store_f32,n64,128,3,PutF32,float add,n64,128,3,PutAdd,float store,n32,128,4,PutBf16,bfloat store_f32,n32,128,4,PutF32,float add,n32,128,4,PutAdd,float store,g128,256,2,PutBf16,bfloat store_f32,g128,256,2,PutF32,float add,g128,256,2,PutAdd,float store,g64,128,3,PutBf16,bfloat store_f32,g64,128,3,PutF32,float add,g64,128,3,PutAdd,float
//@threads @T@ @G@
kernel void qgemm_@OP@_@V@(
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
//@for V,T,G in n128,256,2 w128,128,2 n64,128,3 n32,128,4 g128,256,2 g64,128,3
//@threads @T@ @G@
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
//@for V,T,G in n128,256,2 w128,128,2 n64,128,3 n32,128,4 g128,256,2 g64,128,3
//@threads @T@ @G@
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
//@for V,T,G in n128,256,2 w128,128,2 n64,128,3 n32,128,4 g128,256,2 g64,128,3
//@threads @T@ @G@
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
