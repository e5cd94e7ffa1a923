// Memory that launches to come will read, and no launch before them writes: a
// kernel with time to spare has it brought into the cache that all units share.
struct AheadArgs {
  uint bytes, then_bytes; // of two ranges, from pointers to 16 bytes
};
// Asks for threadgroup tg's share, of n threadgroups, of some bytes. A simdgroup
// calls it.
inline void ask_ahead(device const uint *from, uint bytes, uint tg, uint n, uint lane) {
#ifdef MSL_CUDA
  const uint piece = 2048u;
  for (uint at = (tg * 32u + lane) * piece; at < bytes; at += n * 32u * piece)
    msl_prefetch((device const uchar *)from + at, metal::min(piece, bytes - at) & ~15u);
#else
  (void)from;
  (void)bytes;
  (void)tg;
  (void)n;
  (void)lane;
#endif
}
