// What code built with -fsanitize=thread and parts of -fsanitize=undefined
// calls. The names are the compilers' own; neither sanitizer's runtime is
// linked.
#pragma once

extern "C" {

#define MSL_HOOK(N)                                                                 \
  void __tsan_read##N(void* p) { access((uintptr_t)p, N, false, false); }           \
  void __tsan_write##N(void* p) { access((uintptr_t)p, N, true, false); }           \
  void __tsan_unaligned_read##N(void* p) { access((uintptr_t)p, N, false, false); } \
  void __tsan_unaligned_write##N(void* p) { access((uintptr_t)p, N, true, false); }
MSL_HOOK(1)
MSL_HOOK(2)
MSL_HOOK(4)
MSL_HOOK(8)
MSL_HOOK(16)
#undef MSL_HOOK

void __tsan_read_range(void* p, unsigned long n) { access((uintptr_t)p, (unsigned)n, false, false); }
void __tsan_write_range(void* p, unsigned long n) { access((uintptr_t)p, (unsigned)n, true, false); }
void* __tsan_memcpy(void* d, const void* s, unsigned long n) {
  access((uintptr_t)s, (unsigned)n, false, false);
  access((uintptr_t)d, (unsigned)n, true, false);
  return memcpy(d, s, n);
}
void* __tsan_memmove(void* d, const void* s, unsigned long n) {
  access((uintptr_t)s, (unsigned)n, false, false);
  access((uintptr_t)d, (unsigned)n, true, false);
  return memmove(d, s, n);
}
void* __tsan_memset(void* d, int v, unsigned long n) {
  access((uintptr_t)d, (unsigned)n, true, false);
  return memset(d, v, n);
}
// What the same become where the compiler leaves them to the C library: kernels
// are linked with their names wrapped.
void* __wrap_memcpy(void* d, const void* s, unsigned long n) { return __tsan_memcpy(d, s, n); }
void* __wrap_memmove(void* d, const void* s, unsigned long n) { return __tsan_memmove(d, s, n); }
void* __wrap_memset(void* d, int v, unsigned long n) { return __tsan_memset(d, v, n); }
void __tsan_init(void) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// File, line and column lead each data record of these.
struct UbPlace {
  const char* file;
  unsigned line, col;
};

#define MSL_UB(N, TEXT)                                                                                                  \
  void __ubsan_handle_##N##_abort(UbPlace* l, unsigned long, unsigned long) { fail(self(), TEXT " at line %u", l->line); } \
  void __ubsan_handle_##N(UbPlace* l, unsigned long, unsigned long) { fail(self(), TEXT " at line %u", l->line); }
MSL_UB(shift_out_of_bounds, "shift out of range")
MSL_UB(divrem_overflow, "division by zero or overflow")
MSL_UB(out_of_bounds, "array index out of range")
MSL_UB(float_cast_overflow, "float to integer conversion out of range")
MSL_UB(type_mismatch_v1, "misaligned or null access")
#undef MSL_UB

}  // extern "C"
