// What the forms of attention of one token share.
struct AttendArgs {
  uint heads, kv_heads, rotary;
  uint splits;
  float eps, scale; // scale of the scores, times log2(e)
};

// Where a part of the positions [0, pos] begins and ends: parts of a multiple
// of 8 positions, the last ones shorter or empty.
inline uint part_length(uint pos, uint splits) { return (pos / 8u / splits + 1u) * 8u; }

// One simdgroup: y = norm(x)*gain*scale, turned, of a head of D floats, to threadgroup
// memory. A lane has elements lane, lane+32, ...
template <int D>
inline void norm_turn(
    threadgroup float *y, device const float *x, device const bfloat *gain, device const float2 *rope, uint rotary,
    float eps, float scale, uint lane) {
  float v[D / 32];
  float square = 0.0f;
#pragma unroll
  for (int i = 0; i < D / 32; i++) {
    v[i] = x[lane + 32u * (uint)i];
    square += v[i] * v[i];
  }
  const float inv = metal::rsqrt(simd_sum(square) / (float)D + eps) * scale;
#pragma unroll
  for (int i = 0; i < D / 32; i++) y[lane + 32u * (uint)i] = v[i] * inv * float(gain[lane + 32u * (uint)i]);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  const uint pairs = rotary / 2u;
  for (uint j = lane; j < pairs; j += 32u) {
    const float a = y[j], b = y[j + pairs];
    const float2 turn = rope[j];
    y[j] = a * turn.x - b * turn.y;
    y[j + pairs] = b * turn.x + a * turn.y;
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
}
