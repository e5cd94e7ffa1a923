/* A stand-in for the Objective-C runtime and for Metal, for tests on machines
 * that have neither. Messages arrive by the real calling convention of the
 * processor: on arm64 structs by value are what the compiler makes of them; on
 * amd64, where Metal is not, their addresses stand in for them.
 *
 * It keeps count of references and pools, complains where Metal's debug layer
 * would, and lets the test run what was dispatched. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint64_t w, h, d; } Size;
typedef struct { uint64_t at, n; } Range;

typedef struct Obj Obj;
struct Obj {
  const char *cls;
  int refs;
  char *text;       /* string; name of a function or pipeline; domain of an error */
  long code;        /* of an error */
  uint8_t *mem;     /* of a buffer */
  uint64_t len;
  int wrapped;
  long language, math, fast; /* of compile options and libraries */
  int tensor;                /* of a library, function, pipeline */
  int status;                /* of a command buffer */
  Obj *error, *parent;
  struct Dispatch *log; /* of a command buffer */
  int nlog, ended;
  struct Dispatch *now; /* of an encoder */
};

/* One launch, or a barrier; mirrored in Go. */
typedef struct Dispatch {
  uint64_t barrier, tensor;
  const char *kernel;
  uint8_t *buf[31]; /* memory that was bound, or bytes */
  uint64_t off[31], len[31];
  uint64_t bytes[31]; /* how many came by value */
  uint64_t shared[8], grid[3], threads[3];
} Dispatch;

/* What the test sets. */
struct Settings {
  uint64_t family, metal4, old_system, no_device, no_queue, no_memory, tensor_refused, kernel_refused, width, fail_code, fail_elsewhere;
  void (*run)(Dispatch *);
};
static struct Settings set;
static int live;
static char complaints[4096];
static uint64_t counts[8]; /* residency requests, allocations in the set, commits of it, sends */

void fake_reset(struct Settings *s) {
  set = *s;
  complaints[0] = 0;
  memset(counts, 0, sizeof counts);
}
int fake_live(void) { return live; }
char *fake_complaints(void) { return complaints; }
uint64_t *fake_counts(void) { return counts; }

static void complain(const char *fmt, ...) {
  size_t n = strlen(complaints);
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(complaints + n, sizeof complaints - n, fmt, ap);
  va_end(ap);
  n = strlen(complaints);
  if (n + 2 < sizeof complaints) strcpy(complaints + n, "\n");
}

static Obj *new_obj(const char *cls) {
  Obj *o = calloc(1, sizeof *o);
  o->cls = cls;
  o->refs = 1;
  __atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
  return o;
}

static void drop(Obj *o) {
  if (o->refs <= 0) complain("%s released once too often", o->cls);
  if (--o->refs > 0) return;
  __atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
  if (o->mem && !o->wrapped) free(o->mem);
  for (int i = 0; i < o->nlog; i++)
    for (int k = 0; k < 31; k++) if (o->log[i].bytes[k]) free(o->log[i].buf[k]);
  if (o->error) drop(o->error);
  free(o->log);
  free(o->now);
  free(o->text);
  o->cls = "an object that was freed";
  o->mem = 0; /* the shell stays, so that its use is noticed */
}

/* ---- autorelease pools --------------------------------------------------- */
static __thread Obj *pool[4096];
static __thread int npool, depth;

void *fake_push(void) {
  depth++;
  return (void *)(intptr_t)(npool + 1);
}
void fake_pop(void *mark) {
  int to = (int)(intptr_t)mark - 1;
  if (--depth < 0 || to > npool) complain("a pool was popped on another thread");
  while (npool > to) drop(pool[--npool]);
}
static Obj *autorelease(Obj *o) {
  if (!depth) complain("%s autoreleased with no pool in place", o->cls);
  else pool[npool++] = o;
  return o;
}

/* ---- objects of Foundation ------------------------------------------------ */
static Obj *string(const char *s) {
  Obj *o = new_obj("NSString");
  o->text = strdup(s);
  return o;
}
static Obj *error(const char *domain, long code) {
  Obj *o = new_obj("NSError");
  o->text = strdup(domain);
  o->code = code;
  return o;
}

static Obj *o_alloc(Obj *cls, char *s) { (void)s; return new_obj(cls->text); }
static Obj *o_init(Obj *o, char *s) { (void)s; return o; }
static Obj *o_retain(Obj *o, char *s) { (void)s; o->refs++; return o; }
static void o_release(Obj *o, char *s) { (void)s; drop(o); }
static Obj *s_init(Obj *o, char *s, const char *b, uint64_t n, uint64_t enc) {
  (void)s;
  if (enc != 4) complain("encoding %lu", (unsigned long)enc);
  o->text = calloc(1, n + 1);
  memcpy(o->text, b, n);
  return o;
}
static const char *s_utf8(Obj *o, char *s) { (void)s; return o->text; }
static Obj *e_text(Obj *o, char *s) { (void)s; char b[64]; snprintf(b, sizeof b, "fault %ld", o->code); return autorelease(string(b)); }
static Obj *e_domain(Obj *o, char *s) { (void)s; return autorelease(string(o->text)); }
static long e_code(Obj *o, char *s) { (void)s; return o->code; }

/* ---- the device ------------------------------------------------------------ */
static Obj *d_name(Obj *o, char *s) { (void)o; (void)s; return autorelease(string("Stand-in Max")); }
/* BOOL is a byte; what is above it is not to be looked at. */
static uint64_t d_family(Obj *o, char *s, uint64_t f) {
  (void)o; (void)s;
  int yes = f < 2000 ? f <= set.family : f == 5002 && set.metal4;
  return 0xabcdef00u | (uint64_t)yes;
}
static uint64_t d_maxbuf(Obj *o, char *s) { (void)o; (void)s; return 1ull << 32; }
static uint64_t d_shared(Obj *o, char *s) { (void)o; (void)s; return 32768; }
static uint64_t d_work(Obj *o, char *s) { (void)o; (void)s; return 1ull << 34; }
static Obj *d_queue(Obj *o, char *s) { (void)o; (void)s; return set.no_queue ? 0 : new_obj("MTLCommandQueue"); }
static Obj *d_library(Obj *o, char *s, Obj *src, Obj *opt, Obj **e) {
  (void)o; (void)s;
  if (!opt->language) complain("the language was not set");
  if (set.old_system ? opt->fast != 1 : opt->math != 1) complain("fast math is on");
  int tensor = strncmp(src->text, "#define TENSOR_OPS 1\n", 21) == 0;
  if (opt->language != (tensor ? 4 << 16 : (3 << 16) + 1)) complain("language %lx", opt->language);
  if (tensor && set.tensor_refused) { *e = autorelease(error("MTLLibraryErrorDomain", 3)); return 0; }
  Obj *l = new_obj("MTLLibrary");
  l->text = strdup(src->text);
  l->tensor = tensor;
  return l;
}
static void c_language(Obj *o, char *s, long v) { (void)s; o->language = v; }
static void c_math(Obj *o, char *s, long v) { (void)s; o->math = v == 0 ? 1 : 2; }
static void c_fast(Obj *o, char *s, uint8_t v) { (void)s; o->fast = v == 0 ? 1 : 2; }
static Obj *l_function(Obj *o, char *s, Obj *name) {
  (void)s;
  char want[256];
  snprintf(want, sizeof want, "\nkernel void %s(", name->text);
  if (!strstr(o->text, want)) return 0;
  Obj *f = new_obj("MTLFunction");
  f->text = strdup(name->text);
  f->tensor = o->tensor;
  return f;
}
static Obj *d_pipeline(Obj *o, char *s, Obj *f, Obj **e) {
  (void)o; (void)s;
  if (set.kernel_refused) { *e = autorelease(error("AGXMetal", 2)); return 0; }
  Obj *p = new_obj("MTLComputePipelineState");
  p->text = strdup(f->text);
  p->tensor = f->tensor;
  return p;
}
static void pd_function(Obj *o, char *s, Obj *f) { (void)s; o->parent = f; }
static void pd_threads(Obj *o, char *s, uint64_t n) { (void)s; o->len = n; }
static Obj *d_pipeline2(Obj *o, char *s, Obj *desc, uint64_t options, void *reflection, Obj **e) {
  if (options || reflection || !desc->parent || desc->parent->refs <= 0) complain("a pipeline descriptor");
  Obj *p = desc->len > 1024 ? 0 : d_pipeline(o, s, desc->parent, e);
  if (p) p->len = desc->len;
  return p;
}
static uint64_t p_threads(Obj *o, char *s) { (void)s; return o->len ? o->len : 768; }
static uint64_t p_width(Obj *o, char *s) { (void)o; (void)s; return set.width; }
static uint64_t p_static(Obj *o, char *s) { (void)o; (void)s; return 1024; }

/* ---- memory ------------------------------------------------------------------ */
static void pooled(const char *what) {
  if (!depth) complain("%s with no pool in place", what);
}
static Obj *d_buffer(Obj *o, char *s, uint64_t n, uint64_t options) {
  (void)o; (void)s;
  pooled("a buffer is made");
  if (options) complain("buffer options %lu", (unsigned long)options);
  if (set.no_memory) return 0;
  Obj *b = new_obj("MTLBuffer");
  b->len = n;
  uint64_t room = (n + 16383) & ~16383ull;
  b->mem = aligned_alloc(16384, room);
  memset(b->mem, 0xee, room);
  return b;
}
static Obj *d_wrap(Obj *o, char *s, uint8_t *p, uint64_t n, uint64_t options, void *dealloc) {
  (void)o; (void)s;
  if (options || dealloc || (uintptr_t)p % 16384 || n % 16384) complain("a wrapped buffer breaks the rules");
  Obj *b = new_obj("MTLBuffer");
  b->mem = p;
  b->len = n;
  b->wrapped = 1;
  return b;
}
static void *b_contents(Obj *o, char *s) { (void)s; return o->mem; }
static Obj *d_residency(Obj *o, char *s, Obj *desc, Obj **e) { (void)o; (void)s; (void)desc; (void)e; return new_obj("MTLResidencySet"); }
static void r_add(Obj *o, char *s, Obj *b) { (void)o; (void)s; (void)b; counts[1]++; }
static void r_remove(Obj *o, char *s, Obj *b) { (void)o; (void)s; (void)b; counts[1]--; }
static void r_request(Obj *o, char *s) { (void)o; (void)s; pooled("residency is requested"); __atomic_fetch_add(&counts[0], 1, __ATOMIC_RELAXED); }
static void r_commit(Obj *o, char *s) { (void)o; (void)s; counts[2]++; }
static void q_residency(Obj *o, char *s, Obj *set) { (void)o; (void)s; (void)set; }

/* ---- commands ------------------------------------------------------------------ */
static Obj *q_buffer(Obj *o, char *s) { (void)o; (void)s; return autorelease(new_obj("MTLCommandBuffer")); }
static Obj *cb_encoder(Obj *o, char *s, uint64_t type) {
  (void)s;
  if (type != 1) complain("a serial encoder");
  Obj *e = new_obj("MTLComputeCommandEncoder");
  e->parent = o;
  e->now = calloc(1, sizeof *e->now);
  return autorelease(e);
}
static void running(Obj *e) {
  if (e->ended) complain("an encoder was used after endEncoding");
}
static void e_pipeline(Obj *e, char *s, Obj *p) {
  (void)s;
  running(e);
  if (p->refs <= 0) complain("a pipeline that was freed");
  e->now->kernel = p->text;
  e->len = p->len ? p->len : 768;
  e->now->tensor = (uint64_t)p->tensor;
}
static void e_buffers(Obj *e, char *s, Obj **b, uint64_t *off, Range r) {
  (void)s;
  running(e);
  for (uint64_t i = 0; i < r.n; i++) {
    uint64_t k = r.at + i;
    if (k > 30 || b[i]->refs <= 0 || strcmp(b[i]->cls, "MTLBuffer") || off[i] >= b[i]->len) { complain("buffer %lu", (unsigned long)k); return; }
    e->now->buf[k] = b[i]->mem;
    e->now->off[k] = off[i];
    e->now->len[k] = b[i]->len;
    e->now->bytes[k] = 0;
  }
}
static void e_bytes(Obj *e, char *s, void *p, uint64_t n, uint64_t k) {
  (void)s;
  running(e);
  if (n == 0 || n > 4096 || k > 30) { complain("%lu bytes at %lu", (unsigned long)n, (unsigned long)k); return; }
  e->now->buf[k] = p; /* copied at dispatch */
  e->now->bytes[k] = n;
}
static void e_shared(Obj *e, char *s, uint64_t n, uint64_t k) {
  (void)s;
  running(e);
  if (n == 0 || n % 16 || k > 7) complain("threadgroup memory of %lu", (unsigned long)n);
  else e->now->shared[k] = n;
}
static Dispatch *append(Obj *e) {
  Obj *cb = e->parent;
  cb->log = realloc(cb->log, sizeof *cb->log * (size_t)(cb->nlog + 1));
  Dispatch *d = &cb->log[cb->nlog++];
  memset(d, 0, sizeof *d);
  return d;
}
static void dispatch(Obj *e, Size g, Size t) {
  running(e);
  uint64_t sum = 1024;
  for (int i = 0; i < 8; i++) sum += e->now->shared[i];
  if (!e->now->kernel || t.w * t.h * t.d > e->len || g.w * g.h * g.d == 0 || sum > 32768) complain("a launch that is not valid");
  Dispatch *d = append(e);
  *d = *e->now;
  for (int k = 0; k < 31; k++)
    if (d->bytes[k]) d->buf[k] = memcpy(malloc(d->bytes[k]), d->buf[k], d->bytes[k]);
  d->grid[0] = g.w, d->grid[1] = g.h, d->grid[2] = g.d;
  d->threads[0] = t.w, d->threads[1] = t.h, d->threads[2] = t.d;
}
#if defined(__aarch64__)
static void e_dispatch(Obj *e, char *s, Size g, Size t) { (void)s; dispatch(e, g, t); }
#else
static void e_dispatch(Obj *e, char *s, Size *g, Size *t) { (void)s; dispatch(e, *g, *t); }
#endif
static void e_barrier(Obj *e, char *s, uint64_t scope) {
  (void)s;
  running(e);
  if (scope != 1) complain("barrier of scope %lu", (unsigned long)scope);
  append(e)->barrier = 1;
}
static void e_end(Obj *e, char *s) {
  (void)s;
  running(e);
  e->ended = e->parent->ended = 1;
}
static void cb_commit(Obj *cb, char *s) {
  (void)s;
  if (!cb->ended) complain("a command buffer was committed while being encoded");
  if (cb->status) complain("a command buffer was committed twice");
  cb->status = 2;
}
static void cb_wait(Obj *cb, char *s) {
  (void)s;
  if (cb->status < 2) complain("waited for a command buffer that was not committed");
  if (cb->status > 2) return;
  if (set.fail_code) {
    cb->status = 5;
    cb->error = error(set.fail_elsewhere ? "SomeOtherDomain" : "MTLCommandBufferErrorDomain", (long)set.fail_code);
    return;
  }
  for (int i = 0; i < cb->nlog; i++)
    if (!cb->log[i].barrier && set.run) set.run(&cb->log[i]);
  cb->status = 4;
}
static uint64_t cb_status(Obj *cb, char *s) { (void)s; return (uint64_t)cb->status; }
static Obj *cb_error(Obj *cb, char *s) { (void)s; return cb->error; }
static double cb_start(Obj *cb, char *s) { (void)cb; (void)s; return 1000.25; }
static double cb_end(Obj *cb, char *s) { (void)cb; (void)s; return 1000.25 + 0.0078125; }

/* ---- the runtime ------------------------------------------------------------------ */
typedef void (*Imp)(void);
static uint64_t o_responds(Obj *o, char *s, char *sel);
static const struct { const char *cls, *sel; Imp imp; int recent; } methods[] = {
    {"class", "alloc", (Imp)o_alloc, 0},
    {"*", "init", (Imp)o_init, 0},
    {"*", "retain", (Imp)o_retain, 0},
    {"*", "release", (Imp)o_release, 0},
    {"*", "respondsToSelector:", (Imp)o_responds, 0},
    {"NSString", "initWithBytes:length:encoding:", (Imp)s_init, 0},
    {"NSString", "UTF8String", (Imp)s_utf8, 0},
    {"NSError", "localizedDescription", (Imp)e_text, 0},
    {"NSError", "domain", (Imp)e_domain, 0},
    {"NSError", "code", (Imp)e_code, 0},
    {"MTLDevice", "name", (Imp)d_name, 0},
    {"MTLDevice", "supportsFamily:", (Imp)d_family, 0},
    {"MTLDevice", "maxBufferLength", (Imp)d_maxbuf, 0},
    {"MTLDevice", "maxThreadgroupMemoryLength", (Imp)d_shared, 0},
    {"MTLDevice", "recommendedMaxWorkingSetSize", (Imp)d_work, 0},
    {"MTLDevice", "newCommandQueue", (Imp)d_queue, 0},
    {"MTLDevice", "newLibraryWithSource:options:error:", (Imp)d_library, 0},
    {"MTLDevice", "newComputePipelineStateWithFunction:error:", (Imp)d_pipeline, 0},
    {"MTLDevice", "newComputePipelineStateWithDescriptor:options:reflection:error:", (Imp)d_pipeline2, 0},
    {"MTLComputePipelineDescriptor", "setComputeFunction:", (Imp)pd_function, 0},
    {"MTLComputePipelineDescriptor", "setMaxTotalThreadsPerThreadgroup:", (Imp)pd_threads, 0},
    {"MTLDevice", "newBufferWithLength:options:", (Imp)d_buffer, 0},
    {"MTLDevice", "newBufferWithBytesNoCopy:length:options:deallocator:", (Imp)d_wrap, 0},
    {"MTLDevice", "newResidencySetWithDescriptor:error:", (Imp)d_residency, 1},
    {"MTLCompileOptions", "setLanguageVersion:", (Imp)c_language, 0},
    {"MTLCompileOptions", "setMathMode:", (Imp)c_math, 1},
    {"MTLCompileOptions", "setFastMathEnabled:", (Imp)c_fast, 0},
    {"MTLLibrary", "newFunctionWithName:", (Imp)l_function, 0},
    {"MTLComputePipelineState", "maxTotalThreadsPerThreadgroup", (Imp)p_threads, 0},
    {"MTLComputePipelineState", "threadExecutionWidth", (Imp)p_width, 0},
    {"MTLComputePipelineState", "staticThreadgroupMemoryLength", (Imp)p_static, 0},
    {"MTLBuffer", "contents", (Imp)b_contents, 0},
    {"MTLResidencySet", "addAllocation:", (Imp)r_add, 1},
    {"MTLResidencySet", "removeAllocation:", (Imp)r_remove, 1},
    {"MTLResidencySet", "requestResidency", (Imp)r_request, 1},
    {"MTLResidencySet", "commit", (Imp)r_commit, 1},
    {"MTLCommandQueue", "addResidencySet:", (Imp)q_residency, 1},
    {"MTLCommandQueue", "commandBufferWithUnretainedReferences", (Imp)q_buffer, 0},
    {"MTLCommandBuffer", "computeCommandEncoderWithDispatchType:", (Imp)cb_encoder, 0},
    {"MTLCommandBuffer", "commit", (Imp)cb_commit, 0},
    {"MTLCommandBuffer", "waitUntilCompleted", (Imp)cb_wait, 0},
    {"MTLCommandBuffer", "status", (Imp)cb_status, 0},
    {"MTLCommandBuffer", "error", (Imp)cb_error, 0},
    {"MTLCommandBuffer", "GPUStartTime", (Imp)cb_start, 0},
    {"MTLCommandBuffer", "GPUEndTime", (Imp)cb_end, 0},
    {"MTLComputeCommandEncoder", "setComputePipelineState:", (Imp)e_pipeline, 0},
    {"MTLComputeCommandEncoder", "setBuffers:offsets:withRange:", (Imp)e_buffers, 0},
    {"MTLComputeCommandEncoder", "setBytes:length:atIndex:", (Imp)e_bytes, 0},
    {"MTLComputeCommandEncoder", "setThreadgroupMemoryLength:atIndex:", (Imp)e_shared, 0},
    {"MTLComputeCommandEncoder", "dispatchThreadgroups:threadsPerThreadgroup:", (Imp)e_dispatch, 0},
    {"MTLComputeCommandEncoder", "memoryBarrierWithScope:", (Imp)e_barrier, 0},
    {"MTLComputeCommandEncoder", "endEncoding", (Imp)e_end, 0},
};

static Imp find(Obj *o, const char *sel) {
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    if (!strcmp(methods[i].sel, sel) && (methods[i].cls[0] == '*' || !strcmp(methods[i].cls, o->cls)) && !(methods[i].recent && set.old_system))
      return methods[i].imp;
  return 0;
}
static uint64_t o_responds(Obj *o, char *s, char *sel) { (void)s; return find(o, sel) != 0; }
static uint64_t nothing(void) { return 0; }

__attribute__((used)) Imp fake_imp(Obj *o, const char *sel) {
  __atomic_fetch_add(&counts[3], 1, __ATOMIC_RELAXED);
  Imp i = find(o, sel);
  if (!i || o->refs <= 0) {
    complain("%s does not understand %s", o->cls, sel);
    return (Imp)nothing;
  }
  return i;
}

char *fake_register(const char *name) { return strdup(name); }

Obj *fake_class(const char *name) {
  static Obj classes[8];
  static int n;
  if (set.old_system && strstr(name, "Residency")) return 0;
  for (int i = 0; i < n; i++) if (!strcmp(classes[i].text, name)) return &classes[i];
  if (n == 8) abort();
  classes[n].cls = "class";
  classes[n].refs = 1;
  classes[n].text = strdup(name);
  return &classes[n++];
}

Obj *fake_device(void) { return set.no_device ? 0 : new_obj("MTLDevice"); }

/* fake_send finds the method and goes there with all arguments as they came. */
#if defined(__aarch64__)
__asm__(".text\n.globl fake_send\n.type fake_send,%function\nfake_send:\n"
        " stp x29,x30,[sp,#-80]!\n stp x0,x1,[sp,#16]\n stp x2,x3,[sp,#32]\n stp x4,x5,[sp,#48]\n stp x6,x7,[sp,#64]\n"
        " bl fake_imp\n mov x9,x0\n"
        " ldp x0,x1,[sp,#16]\n ldp x2,x3,[sp,#32]\n ldp x4,x5,[sp,#48]\n ldp x6,x7,[sp,#64]\n ldp x29,x30,[sp],#80\n br x9\n");
#else
__asm__(".text\n.globl fake_send\n.type fake_send,@function\nfake_send:\n"
        " push %rdi\n push %rsi\n push %rdx\n push %rcx\n push %r8\n push %r9\n sub $8,%rsp\n"
        " call fake_imp@PLT\n add $8,%rsp\n"
        " pop %r9\n pop %r8\n pop %rcx\n pop %rdx\n pop %rsi\n pop %rdi\n jmp *%rax\n");
#endif
