//@use step best
// The next token drawn at random from what temperature, top-k, top-p and min-p
// leave. Nothing is sorted: what is kept is all tokens down to some logit, which
// two histograms find, and of those one is drawn by giving each an exponential
// variate over its weight and taking the least. The same seed, position and
// logits draw the same token however the work is divided.
//
// d is how many octaves a token's weight 2^-d is below the greatest one's. The
// first histogram has 64 bins an octave, the second 1024 in the bin where a
// limit falls. Tokens closer to the last one kept than 1/65536 of an octave are
// kept too. Below 40 octaves, where all tokens together weigh less than 1e-6,
// nothing is counted, and limits keep either all or none.

// What the host writes before a run: top_k 0, top_p 0 or 1 and min_p 0 keep
// all; temperature below 1e-4 is greedy.
struct Sampling {
  float temperature, top_p, min_p;
  uint top_k;
  uint seed_low, seed_high;
};
struct SampleArgs {
  uint n;      // logits
  uint groups; // candidates of the head, for the greatest logit
};
constant uint BINS = 2560u;
constant uint FINE = 1024u;

// A token's weight counts in units of 2^-13 of its octave's greatest.
inline uint mass_of(float d, uint bin) { return (uint)(metal::exp2((float)(bin / 64u) - d) * 8192.0f + 0.5f); }
inline float unit_of(uint bin) { return metal::exp2(-13.0f - (float)(bin / 64u)); }

// How far a logit is below the greatest; above 40 where it does not count.
struct Scale {
  float top, by;
  bool greedy;
};
inline float depth(thread const Scale &s, float x) {
  if (x == s.top) return 0.0f;
  const float d = (s.top - x) * s.by;
  return d < 40.0f ? d : 1e30f; // what is no number goes below
}
inline uint fine_of(float d, uint bin) { return metal::min((uint)((d * 64.0f - (float)bin) * 1024.0f), FINE - 1u); }

inline Scale find_scale(device const Best *best, device const Sampling *how, uint groups, uint lane) {
  float top = as_type<float>(0xff800000u);
  for (uint i = lane; i < groups; i += 32u) top = metal::max(top, best[i].value);
  Scale s;
  s.top = simd_max(top);
  s.greedy = how[0].temperature < 1e-4f;
  s.by = s.greedy ? 1.44269504f : 1.44269504f / how[0].temperature;
  return s;
}

// Where a running sum over bins reaches a limit: the bin, the sums before it,
// and its own. Without such a bin it is ~0, with the sums of all.
struct Found {
  uint bin, count, own_count;
  float mass, own_mass;
};

// All 256 threads: the first bin at which count reaches k, or, with k 0, mass
// reaches target. Sums begin at those of base. Bins are of the first histogram,
// or of the second, all with unit of bin `in`. n is a multiple of 256.
inline Found find_bin(
    device const uint *counts, device const uint *masses, uint n, uint in, uint k, float target, Found base,
    threadgroup Found *found, threadgroup uint *count_of, threadgroup float *weight_of, uint tid, uint sg, uint lane) {
  const uint each = n / 256u, first = tid * each;
  uint count = 0u;
  float mass = 0.0f;
  for (uint b = first; b < first + each; b++) {
    count += counts[b];
    mass += (float)masses[b] * unit_of(in == 0xffffffffu ? b : in);
  }
  for (uint d = 1; d < 32u; d <<= 1) {
    const uint c = simd_shuffle_up(count, (ushort)d);
    const float m = simd_shuffle_up(mass, (ushort)d);
    if (lane >= d) {
      count += c;
      mass += m;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup); // the memory may be in use from the last search
  if (lane == 31u) {
    count_of[sg] = count;
    weight_of[sg] = mass;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint below = base.count, all = base.count;
  float lighter = base.mass, whole = base.mass;
  for (uint i = 0; i < 8u; i++) {
    all += count_of[i];
    whole += weight_of[i];
    if (i + 1u == sg) {
      below = all;
      lighter = whole;
    }
  }
  // This thread's bins are those between the sums of the thread before and its own.
  uint c = simd_shuffle_up(count, (ushort)1);
  float m = simd_shuffle_up(mass, (ushort)1);
  c = lane == 0u ? below : below + c;
  m = lane == 0u ? lighter : lighter + m;
  const bool here = k > 0u ? c < k && k <= below + count : m < target && target <= lighter + mass;
  if (tid == 0u) {
    found[0].bin = 0xffffffffu;
    found[0].count = all;
    found[0].mass = whole;
    found[0].own_count = 0u;
    found[0].own_mass = 0.0f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (here) {
    // Rounding may let the sum within the thread miss the target: then the last
    // bin that has tokens is the one.
    Found f;
    f.bin = 0xffffffffu;
    f.count = 0u;
    f.own_count = 0u;
    f.mass = 0.0f;
    f.own_mass = 0.0f;
    for (uint b = first; b < first + each; b++) {
      const uint own = counts[b];
      const float weight = (float)masses[b] * unit_of(in == 0xffffffffu ? b : in);
      if (own > 0u) {
        f.bin = b;
        f.count = c;
        f.mass = m;
        f.own_count = own;
        f.own_mass = weight;
      }
      c += own;
      m += weight;
      if (own > 0u && (k > 0u ? c >= k : m >= target)) break;
    }
    found[0] = f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const Found r = found[0];
  return r;
}

// What top-k and top-p cut by the first histogram.
struct Limits {
  Found k, p;
  float target; // the mass that top-p keeps
};
inline Limits find_limits(
    device const uint *hist, device const Sampling *how, threadgroup Found *found, threadgroup uint *count_of,
    threadgroup float *weight_of, uint tid, uint sg, uint lane) {
  Found zero;
  zero.bin = 0u;
  zero.count = 0u;
  zero.own_count = 0u;
  zero.mass = 0.0f;
  zero.own_mass = 0.0f;
  Limits l;
  const uint k = how[0].top_k > 0u ? how[0].top_k : 0xffffffffu;
  l.k = find_bin(hist, hist + BINS, BINS, 0xffffffffu, k, 0.0f, zero, found, count_of, weight_of, tid, sg, lane);
  // The mass of the k greatest: those of the last bin weigh the same within 1%.
  float total = l.k.mass;
  if (l.k.bin != 0xffffffffu) total += l.k.own_mass * ((float)(k - l.k.count) / (float)l.k.own_count);
  l.target = how[0].top_p > 0.0f && how[0].top_p < 1.0f ? how[0].top_p * total : 3e38f;
  l.p = find_bin(hist, hist + BINS, BINS, 0xffffffffu, 0u, l.target, zero, found, count_of, weight_of, tid, sg, lane);
  return l;
}

// The first histogram: counts and masses [BINS], zero before. Grid any x 256
// threads.
//@threads 256
kernel void sample_mass(
    device const float *logits [[buffer(0)]],
    device const Best *best [[buffer(1)]],
    device const Sampling *how [[buffer(2)]],
    device atomic_uint *hist [[buffer(3)]],
    constant SampleArgs &args [[buffer(4)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tgs [[threadgroups_per_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(atomic_uint, own, [2 * 2560]);
  for (uint i = tid; i < 2u * BINS; i += 256u) atomic_store_explicit(&own[i], 0u, memory_order_relaxed);
  const Scale s = find_scale(best, how, args.groups, lane);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = tg * 256u + tid; i < args.n; i += tgs * 256u) {
    const float d = depth(s, logits[i]);
    if (d < 40.0f) {
      const uint bin = metal::min((uint)(d * 64.0f), BINS - 1u);
      atomic_fetch_add_explicit(&own[bin], 1u, memory_order_relaxed);
      atomic_fetch_add_explicit(&own[BINS + bin], mass_of(d, bin), memory_order_relaxed);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = tid; i < 2u * BINS; i += 256u) {
    const uint v = atomic_load_explicit(&own[i], memory_order_relaxed);
    if (v > 0u) atomic_fetch_add_explicit(&hist[i], v, memory_order_relaxed);
  }
}

// The second histograms, zero before: counts and masses [FINE] of the bin where
// top-k falls, then of that where top-p does. Grid any x 256 threads.
//@threads 256
kernel void sample_split(
    device const float *logits [[buffer(0)]],
    device const Best *best [[buffer(1)]],
    device const Sampling *how [[buffer(2)]],
    device const uint *hist [[buffer(3)]],
    device atomic_uint *fine [[buffer(4)]],
    constant SampleArgs &args [[buffer(5)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tgs [[threadgroups_per_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(Found, found, [1]);
  TG_ARRAY(uint, count_of, [8]);
  TG_ARRAY(float, weight_of, [8]);
  const Scale s = find_scale(best, how, args.groups, lane);
  const Limits l = find_limits(hist, how, found, count_of, weight_of, tid, sg, lane);
  for (uint i = tg * 256u + tid; i < args.n; i += tgs * 256u) {
    const float d = depth(s, logits[i]);
    if (d >= 40.0f) continue;
    const uint bin = metal::min((uint)(d * 64.0f), BINS - 1u), at = fine_of(d, bin), mass = mass_of(d, bin);
    if (bin == l.k.bin) {
      atomic_fetch_add_explicit(&fine[at], 1u, memory_order_relaxed);
      atomic_fetch_add_explicit(&fine[FINE + at], mass, memory_order_relaxed);
    }
    if (bin == l.p.bin) {
      atomic_fetch_add_explicit(&fine[2u * FINE + at], 1u, memory_order_relaxed);
      atomic_fetch_add_explicit(&fine[3u * FINE + at], mass, memory_order_relaxed);
    }
  }
}

// Philox 4x32 with ten rounds (Salmon et al., Parallel random numbers: as easy
// as 1, 2, 3, SC 2011): four random words of a counter and a key.
inline uint4 philox(uint4 c, uint2 key) {
  for (int i = 0; i < 10; i++) {
    const ulong a = (ulong)c.x * 0xd2511f53u, b = (ulong)c.z * 0xcd9e8d57u;
    c = uint4((uint)(b >> 32) ^ c.y ^ key.x, (uint)b, (uint)(a >> 32) ^ c.w ^ key.y, (uint)a);
    key.x += 0x9e3779b9u;
    key.y += 0xbb67ae85u;
  }
  return c;
}
// log2 of an exponential variate.
inline float log_exponential(uint r) {
  const float v = (float)r * 2.3283064e-10f + 1.1641532e-10f;
  const float small = v * (1.0f + v * (0.5f + v * (0.33333333f + v * 0.25f)));
  return metal::log2(v < 0.01f ? small : -metal::log(1.0f - metal::min(v, 0.9999999f)));
}

// The best of what is kept, for each threadgroup; argmax_final ends the step.
// Word i & 3 of counter (i >> 2, position of the step's last token, 0, 0) is for
// token i. Grid any x 256 threads; out holds as many candidates.
//@threads 256
kernel void sample_draw(
    device const float *logits [[buffer(0)]],
    device const Best *best [[buffer(1)]],
    device const Sampling *how [[buffer(2)]],
    device const uint *hist [[buffer(3)]],
    device const uint *fine [[buffer(4)]],
    device const Step *step [[buffer(5)]],
    device Best *out [[buffer(6)]],
    constant SampleArgs &args [[buffer(7)]],
    uint tg [[threadgroup_position_in_grid]],
    uint tgs [[threadgroups_per_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  TG_ARRAY(Found, found, [1]);
  TG_ARRAY(uint, count_of, [8]);
  TG_ARRAY(float, weight_of, [8]);
  TG_ARRAY(Best, bests, [8]);
  const Scale s = find_scale(best, how, args.groups, lane);
  const Limits l = find_limits(hist, how, found, count_of, weight_of, tid, sg, lane);
  uint last = 0xffffffffu; // bin*1024 + fine bin of the last that is kept
  if (l.k.bin != 0xffffffffu) {
    const Found f = find_bin(fine, fine + FINE, FINE, l.k.bin, how[0].top_k, 0.0f, l.k, found, count_of, weight_of, tid, sg, lane);
    last = l.k.bin * FINE + metal::min(f.bin, FINE - 1u);
  }
  if (l.p.bin != 0xffffffffu) {
    const Found f = find_bin(fine + 2u * FINE, fine + 3u * FINE, FINE, l.p.bin, 0u, l.target, l.p, found, count_of, weight_of, tid, sg, lane);
    last = metal::min(last, l.p.bin * FINE + metal::min(f.bin, FINE - 1u));
  }
  const float deepest = how[0].min_p > 0.0f ? -metal::log2(how[0].min_p) : 3e38f;
  const uint end = step[0].pos + step[0].n;
  uint2 key;
  key.x = how[0].seed_low;
  key.y = how[0].seed_high;
  Best mine = no_token();
  for (uint q = tg * 256u + tid; q * 4u < args.n; q += tgs * 256u) {
    const uint4 r = philox(uint4(q, end - 1u, 0u, 0u), key);
    for (uint j = 0; j < 4u; j++) {
      const uint i = q * 4u + j;
      if (i >= args.n) break;
      const float d = depth(s, logits[i]);
      const uint bin = metal::min((uint)(metal::min(d, 40.0f) * 64.0f), BINS - 1u);
      const uint at = d < 40.0f ? bin * FINE + fine_of(d, bin) : 0xfffffffeu;
      if (at > last || d > deepest) continue;
      const float x = logits[i];
      if (!(x > as_type<float>(0xff800000u))) continue;
      const float far = d < 40.0f ? d : (s.top - x) * s.by;
      const uint word = j == 0u ? r.x : j == 1u ? r.y : j == 2u ? r.z : r.w;
      const float v = s.greedy ? -far : -far - log_exponential(word);
      if (v > mine.value) {
        mine.value = v;
        mine.id = i;
      }
    }
  }
  mine = threadgroup_best(mine, bests, tid, sg, 8u);
  if (tid == 0u) out[tg] = mine;
}
