// Relaxed atomics on device and threadgroup memory.
#pragma once

#ifdef MSL_CHECK
#define MSL_ATOMIC(p, wr) access((uintptr_t)(p), 4, wr, true)
#else
#define MSL_ATOMIC(p, wr) (void)0
#endif

extern "C" {

unsigned msl_atomic_add_u32(void* p, unsigned v) {
  MSL_ATOMIC(p, true);
  return __atomic_fetch_add((unsigned*)p, v, __ATOMIC_RELAXED);
}

unsigned msl_atomic_or_u32(void* p, unsigned v) {
  MSL_ATOMIC(p, true);
  return __atomic_fetch_or((unsigned*)p, v, __ATOMIC_RELAXED);
}

unsigned msl_atomic_max_u32(void* p, unsigned v) {
  MSL_ATOMIC(p, true);
  unsigned o = __atomic_load_n((unsigned*)p, __ATOMIC_RELAXED);
  while (o < v && !__atomic_compare_exchange_n((unsigned*)p, &o, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return o;
}

unsigned msl_atomic_load_u32(const void* p) {
  MSL_ATOMIC(p, false);
  return __atomic_load_n((const unsigned*)p, __ATOMIC_RELAXED);
}

void msl_atomic_store_u32(void* p, unsigned v) {
  MSL_ATOMIC(p, true);
  __atomic_store_n((unsigned*)p, v, __ATOMIC_RELAXED);
}

float msl_atomic_add_f32(void* p, float v) {
  MSL_ATOMIC(p, true);
  unsigned o = __atomic_load_n((unsigned*)p, __ATOMIC_RELAXED), n;
  float f;
  do {
    memcpy(&f, &o, 4);
    float g = f + v;
    memcpy(&n, &g, 4);
  } while (!__atomic_compare_exchange_n((unsigned*)p, &o, n, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return f;
}

}  // extern "C"
