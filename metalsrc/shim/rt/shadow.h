// The checker's shadow memory: races, wrong fences, reads of unwritten
// threadgroup memory, and accesses outside everything that is bound.
#pragma once

namespace {

// Two threads that read in one epoch are folded into kMany, or kLanes plus the
// number of their simdgroup where both are of one; two threadgroups into
// kManyGroups.
constexpr unsigned kMany = 0x7ff;
constexpr unsigned kLanes = 1024;
constexpr unsigned kManyGroups = 0xffffff;

}  // namespace

// The loaded kernel library, whose constant tables kernels may read.
extern "C" char __ehdr_start __attribute__((visibility("hidden")));
extern "C" char _end __attribute__((visibility("hidden")));

namespace {

// add_range notes bytes that may be touched, merged with ranges they overlap:
// arguments over the same bytes share their shadow.
void add_range(Worker* w, uintptr_t lo, uintptr_t hi) {
  for (unsigned k = 1; k < w->nrange;) {
    Range& r = w->range[k];
    if (lo >= r.hi || r.lo >= hi) {
      k++;
      continue;
    }
    lo = lo < r.lo ? lo : r.lo;
    hi = hi > r.hi ? hi : r.hi;
    r = w->range[--w->nrange];
    k = 1;
  }
  w->range[w->nrange++] = Range{lo, hi, nullptr, true};
}

bool shadow_begin(Worker* w) {
  const MslLaunch* L = w->launch;
  w->nrange = 0;
  w->range[w->nrange++] = Range{(uintptr_t)w->arena, (uintptr_t)w->arena + kTgLimit, w->arena_cells, false};
  for (unsigned i = 0; i < 31; i++)
    if (L->buf[i] && L->buflen[i]) add_range(w, (uintptr_t)L->buf[i], (uintptr_t)L->buf[i] + L->buflen[i]);
  for (unsigned k = 1; k < w->nrange; k++) {
    Range& r = w->range[k];
    r.cells = (Cell*)calloc(r.hi - r.lo, sizeof(Cell));
    if (r.cells) continue;
    snprintf(w->play->err, sizeof w->play->err, "no memory for the checker");
    return false;
  }
  return true;
}

void shadow_end(Worker* w) {
  for (unsigned i = 1; i < w->nrange; i++) free(w->range[i].cells);
  w->nrange = 0;
}

const char* verb(bool wr) { return wr ? "write" : "read"; }

// stray judges an access outside every range: of the kernel library's tables
// and the runtime's own records, or a fault.
void stray(Worker* w, uintptr_t a, unsigned n, bool wr) {
  if (a >= (uintptr_t)&__ehdr_start && a < (uintptr_t)&_end) return;
  if (a >= (uintptr_t)w && a < (uintptr_t)w + kStacksAt) return;
  if (a >= (uintptr_t)w->launch && a < (uintptr_t)(w->launch + 1)) return;
  long best = 1L << 62;
  unsigned slot = 0;
  for (unsigned i = 0; i < 31; i++) {
    uintptr_t lo = (uintptr_t)w->launch->buf[i], hi = lo + w->launch->buflen[i];
    if (!lo) continue;
    long d = a >= hi ? (long)(a - hi) : (long)(lo - a);
    if (d < best) best = d, slot = i;
  }
  fail(w, "%s of %u bytes outside every buffer (nearest: buffer(%u), %ld bytes off)", verb(wr), n, slot, best);
}

// simdgroup_of is that of a mark, above all there are where it is of several.
unsigned simdgroup_of(const Mark& m) { return m.t < kLanes ? m.t / 32 : m.t - kLanes; }

// unordered says that no barrier lies between a mark and the running thread.
bool unordered(const Mark& m, unsigned t, unsigned e, unsigned se) {
  return m.t != t && m.e == e && (simdgroup_of(m) != t / 32 || m.se == se);
}

void judge_write_before(Worker* w, const Cell& c, const Mark& me, bool wr, bool dev, uintptr_t byte) {
  if (c.w.g != me.g) fail(w, "race between threadgroups on device memory (byte %lu)", (unsigned long)byte);
  if (unordered(c.w, me.t, me.e, me.se))
    fail(w, "race: %s of %s memory byte %lu written by thread %u with no barrier for that memory between", verb(wr),
         dev ? "device" : "threadgroup", (unsigned long)byte, (unsigned)c.w.t);
}

void judge_read_before(Worker* w, const Cell& c, const Mark& me, bool dev, uintptr_t byte) {
  if (c.r.g != me.g) fail(w, "race between threadgroups: write of device memory that another one read (byte %lu)", (unsigned long)byte);
  if (unordered(c.r, me.t, me.e, me.se))
    fail(w, "race: write of %s memory byte %lu that another thread read with no barrier between", dev ? "device" : "threadgroup",
         (unsigned long)byte);
}

void mark(Worker* w, const Range& r, uintptr_t a, unsigned n, bool wr, bool atomic) {
  const unsigned t = w->cur;
  Mark me;
  me.g = w->tgid + 1;
  me.t = t;
  me.e = r.dev ? w->ep_dev : w->ep_tg;
  me.se = w->sg[t / 32].epoch;
  me.at = atomic;
  for (uintptr_t b = a - r.lo; b < a - r.lo + n; b++) {
    Cell& c = r.cells[b];
    if (!wr && !r.dev && !c.w.g) fail(w, "read of threadgroup memory that nobody wrote");
    if (c.w.g && !(atomic && c.w.at)) judge_write_before(w, c, me, wr, r.dev, b);
    if (wr && c.r.g && !(atomic && c.r.at)) judge_read_before(w, c, me, r.dev, b);
    if (wr) {
      c.w = me;
    } else {
      Mark was = c.r;
      c.r = me;
      if (!was.g) continue;
      if (was.g != me.g) c.r.g = kManyGroups;
      if (was.g != me.g || was.e == me.e) c.r.at &= was.at;
      if (was.g != me.g || was.e != me.e || was.t == t) continue;
      if (simdgroup_of(was) != t / 32)
        c.r.t = kMany;
      else if (was.se == me.se)
        c.r.t = kLanes + t / 32;  // else a barrier of the simdgroup has ordered the older one
    }
  }
}

// access is called before every load and store of a kernel.
void access(uintptr_t a, unsigned n, bool wr, bool atomic) {
  Worker* w = self();
  if (a - (uintptr_t)w->stacks < kStack * kMaxThreads) return;  // a thread's own variables
  w->play->accesses++;
  for (unsigned i = 0; i < w->nrange; i++) {
    const Range& r = w->range[i];
    if (a < r.lo || a >= r.hi) continue;
    if (a + n > r.hi) fail(w, "%s of %u bytes runs over the end of a buffer", verb(wr), n);
    if (!r.dev && a + n > r.lo + w->arena_used) fail(w, "%s past the end of threadgroup memory", verb(wr));
    if (n <= 16 && !(n & (n - 1)) && (a & (n - 1))) fail(w, "misaligned %u-byte %s", n, verb(wr));
    mark(w, r, a, n, wr, atomic);
    return;
  }
  stray(w, a, n, wr);
}

}  // namespace
