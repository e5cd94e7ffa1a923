// What the prefill mixers share.

// The step record: token is not read here; pos is the position of row 0, n the
// rows that count (a launch made for more rows skips the others).
struct Step {
  uint token, pos, n, pad;
};

// Four neighbours of a row at once.
template <typename T>
struct MixerVec {};
template <>
struct MixerVec<float> {
  typedef float4 Four;
};
template <>
struct MixerVec<bfloat> {
  typedef bfloat4 Four;
};

// N (1, 2 or 4) neighbours, as floats.
template <uint N, typename T>
inline void mixer_load(thread float *to, device const T *from) {
  if (N == 4u) {
    const typename MixerVec<T>::Four v = *(device const typename MixerVec<T>::Four *)from;
    to[0] = float(v.x);
    to[1 % N] = float(v.y);
    to[2 % N] = float(v.z);
    to[3 % N] = float(v.w);
  } else {
    for (uint i = 0; i < N; i++) to[i] = float(from[i]);
  }
}
template <uint N>
inline void mixer_store(device bfloat *to, thread const float *from) {
  if (N == 4u) {
    bfloat4 v;
    v.x = bfloat(from[0]);
    v.y = bfloat(from[1 % N]);
    v.z = bfloat(from[2 % N]);
    v.w = bfloat(from[3 % N]);
    *(device bfloat4 *)to = v;
  } else {
    for (uint i = 0; i < N; i++) to[i] = bfloat(from[i]);
  }
}

inline float mixer_sigmoid(float x) { return 1.0f / (1.0f + metal::exp(-x)); }

// ln(1+e^x). MSL has no log1p: with u = 1+y rounded, ln(u) y/(u-1) is ln(1+y)
// to the last bits (Kahan). From 20 on it is x in float.
inline float mixer_softplus(float x) {
  if (x > 20.0f) return x;
  const float y = metal::exp(x);
  const float u = 1.0f + y;
  return u == 1.0f ? y : metal::log(u) * (y / (u - 1.0f));
}
