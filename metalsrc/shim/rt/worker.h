// The state of one OS thread that runs threadgroups.
#pragma once

namespace {

constexpr unsigned kMaxThreads = 1024;
// Not a power of two: equal offsets in different stacks must not fall into the
// same cache set.
constexpr size_t kStack = 64 * 1024 + 9 * 64;
constexpr uint64_t kCanary = 0x5afe57ac4b0770f1;  // at the far end of each stack
#ifndef MSL_TG_LIMIT
#define MSL_TG_LIMIT (32 * 1024)  // threadgroup memory of Apple's GPUs
#endif
constexpr size_t kTgLimit = MSL_TG_LIMIT;
constexpr unsigned kMaxArrays = 64;               // threadgroup arrays of one kernel
// A worker lies at a multiple of this, its stacks behind it, so that the stack
// pointer of a fiber leads to its worker.
constexpr uintptr_t kRegion = 128 << 20;

enum State : uint8_t { Unstarted, Running, AtTgBarrier, AtCollective, Done };

struct Fiber {
  void* sp;
  char* stack;
};

struct Simdgroup {
  unsigned full, live, arrived;  // masks of lanes
  MslCollective fn;
  int site;
  void* args[32];
  unsigned epoch;
};

// A TG_ARRAY of the running threadgroup.
struct Array {
  int id;
  size_t off;
};

// Who touched a byte last, and under which epochs: threadgroup plus one,
// thread, barriers of that kind of memory so far, barriers of its simdgroup so
// far, and whether atomically.
struct Mark {
  uint64_t g : 24, t : 11, e : 16, se : 12, at : 1;
};

// The checker's note on a byte: its last writer and its last reader.
struct Cell {
  Mark w, r;
};

// Bytes that a launch may touch.
struct Range {
  uintptr_t lo, hi;
  Cell* cells;
  bool dev;
};

struct Worker {
  MslPlay* play;
  const MslLaunch* launch;
  Fiber fib[kMaxThreads];
  Fiber main, dump;
  char* stacks;

  alignas(256) char arena[2 * kTgLimit];  // threadgroup memory
  size_t dynamic;     // of it for threadgroup(i)
  size_t arena_used;  // so far
  Array arrays[kMaxArrays];
  unsigned narrays;

  unsigned tg[3], nthreads, nsg;  // what th was made for
  MslThread th[kMaxThreads];
  MslGroup group;
  unsigned tgid;

  unsigned next;  // next entry of order not yet started
  unsigned order[kMaxThreads];
  unsigned fiber_of[kMaxThreads];
  State state[kMaxThreads];
  unsigned freef[kMaxThreads], nfree;
  unsigned ready[kMaxThreads], rhead, rcount;  // ring of thread ids
  unsigned tg_arrived, exited, tg_flags;
  unsigned cur;   // running thread
  unsigned curf;  // running fiber
  Simdgroup sg[kMaxThreads / 32];
  uint64_t rng;
  bool failed;

  // Of the checker.
  unsigned ep_tg, ep_dev;  // barrier epochs, by memory kind
  Range range[33];
  unsigned nrange;
  Cell arena_cells[kTgLimit];
};

constexpr size_t kStacksAt = ((sizeof(Worker) + 4095) & ~(size_t)4095) + kStack;  // room below the first, too
static_assert(kStacksAt + kStack * kMaxThreads <= kRegion, "a worker fits in its region");

// For code that runs on a fiber.
inline Worker* self() { return (Worker*)((uintptr_t)__builtin_frame_address(0) & ~(kRegion - 1)); }

uint64_t rnd(Worker* w) {
  uint64_t x = w->rng;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return w->rng = x;
}

// grow takes threadgroup memory up to an offset into use. It is NaN in every
// float format, and to the checker unwritten.
void grow(Worker* w, size_t to) {
  size_t from = w->arena_used, n = to - from;
  memset(w->arena + from, 0xff, n);
#ifdef MSL_CHECK
  memset((void*)(w->arena_cells + from), 0, n * sizeof(Cell));
#endif
  w->arena_used = to;
}

// worker_map reserves an aligned region; pages are taken as they are touched.
Worker* worker_map() {
  char* p = (char*)mmap(nullptr, 2 * kRegion, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == (char*)MAP_FAILED) return nullptr;
  char* at = (char*)(((uintptr_t)p + kRegion - 1) & ~(kRegion - 1));
  if (at > p) munmap(p, (size_t)(at - p));
  munmap(at + kRegion, (size_t)(p + 2 * kRegion - (at + kRegion)));
  return (Worker*)at;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* msl_worker_new(void) {
  Worker* w = worker_map();
  if (!w) return nullptr;
  w->stacks = (char*)w + kStacksAt;
  for (unsigned i = 0; i < kMaxThreads; i++) w->fib[i].stack = w->stacks + i * kStack;
  return w;
}

extern "C" __attribute__((visibility("default"))) void msl_worker_free(void* p) {
  munmap(p, kRegion);
}
