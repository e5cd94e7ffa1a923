// A stand-in for libcuda and libnvrtc, on host memory. It is as late as a GPU may
// be: what goes into the stream runs only when somebody waits for it, and of the
// launches of a graph that are ready the last one added runs first. It is as
// strict as the real one about handles, sizes and memory that must be allowed.
// Functions named fake_ are for the test.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

typedef int status;
enum { OK = 0, INVALID = 1, NOMEM = 2, HANDLE = 400, MISSING = 500, ILLEGAL = 700 };

static pthread_mutex_t compiling = PTHREAD_MUTEX_INITIALIZER;

// ---- what the test sets and asks ----------------------------------------------
static struct {
  int calls, fail_at, fail_with, sticky;  // the n-th call from now fails
  const char *fail_name;                  // or the calls of one name
  uint64_t room, used;
  int devices, major, minor, version, rtc_major, compiled;
  int blocks, pinned, events, streams, contexts, graphs, execs, modules;
  int launched, overlapped, edges, programmatic;
  int drops;  // failures of calls that drop something, or lead there
} F;
static char name_copy[64];

void fake_reset(void) {
  memset(&F, 0, sizeof F);
  F.room = 1 << 30;
  F.devices = 1;
  F.major = 9;
  F.version = 13000;
  F.rtc_major = 13;
}
void fake_fail(int at, const char *name, int with) {
  F.calls = F.drops = 0;
  F.sticky = 0;
  F.fail_at = at;
  F.fail_with = with;
  F.fail_name = 0;
  if (name) F.fail_name = strncpy(name_copy, name, sizeof name_copy - 1);
}
void fake_set(const char *what, int64_t v) {
  if (!strcmp(what, "room")) F.room = (uint64_t)v;
  if (!strcmp(what, "devices")) F.devices = (int)v;
  if (!strcmp(what, "major")) F.major = (int)v;
  if (!strcmp(what, "version")) F.version = (int)v;
  if (!strcmp(what, "rtc_major")) F.rtc_major = (int)v;
}
int64_t fake_get(const char *what) {
#define GET(N) if (!strcmp(what, #N)) return (int64_t)F.N;
  GET(calls) GET(used) GET(compiled) GET(blocks) GET(pinned) GET(events) GET(streams) GET(contexts) GET(graphs)
  GET(execs) GET(modules) GET(launched) GET(overlapped) GET(edges) GET(programmatic) GET(drops)
  return -1;
}

static int lost(int s) { return s == 700 || s == 719 || s == 214; }
static status enter(const char *name) {
  if (F.sticky) return F.sticky;
  if (F.fail_name && strcmp(F.fail_name, name)) return OK;
  if (++F.calls != F.fail_at) return OK;
  if (lost(F.fail_with)) F.sticky = F.fail_with;
  F.drops += strstr(name, "Free") || strstr(name, "Destroy") || strstr(name, "SetCurrent");
  return F.fail_with;
}
#define ENTER do { status s_ = enter(__func__); if (s_) return s_; } while (0)

// ---- the device ------------------------------------------------------------------
status cuInit(unsigned f) { ENTER; return f ? INVALID : OK; }
status cuDriverGetVersion(int *v) { ENTER; *v = F.version; return OK; }
status cuGetErrorName(int s, const char **p) {
  switch (s) {
    case INVALID: *p = "CUDA_ERROR_INVALID_VALUE"; return OK;
    case NOMEM: *p = "CUDA_ERROR_OUT_OF_MEMORY"; return OK;
    case ILLEGAL: *p = "CUDA_ERROR_ILLEGAL_ADDRESS"; return OK;
    case 719: *p = "CUDA_ERROR_LAUNCH_FAILED"; return OK;
  }
  *p = 0;
  return INVALID;
}
status cuDeviceGet(int *d, int i) { ENTER; *d = i; return i < F.devices ? OK : 101; }
status cuDeviceGetCount(int *n) { ENTER; *n = F.devices; return OK; }
status cuDeviceGetName(char *p, int n, int d) { ENTER; (void)d; strncpy(p, "Fake GPU", (size_t)n); return OK; }
status cuDeviceGetAttribute(int *v, int a, int d) {
  ENTER;
  (void)d;
  switch (a) {
    case 16: *v = 4; return OK;
    case 38: *v = 1 << 16; return OK;
    case 75: *v = F.major; return OK;
    case 76: *v = F.minor; return OK;
    case 97: *v = 100 << 10; return OK;
  }
  return INVALID;
}
static __thread uintptr_t current;
static status inside(const char *name) {
  status s = enter(name);
  return s ? s : current ? OK : 201;
}
#define INSIDE do { status s_ = inside(__func__); if (s_) return s_; } while (0)
status cuCtxCreate_v2(uintptr_t *c, unsigned f, int d) { ENTER; (void)f; (void)d; F.contexts++; *c = current = 77; return OK; }
status cuCtxSetCurrent(uintptr_t c) { ENTER; current = c; return OK; }
status cuMemGetInfo_v2(uint64_t *free_, uint64_t *total) { INSIDE; *free_ = F.room - F.used; *total = F.room; return OK; }

// ---- memory ------------------------------------------------------------------------
static struct { char *p; uint64_t n; } blocks[4096];
static int in_block(const char *p, uint64_t n) {
  for (int i = 0; i < 4096; i++)
    if (blocks[i].p && p >= blocks[i].p && p + n <= blocks[i].p + blocks[i].n) return 1;
  return 0;
}
status cuMemAlloc_v2(uint64_t *p, uint64_t n) {
  INSIDE;
  if (n == 0) return INVALID;
  if (n > F.room - F.used) return NOMEM;
  for (int i = 0; i < 4096; i++)
    if (!blocks[i].p) {
      blocks[i].p = aligned_alloc(256, (n + 255) & ~255ull);
      memset(blocks[i].p, 0xee, n);
      blocks[i].n = n;
      F.used += n;
      F.blocks++;
      *p = (uint64_t)(uintptr_t)blocks[i].p;
      return OK;
    }
  return NOMEM;
}
status cuMemHostAlloc(void **p, uint64_t n, unsigned f) { INSIDE; (void)f; *p = malloc(n); memset(*p, 0xdd, n < 4096 ? n : 4096); F.pinned++; return OK; }
status cuMemFreeHost(void *p) { INSIDE; free(p); F.pinned--; return OK; }

// ---- the stream: a row of things to do ------------------------------------------------
typedef struct { char *name; int allowed; } function;
typedef struct { function *f; unsigned grid[3], block[3], shared; uint64_t words[8]; int n; } launch;
typedef struct { int n, edge_count; launch node[256]; int from[1024], to[1024]; char early[1024]; } graph;
typedef struct { int alive; long at; } event;
typedef struct { int kind; char *to; const char *from; uint64_t n; int fill; event *e; graph *g; launch l; } op;
enum { FILL, COPY, MARK, PLAY, LAUNCH };
static op queue[65536];
static int first, last;
static long now;

static void play(const launch *l) {
  now++;
  F.launched++;
  if (strcmp(l->f->name, "msl_k_step")) return;
  const char *in = (const char *)(uintptr_t)l->words[0];
  char *out = (char *)(uintptr_t)l->words[1];
  uint32_t arg[2];
  memcpy(arg, &l->words[2], 8);
  if (!in_block(in, 4ull * arg[0]) || !in_block(out, 4ull * arg[0])) {
    F.sticky = ILLEGAL;
    return;
  }
  for (uint32_t i = 0; i < arg[0]; i++) ((uint32_t *)out)[i] = ((const uint32_t *)in)[i] * 3u + arg[1];
}
static void play_graph(const graph *g) {
  char done[256] = {0};
  for (int n = 0; n < g->n; n++)
    for (int i = g->n - 1; i >= 0; i--) {
      int ready = !done[i];
      for (int e = 0; e < g->edge_count; e++)
        if (g->to[e] == i && !done[g->from[e]]) ready = 0;
      if (!ready) continue;
      play(&g->node[i]);
      done[i] = 1;
      break;
    }
}
static status run_until(event *e) {
  while (first < last && !(e && e->at >= 0)) {
    op *o = &queue[first++];
    switch (o->kind) {
      case FILL: memset(o->to, o->fill, o->n); break;
      case COPY: memcpy(o->to, o->from, o->n); now++; break;
      case MARK: if (o->e->alive) o->e->at = now; break;
      case PLAY: play_graph(o->g); break;
      case LAUNCH: play(&o->l); break;
    }
    if (F.sticky) return F.sticky;
  }
  if (first == last) first = last = 0;
  return OK;
}
static status push(op o) {
  if (last == 65536) return NOMEM;
  queue[last++] = o;
  return OK;
}
static event *waiting(event *e) {  // the last mark of an event counts
  e->at = -1;
  return e;
}
status cuMemFree_v2(uint64_t p) {
  INSIDE;
  for (int i = 0; i < 4096; i++)
    if (blocks[i].p == (char *)(uintptr_t)p && p) {
      status s = run_until(0);
      free(blocks[i].p);
      F.used -= blocks[i].n;
      F.blocks--;
      blocks[i].p = 0;
      return s;
    }
  return INVALID;
}
status cuMemsetD8Async(uint64_t p, unsigned char v, uint64_t n, uintptr_t s) {
  INSIDE;
  if (!in_block((char *)p, n) || !s) return INVALID;
  return push((op){.kind = FILL, .to = (char *)p, .fill = v, .n = n});
}
status cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, uint64_t n, uintptr_t s) {
  INSIDE;
  if (!in_block((char *)to, n) || !s) return INVALID;
  return push((op){.kind = COPY, .to = (char *)to, .from = from, .n = n});
}
status cuMemcpyDtoHAsync_v2(void *to, uint64_t from, uint64_t n, uintptr_t s) {
  INSIDE;
  if (!in_block((char *)from, n) || !s) return INVALID;
  return push((op){.kind = COPY, .to = to, .from = (char *)from, .n = n});
}
status cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, uint64_t n, uintptr_t s) {
  INSIDE;
  if (!in_block((char *)from, n) || !in_block((char *)to, n) || !s) return INVALID;
  return push((op){.kind = COPY, .to = (char *)to, .from = (char *)from, .n = n});
}
status cuStreamCreate(uintptr_t *s, unsigned f) { INSIDE; (void)f; F.streams++; *s = 55; return OK; }
status cuStreamSynchronize(uintptr_t s) { INSIDE; return s ? run_until(0) : HANDLE; }
status cuEventCreate(event **e, unsigned f) { INSIDE; (void)f; *e = calloc(1, sizeof **e); (*e)->alive = 1; F.events++; return OK; }
status cuEventDestroy_v2(event *e) { INSIDE; if (!e->alive) return HANDLE; e->alive = 0; F.events--; return OK; }
status cuEventRecord(event *e, uintptr_t s) { INSIDE; if (!e->alive || !s) return HANDLE; return push((op){.kind = MARK, .e = waiting(e)}); }
status cuEventSynchronize(event *e) { INSIDE; return e->alive ? run_until(e) : HANDLE; }
status cuEventElapsedTime(float *ms, event *a, event *b) {
  INSIDE;
  if (!a->alive || !b->alive) return HANDLE;
  if (a->at < 0 || b->at < 0) return 600;
  *ms = (float)(b->at - a->at);
  return OK;
}

// ---- code -------------------------------------------------------------------------------
status cuModuleLoadData(char **m, const void *image) { INSIDE; if (strncmp(image, "FAKE", 4)) return 200; *m = strdup(image); F.modules++; return OK; }
status cuModuleGetFunction(function **f, const char *m, const char *name) {
  INSIDE;
  char want[128] = " ";
  strncat(strncat(want, name, 100), "(", 2);
  if (!strstr(m, want)) return MISSING;
  *f = calloc(1, sizeof **f);
  (*f)->name = strdup(name);
  return OK;
}
status cuFuncGetAttribute(int *v, int a, function *f) {
  INSIDE;
  (void)f;
  *v = a == 0 ? 256 : a == 1 ? 1024 : a == 4 ? 40 : 0;
  return OK;
}
status cuFuncSetAttribute(function *f, int a, int v) { INSIDE; if (a != 8) return INVALID; f->allowed = v; return OK; }
status cuFuncGetParamInfo(function *f, uint64_t i, uint64_t *at, uint64_t *n) { INSIDE; (void)f; *at = 8 * i; *n = 8; return OK; }

static status take(launch *l, function *f, const unsigned *grid, const unsigned *block, unsigned shared, void **params) {
  memset(l, 0, sizeof *l);
  l->f = f;
  memcpy(l->grid, grid, 12);
  memcpy(l->block, block, 12);
  l->shared = shared;
  if (shared + 1024 > (48 << 10) && (int)shared > f->allowed) return INVALID;
  if (block[0] * block[1] * block[2] > 256) return 701;
  if (!strcmp(f->name, "msl_k_step"))
    for (int i = 0; i < 3; i++) memcpy(&l->words[i], params[i], 8);
  return OK;
}
status cuLaunchKernel(function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, uintptr_t s, void **params, void **extra) {
  INSIDE;
  if (!s || extra) return INVALID;
  op o = {.kind = LAUNCH};
  status r = take(&o.l, f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, params);
  return r ? r : push(o);
}
typedef struct { unsigned id; char pad[4]; int value; char rest[60]; } attribute;
typedef struct { unsigned grid[3], block[3], shared; uintptr_t stream; attribute *attrs; unsigned n; } config;
status cuLaunchKernelEx(const config *c, function *f, void **params, void **extra) {
  INSIDE;
  if (!c->stream || extra || c->n != 1 || c->attrs->id != 6 || c->attrs->value != 1) return INVALID;
  F.overlapped++;
  op o = {.kind = LAUNCH};
  status r = take(&o.l, f, c->grid, c->block, c->shared, params);
  return r ? r : push(o);
}
status cuGraphCreate(graph **g, unsigned f) { INSIDE; (void)f; *g = calloc(1, sizeof **g); F.graphs++; return OK; }
status cuGraphDestroy(graph *g) { INSIDE; free(g); F.graphs--; return OK; }
typedef struct { function *f; unsigned grid[3], block[3], shared; void **params, **extra; void *kern, *ctx; } node_params;
status cuGraphAddKernelNode_v2(uintptr_t *node, graph *g, const uintptr_t *deps, uint64_t n, const node_params *p) {
  INSIDE;
  if (n || deps || p->extra || p->kern || p->ctx || g->n == 256) return INVALID;
  *node = (uintptr_t)g->n + 1;
  return take(&g->node[g->n++], p->f, p->grid, p->block, p->shared, p->params);
}
typedef struct { unsigned char from, to, type, pad[5]; } edge;
status cuGraphAddDependencies_v2(graph *g, const uintptr_t *from, const uintptr_t *to, const edge *e, uint64_t n) {
  INSIDE;
  for (uint64_t i = 0; i < n; i++) {
    if (g->edge_count == 1024 || from[i] < 1 || from[i] >= to[i] || (int)to[i] > g->n || e[i].type != e[i].from || e[i].to) return INVALID;
    g->early[g->edge_count] = e[i].type == 1;
    g->from[g->edge_count] = (int)from[i] - 1;
    g->to[g->edge_count++] = (int)to[i] - 1;
    F.edges++;
    F.programmatic += e[i].type == 1;
  }
  return OK;
}
// A programmatic edge may only be its end's sole way in and its start's sole way out.
status cuGraphInstantiateWithFlags(graph **x, graph *g, uint64_t f) {
  INSIDE;
  (void)f;
  for (int e = 0; e < g->edge_count; e++)
    for (int o = 0; g->early[e] && o < g->edge_count; o++)
      if (o != e && (g->from[o] == g->from[e] || g->to[o] == g->to[e])) return INVALID;
  *x = malloc(sizeof **x); memcpy(*x, g, sizeof *g);
  F.execs++;
  return OK;
}
status cuGraphUpload(graph *x, uintptr_t s) { INSIDE; return x && s ? OK : INVALID; }
status cuGraphLaunch(graph *x, uintptr_t s) { INSIDE; if (!s) return INVALID; return push((op){.kind = PLAY, .g = x}); }
status cuGraphExecDestroy(graph *x) { INSIDE; free(x); F.execs--; return OK; }
status cuCtxDestroy_v2(uintptr_t c) {  // never fails to end it
  F.contexts--;
  current = 0;
  return c == 77 ? F.sticky : HANDLE;
}

// ---- the compiler -------------------------------------------------------------------------
typedef struct { char *text; const char *log; } program;
int nvrtcVersion(int *a, int *b) { *a = F.rtc_major; *b = 0; return OK; }
int nvrtcGetNumSupportedArchs(int *n) { *n = 3; return OK; }
int nvrtcGetSupportedArchs(int *a) { a[0] = 75; a[1] = 80; a[2] = 90; return OK; }
int nvrtcCreateProgram(program **p, const char *src, const char *name, int n, const char **heads, const char **names) {
  if (!name[0] || n != 8 || !strstr(heads[0], "namespace metal") || strcmp(names[1], "msl_cuda.h")) return 3;
  *p = calloc(1, sizeof **p);
  (*p)->text = malloc(strlen(src) + 5);
  strcat(strcpy((*p)->text, "FAKE"), src);
  (*p)->log = "";
  return OK;
}
int nvrtcCompileProgram(program *p, int n, const char **o) {
  pthread_mutex_lock(&compiling);
  F.compiled++;
  pthread_mutex_unlock(&compiling);
  if (n < 5 || strncmp(o[0], "--std", 5)) return 5;
  if (!strstr(p->text, "#error")) return OK;
  p->log = "kernels.metal(1): #error";
  return 6;
}
int nvrtcDestroyProgram(program **p) { free((*p)->text); free(*p); return OK; }
int nvrtcGetProgramLogSize(program *p, uint64_t *n) { *n = strlen(p->log) + 1; return OK; }
int nvrtcGetProgramLog(program *p, char *b) { strcpy(b, p->log); return OK; }
int nvrtcGetCUBINSize(program *p, uint64_t *n) { *n = strlen(p->text) + 1; return OK; }
int nvrtcGetCUBIN(program *p, char *b) { strcpy(b, p->text); return OK; }
int nvrtcGetPTXSize(program *p, uint64_t *n) { return nvrtcGetCUBINSize(p, n); }
int nvrtcGetPTX(program *p, char *b) { return nvrtcGetCUBIN(p, b); }
