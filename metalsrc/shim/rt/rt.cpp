// CPU runtime of the MSL shim. It runs the threads of a threadgroup as fibers
// on one OS thread: barriers and simdgroup functions are the only places where
// a fiber gives way, and a thread that never blocks costs no switch at all,
// since its fiber goes on with the next thread.
//
// Everything a running threadgroup needs lies in a Worker, which the code finds
// from its own stack pointer. So there are no globals, any number of workers run
// side by side, and a worker may pass through several kernel libraries.
//
//   worker.h   the Worker and its memory
//   fiber.h    switching stacks
//   schedule.h who runs next; barriers and simdgroup functions
//   play.h     launches, threadgroup by threadgroup
//   shadow.h   with MSL_CHECK: the checker's shadow memory
//   hooks.h    with MSL_CHECK: what the compilers' sanitizers call
//   atomic.h   atomics
#include "../msl_rt.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "worker.h"
#include "fiber.h"
#include "schedule.h"
#ifdef MSL_CHECK
#include "shadow.h"
#include "hooks.h"
#endif
#include "atomic.h"
#include "play.h"
