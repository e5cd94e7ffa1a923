// Which experts a token goes to.

// A float as a number that orders the same way, above zero; minus zero as
// zero, and what is no number below all others.
inline uint ordered(float f) {
  if (f != f) return 1u;
  const uint u = as_type<uint>(f + 0.0f);
  return (u >> 31) != 0u ? ~u : u | 0x80000000u;
}
inline float unordered(uint k) { return as_type<float>((k >> 31) != 0u ? k & 0x7fffffffu : ~k); }

struct Route {
  uint id;
  float weight;
};
// The k greatest of n <= 256 logits, the lower id first among equals, k at most
// 32: the j-th on lane j, with the logit as its weight. One simdgroup. A round
// finds the best of each lane's 8 by a tree, in which the lower id stands left.
inline Route choose(device const float *logits, uint n, uint k, uint lane) {
  uint key[8];
  float value[8]; // all asked for before the first is looked at
#pragma unroll
  for (uint i = 0; i < 8u; i++) value[i] = logits[metal::min(lane + 32u * i, n - 1u)];
#pragma unroll
  for (uint i = 0; i < 8u; i++) {
    const uint k = ordered(value[i]);
    key[i] = lane + 32u * i < n ? k : 0u;
  }
  Route r;
  r.id = 0u;
  r.weight = 0.0f;
  for (uint j = 0; j < k; j++) {
    uint best[8], at[8];
#pragma unroll
    for (uint i = 0; i < 8u; i++) {
      best[i] = key[i];
      at[i] = i;
    }
#pragma unroll
    for (uint d = 1; d < 8u; d <<= 1) {
#pragma unroll
      for (uint i = 0; i < 8u; i += 2u * d) {
        const bool right = best[i + d] > best[i];
        best[i] = right ? best[i + d] : best[i];
        at[i] = right ? at[i + d] : at[i];
      }
    }
    const uint top = simd_max(best[0]);
    const uint tied = best[0] == top ? lane + 32u * at[0] : 0xffffffffu;
    const uint id = simd_min(tied);
#pragma unroll
    for (uint i = 0; i < 8u; i++) key[i] = lane + 32u * i == id ? 0u : key[i];
    if (lane == j) {
      r.id = id;
      r.weight = unordered(top);
    }
  }
  return r;
}
// The softmax over the k chosen, of which lane 0 has the greatest.
inline float route_weight(Route r, uint k, uint lane) {
  const float greatest = simd_broadcast(r.weight, (ushort)0);
  const float e = lane < k ? metal::exp(r.weight - greatest) : 0.0f;
  return e / simd_sum(e);
}
