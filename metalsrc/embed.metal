// The embedding of the tokens of a chunk.
struct EmbedRowsArgs {
  uint cols, vocab;
};
// h[t] = row tokens[t] of a 4-bit matrix; zero where there is no such row.
// Grid ceil(cols/512) x tokens, 64 threads, 8 columns each.
kernel void embed_rows(
    device const uint *codes [[buffer(0)]],
    device const bfloat *scales [[buffer(1)]],
    device const bfloat *biases [[buffer(2)]],
    device const uint *tokens [[buffer(3)]],
    device float *h [[buffer(4)]],
    constant EmbedRowsArgs &args [[buffer(5)]],
    uint3 tg [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]]) {
  const uint i = tg.x * 64u + tid;
  if (i * 8u >= args.cols) return;
  const uint row = tokens[tg.y];
  uint w = 0u;
  float s = 0.0f;
  float b = 0.0f;
  if (row < args.vocab) {
    w = codes[ulong(row) * (args.cols / 8u) + i];
    s = float(scales[ulong(row) * (args.cols / 64u) + i / 8u]);
    b = float(biases[ulong(row) * (args.cols / 64u) + i / 8u]);
  }
  device float *to = h + ulong(tg.y) * args.cols + i * 8u;
  for (uint j = 0; j < 8u; j++) to[j] = s * float((w >> (4u * j)) & 15u) + b;
}
