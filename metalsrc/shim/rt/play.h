// Launches, threadgroup by threadgroup.
#pragma once

namespace {

// prepare makes the thread records, unless the last launch left them.
void prepare(Worker* w, const MslLaunch* L) {
  if (w->nthreads && !memcmp(w->tg, L->tg, sizeof w->tg)) return;
  memcpy(w->tg, L->tg, sizeof w->tg);
  w->nthreads = L->tg[0] * L->tg[1] * L->tg[2];
  w->nsg = (w->nthreads + 31) / 32;
  for (unsigned i = 0; i < w->nthreads; i++) {
    MslThread& t = w->th[i];
    t.tpitg[0] = i % L->tg[0];
    t.tpitg[1] = i / L->tg[0] % L->tg[1];
    t.tpitg[2] = i / L->tg[0] / L->tg[1];
    t.tiitg = i;
    t.sgid = i / 32;
    t.lane = i & 31;
    t.nsg = w->nsg;
  }
}

// arguments gives the threadgroup(i) parameters their places in the arena.
bool arguments(Worker* w, const MslLaunch* L) {
  size_t used = 0;
  for (int i = 0; i < 8; i++) {
    w->group.tgarg[i] = w->arena + used;
    used += (L->tgmem[i] + 15) & ~(size_t)15;
    if (used > kTgLimit) {
      snprintf(w->play->err, sizeof w->play->err, "threadgroup memory over %zu bytes", kTgLimit);
      return false;
    }
  }
  w->dynamic = used;
  return true;
}

void shuffle(Worker* w) {
  unsigned n = w->nthreads;
  for (unsigned i = 0; i < n; i++) w->order[i] = w->launch->seed == 1 ? n - 1 - i : i;
  if (w->launch->seed < 2) return;
  for (unsigned i = n - 1; i > 0; i--) {
    unsigned j = (unsigned)(rnd(w) % (i + 1)), t = w->order[i];
    w->order[i] = w->order[j];
    w->order[j] = t;
  }
}

void begin_group(Worker* w, unsigned g) {
  const unsigned* grid = w->launch->grid;
  w->tgid = g;
  w->group.tgpig[0] = g % grid[0];
  w->group.tgpig[1] = g / grid[0] % grid[1];
  w->group.tgpig[2] = g / grid[0] / grid[1];
  w->narrays = 0;
  w->arena_used = 0;
  grow(w, w->dynamic);
  memset(w->state, Unstarted, w->nthreads);
  shuffle(w);
  for (unsigned s = 0; s < w->nsg; s++) {
    unsigned n = w->nthreads - s * 32;
    Simdgroup& x = w->sg[s];
    x.full = x.live = n >= 32 ? ~0u : (1u << n) - 1;
    x.arrived = x.epoch = 0;
  }
  w->nfree = 0;
  for (unsigned i = w->nthreads; i-- > 0;) w->freef[w->nfree++] = i;
  w->next = w->rhead = w->rcount = w->tg_arrived = w->exited = 0;
  w->ep_tg = w->ep_dev = 1;
}

// end_group finds threads that wait for one another.
void end_group(Worker* w) {
  const unsigned* g = w->group.tgpig;
  if (w->failed) return;
  if (w->exited != w->nthreads) {
    unsigned n[Done + 1] = {0};
    for (unsigned i = 0; i < w->nthreads; i++) n[w->state[i]]++;
    snprintf(w->play->err, sizeof w->play->err,
             "divergent barrier: %u threads at threadgroup_barrier, %u in a simdgroup function, %u done [threadgroup %u,%u,%u]",
             n[AtTgBarrier], n[AtCollective], n[Done], g[0], g[1], g[2]);
    w->failed = true;
  }
}

bool launch(Worker* w, const MslLaunch* L) {
  MslPlay* p = w->play;
  w->launch = L;
  w->failed = false;
  w->rng = (0x9e3779b97f4a7c15ull * (L->seed + 1)) | 1;
  prepare(w, L);
  if (!arguments(w, L)) return false;
#ifdef MSL_CHECK
  if (!shadow_begin(w)) return false;
#endif
  const unsigned total = L->grid[0] * L->grid[1] * L->grid[2];
  for (unsigned g = 0;; g++) {
    if (p->next) g = __atomic_fetch_add(p->next, 1, __ATOMIC_RELAXED);
    if (g >= total) break;
    begin_group(w, g);
    leave(w, &w->main);
    end_group(w);
    if (w->failed) break;
  }
#ifdef MSL_CHECK
  shadow_end(w);
#endif
  return !w->failed;
}

}  // namespace

// msl_play runs launches, one after the other, until one fails.
extern "C" __attribute__((visibility("default"))) int msl_play(void* worker, MslPlay* p) {
  Worker* w = (Worker*)worker;
  w->play = p;
  for (unsigned i = 0; i < p->n; i++) {
    unsigned at = p->order ? p->order[i] : i;
    if (!launch(w, &p->launches[at])) {
      p->failed = at;
      return 1;
    }
  }
  return 0;
}
