// A token that may be the next one. The greater value wins, among equal ones
// the lower id.
struct Best {
  float value;
  uint id;
};
inline bool beats(Best a, Best b) { return a.value > b.value || (a.value == b.value && a.id < b.id); }
inline Best no_token() {
  Best b;
  b.value = as_type<float>(0xff800000u); // minus infinity
  b.id = 0xffffffffu;
  return b;
}
inline Best simd_best(Best b) {
  const float top = simd_max(b.value);
  b.id = simd_min(b.value == top ? b.id : 0xffffffffu);
  b.value = top;
  return b;
}
// The best of the threads' of a threadgroup, on thread 0. bests has room for
// one of each simdgroup.
inline Best threadgroup_best(Best b, threadgroup Best *bests, uint tid, uint sg, uint nsg) {
  b = simd_best(b);
  if ((tid & 31u) == 0u) bests[sg] = b;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid == 0u)
    for (uint i = 1; i < nsg; i++)
      if (beats(bests[i], b)) b = bests[i];
  return b;
}
