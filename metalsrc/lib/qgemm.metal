// The kernels of products with 4-bit matrices, for any tile.
struct QgemmArgs {
  uint m, n, k;  // k is a multiple of 64
  uint xs, ys;   // row strides of x and y in elements; xs is a multiple of 8
};

template <typename Tile, typename Put, typename Y>
inline void qgemm(
    device const bfloat *x, device const uint *codes, device const bfloat *scales, device const bfloat *biases,
    device Y *y, constant QgemmArgs &a, threadgroup float *mem, uint3 tg, uint tid, uint sg) {
  DenseRows rows;
  rows.x = x;
  rows.stride = a.xs;
  rows.first = tg.y * Tile::ROWS;
  rows.end = a.m;
  Put out;
  out.y = y;
  out.stride = a.ys;
  out.n = a.n;
  Q4 w;
  q4_set(w, codes, scales, biases, 0u, 0u, 0u);
  Tile::template product<false>(rows, w, w, tg.x * Tile::COLS, a.n, a.k, mem, tid, sg, out);
}

template <typename Tile>
inline void qgemm_pair(
    device const bfloat *x, thread const Q4 &gate, thread const Q4 &up, device bfloat *y, constant QgemmArgs &a,
    threadgroup float *mem, uint3 tg, uint tid, uint sg) {
  DenseRows rows;
  rows.x = x;
  rows.stride = a.xs;
  rows.first = tg.y * Tile::ROWS;
  rows.end = a.m;
  PutSwiGLU out;
  out.y = y;
  out.stride = a.ys;
  out.n = a.n;
  Tile::template product<true>(rows, gate, up, tg.x * (Tile::COLS / 2u), a.n, a.k, mem, tid, sg, out);
}

// Products with the matrices of several experts. A tile has rows first to end of
// the choices sorted by expert, slots; unused tiles are empty.
struct ExpertArgs {
  uint n, k;
  uint xs, ys;
  uint per;  // choices of a row of x
};

template <typename Tile>
inline void experts_pair(
    device const bfloat *x, device const uint *slots, device const uint4 *tiles, device const uint *gc,
    device const bfloat *gs, device const bfloat *gb, device const uint *uc, device const bfloat *us,
    device const bfloat *ub, device bfloat *y, constant ExpertArgs &a, threadgroup float *mem, uint3 tg, uint tid, uint sg) {
  const uint4 tile = tiles[tg.y];
  if (tile.y == tile.z) return;
  SlotRows rows;
  rows.x = x;
  rows.stride = a.xs;
  rows.first = tile.y;
  rows.end = tile.z;
  rows.slots = slots;
  rows.per = a.per;
  PutSwiGLU out;
  out.y = y;
  out.stride = a.ys;
  out.n = a.n;
  Q4 gate;
  q4_set(gate, gc, gs, gb, tile.x, a.n, a.k);
  Q4 up;
  q4_set(up, uc, us, ub, tile.x, a.n, a.k);
  Tile::template product<true>(rows, gate, up, tg.x * (Tile::COLS / 2u), a.n, a.k, mem, tid, sg, out);
}

template <typename Tile>
inline void experts_down(
    device const bfloat *x, device const uint *slots, device const uint4 *tiles, device const uint *codes,
    device const bfloat *scales, device const bfloat *biases, device bfloat *y, constant ExpertArgs &a,
    threadgroup float *mem, uint3 tg, uint tid, uint sg) {
  const uint4 tile = tiles[tg.y];
  if (tile.y == tile.z) return;
  DenseRows rows;
  rows.x = x;
  rows.stride = a.xs;
  rows.first = tile.y;
  rows.end = tile.z;
  PutSlots out;
  out.y = y;
  out.stride = a.ys;
  out.n = a.n;
  out.slots = slots;
  Q4 w;
  q4_set(w, codes, scales, biases, tile.x, a.n, a.k);
  Tile::template product<false>(rows, w, w, tg.x * Tile::COLS, a.n, a.k, mem, tid, sg, out);
}
