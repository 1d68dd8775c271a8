/* counter.c - the time stamp counter of a recorded program, which may not read it itself.
 *
 * Letting the core read it costs two calls that change a control register, many microseconds in a virtual machine. Once the
 * recording is old enough its rate is known, and the counter is computed from the kernel's raw clock instead.
 * Guarantees: the counter never goes back in one process; all processes of a recording compute the same one.
 */
#include "core.h"

#define ENOUGH_NS 200000000ul /* of which a sample is off by less than CLOSE_NS at each end */
#define CLOSE_NS 2000ul

static u64 raw_clock(void) {
  struct timespec t;
  SYS2(RR_NR_clock_gettime, CLOCK_MONOTONIC_RAW, &t);
  return (u64)t.sec * 1000000000ul + (u64)t.nsec;
}

/* a * b / 2^32, and a * 2^32 / b where that fits. */
static u64 scaled(u64 a, u64 b) {
  u64 low, high;
  __asm__("mulq %3" : "=a"(low), "=d"(high) : "a"(a), "r"(b) : "cc");
  return high << 32 | low >> 32;
}
static u64 ratio(u64 a, u64 b) {
  u64 quotient, rest;
  __asm__("divq %4" : "=a"(quotient), "=d"(rest) : "a"(a << 32), "d"(a >> 32), "r"(b) : "cc");
  return quotient;
}

/* The first close sample is where counting starts; one much later gives the rate. */
static void learn(u64 counter, u64 before, u64 after) {
  u64 none = 0;
  if (after - before > CLOSE_NS) return;
  if (!GLOBAL->tsc_start_ns) {
    if (__atomic_compare_exchange_n((u64 *)&GLOBAL->tsc_start, &none, counter, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      __atomic_store_n((u64 *)&GLOBAL->tsc_start_ns, before, __ATOMIC_RELEASE);
    return;
  }
  u64 ns = before - GLOBAL->tsc_start_ns, ticks = counter - GLOBAL->tsc_start;
  if ((s64)ns < (s64)ENOUGH_NS || (s64)ticks <= 0 || ticks >> 32 >= ns) return;
  __atomic_compare_exchange_n((u64 *)&GLOBAL->tsc_rate, &none, ratio(ticks, ns), 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static u64 read_it(void) {
  u32 low, high;
  SYS2(RR_NR_prctl, PR_SET_TSC, PR_TSC_ENABLE);
  u64 before = raw_clock();
  __asm__ volatile("rdtscp" : "=a"(low), "=d"(high) : : "rcx");
  u64 after = raw_clock(), counter = (u64)high << 32 | low;
  SYS2(RR_NR_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
  learn(counter, before, after);
  return counter;
}

u64 time_stamp(u32 *aux) {
  static u64 last;
  u32 cpu = 0, node = 0;
  u64 rate = __atomic_load_n(&GLOBAL->tsc_rate, __ATOMIC_ACQUIRE);
  u64 counter = rate ? GLOBAL->tsc_start + scaled(raw_clock() - GLOBAL->tsc_start_ns, rate) : read_it();
  if (aux) {
    SYS3(RR_NR_getcpu, &cpu, &node, NULL);
    *aux = node << 12 | cpu;
  }
  last = counter > last ? counter : last + 1;
  return last;
}
