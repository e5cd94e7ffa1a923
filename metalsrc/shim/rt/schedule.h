// Who runs next, and what makes a thread wait.
#pragma once

namespace {

void fiber_main();
__attribute__((format(printf, 2, 3))) void fail(Worker* w, const char* fmt, ...);

// look_at_stack finds that the running thread wrote over the end of its stack.
// What it destroyed belongs to threads that will not run again after that.
void look_at_stack(Worker* w, Fiber* f) {
#ifdef MSL_CHECK
  if (w->failed || !f->stack || *(uint64_t*)f->stack == kCanary) return;
  fail(w, "a thread's variables need more than the %zu bytes of its stack", kStack);
#endif
}

// leave gives way from the running fiber; it comes back when its thread has
// been made ready and picked.
void leave(Worker* w, Fiber* self) {
  look_at_stack(w, self);
  if (w->failed) {
    go(w, self, &w->main);
    return;
  }
  if (w->next < w->nthreads) {  // start another thread on a fresh fiber
    unsigned f = w->freef[--w->nfree];
    Fiber* t = &w->fib[f];
#ifdef MSL_CHECK
    *(uint64_t*)t->stack = kCanary;
#endif
    t->sp = fresh(t->stack + kStack, fiber_main);
    w->curf = f;
    go(w, self, t);
    return;
  }
  if (w->rcount) {
    if (w->launch->seed) {  // any ready thread may go next
      unsigned i = (w->rhead + (unsigned)(rnd(w) % w->rcount)) % kMaxThreads;
      unsigned t = w->ready[i];
      w->ready[i] = w->ready[w->rhead];
      w->ready[w->rhead] = t;
    }
    unsigned t = w->ready[w->rhead];
    w->rhead = (w->rhead + 1) % kMaxThreads;
    w->rcount--;
    w->cur = t;
    w->curf = w->fiber_of[t];
    w->state[t] = Running;
    if (self != &w->fib[w->curf]) go(w, self, &w->fib[w->curf]);
    return;
  }
  go(w, self, &w->main);
}

void make_ready(Worker* w, unsigned t) {
  w->ready[(w->rhead + w->rcount) % kMaxThreads] = t;
  w->rcount++;
}

// fail records the first fault and abandons the launch. On a fiber it does not
// return.
void fail(Worker* w, const char* fmt, ...) {
  if (!w->failed) {
    char what[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    const unsigned* g = w->group.tgpig;
    snprintf(w->play->err, sizeof w->play->err, "%s [threadgroup %u,%u,%u thread %u]", what, g[0], g[1], g[2], w->cur);
    w->failed = true;
  }
  go(w, &w->fib[w->curf], &w->main);
}

void finish_collective(Worker* w, Simdgroup& s, unsigned self) {
  unsigned m = s.arrived;
  s.fn(s.args, m);
  s.arrived = 0;
  for (unsigned i = 0; i < 32; i++)
    if (m >> i & 1) {
      unsigned t = (unsigned)(&s - w->sg) * 32 + i;
      if (t != self) make_ready(w, t);
    }
}

void release_tg(Worker* w) {
  w->tg_arrived = 0;
  if (w->tg_flags & 2) w->ep_tg++;
  if (w->tg_flags & 1) w->ep_dev++;
  for (unsigned i = 0; i < w->nthreads; i++)
    if (w->state[i] == AtTgBarrier) make_ready(w, i);
}

// A thread that ends while others wait for it is a fault: on a GPU they would
// wait for ever, or not, as it happens.
void thread_exit(Worker* w, unsigned t) {
  w->state[t] = Done;
  w->exited++;
  Simdgroup& s = w->sg[t / 32];
  s.live &= ~(1u << (t & 31));
  if (s.arrived) fail(w, "thread left the kernel while others of its simdgroup wait in a simdgroup function (line %d)", s.site);
  if (w->tg_arrived) fail(w, "thread left the kernel while others of its threadgroup wait at a barrier");
}

// fiber_main runs threads until none is left to start.
void fiber_main() {
  Worker* w = self();
  while (w->next < w->nthreads && !w->failed) {
    unsigned t = w->order[w->next++];
    w->cur = t;
    w->fiber_of[t] = w->curf;
    w->state[t] = Running;
    w->launch->body(w->launch, &w->group, &w->th[t]);
    look_at_stack(w, &w->fib[w->curf]);
    thread_exit(w, t);
  }
  w->freef[w->nfree++] = w->curf;
  leave(w, &w->dump);
  abort();
}

void no_op(void**, unsigned) {}
void next_epoch(void**, unsigned) {
  Worker* w = self();
  w->sg[w->cur / 32].epoch++;
}

}  // namespace

extern "C" {

unsigned msl_lane(void) { return self()->cur & 31; }
unsigned msl_tiitg(void) { return self()->cur; }
unsigned msl_seed(void) { return self()->launch->seed; }

void msl_tg_barrier(unsigned flags) {
  Worker* w = self();
  unsigned t = w->cur;
  if (w->exited) fail(w, "threadgroup_barrier after a thread left the kernel");
  if (w->tg_arrived && w->tg_flags != flags) fail(w, "threads wait at different threadgroup barriers");
  w->tg_flags = flags;
  if (++w->tg_arrived == w->nthreads) {
    release_tg(w);
    if (!w->launch->seed || !(rnd(w) & 1)) return;
    make_ready(w, t);  // the last to arrive need not be the first to go on
  }
  w->state[t] = AtTgBarrier;
  leave(w, &w->fib[w->curf]);
}

void msl_sg_barrier(unsigned flags) { msl_collective(flags ? next_epoch : no_op, nullptr, -1 - (int)flags); }

void msl_collective(MslCollective fn, void* arg, int site) {
  Worker* w = self();
  unsigned t = w->cur;
  Simdgroup& s = w->sg[t / 32];
  if (s.arrived && (s.fn != fn || s.site != site))
    fail(w, "lanes of one simdgroup wait in different simdgroup functions (lines %d and %d)", s.site, site);
  if (s.live != s.full) fail(w, "simdgroup function (line %d) with lanes that left the kernel", site);
  s.fn = fn;
  s.site = site;
  s.args[t & 31] = arg;
  s.arrived |= 1u << (t & 31);
  if (s.arrived == s.live) {
    finish_collective(w, s, t);
    return;
  }
  w->state[t] = AtCollective;
  leave(w, &w->fib[w->curf]);
}

// msl_tg_static is where a TG_ARRAY of the running threadgroup lies.
void* msl_tg_static(int id, unsigned long bytes, unsigned long align) {
  Worker* w = self();
  for (unsigned i = 0; i < w->narrays; i++)
    if (w->arrays[i].id == id) return w->arena + w->arrays[i].off;
  size_t o = (w->arena_used + align - 1) & ~(align - 1);
  if (o + bytes > kTgLimit) fail(w, "threadgroup memory over %zu bytes", kTgLimit);
  if (w->narrays == kMaxArrays) fail(w, "more than %u threadgroup arrays", kMaxArrays);
  w->arrays[w->narrays++] = Array{id, o};
  grow(w, o + bytes);
  return w->arena + o;
}

}  // extern "C"
