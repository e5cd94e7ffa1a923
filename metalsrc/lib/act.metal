// Activations, and bfloat16 taken out of words.
inline float sigmoid(float x) { return 1.0f / (1.0f + metal::exp(-x)); }
inline float silu(float x) { return x / (1.0f + metal::exp(-x)); }
// ln(1 + e^x), with its digits kept where e^x is small against 1.
inline float softplus(float x) {
  const float e = metal::exp(metal::min(x, 20.0f));
  const float small = e * (1.0f - e * (0.5f - e * (0.33333333f - 0.25f * e)));
  const float f = e < 0.01f ? small : metal::log(1.0f + e);
  return x > 20.0f ? x : f;
}
// The low and the high bfloat16 of a word.
inline float bf_lo(uint w) { return as_type<float>(w << 16); }
inline float bf_hi(uint w) { return as_type<float>(w & 0xffff0000u); }
inline float4 bf_four(uint2 w) { return float4(bf_lo(w.x), bf_hi(w.x), bf_lo(w.y), bf_hi(w.y)); }
