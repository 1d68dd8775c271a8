/* util.c - bytes, numbers, clocks and futexes for code that has no C library.
 *
 * Guarantees: nothing here touches the program's memory or can fail; fatal() never returns and never
 * leaves the program half alive.
 */
#include "core.h"

struct space space = {0};

void copy_bytes(void *to, const void *from, u64 bytes) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

void clear_bytes(void *to, u64 bytes) {
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(0) : "memory");
}

/* The compiler may call these for large assignments. */
void *memcpy(void *to, const void *from, u64 bytes) {
  copy_bytes(to, from, bytes);
  return to;
}

void *memset(void *to, int value, u64 bytes) {
  void *start = to;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
  return start;
}

u64 parse_number(const char *text) {
  u64 value = 0;
  while (*text >= '0' && *text <= '9') value = value * 10 + (u64)(*text++ - '0');
  return value;
}

char *decimal_before(char *end, u64 value) {
  do *--end = (char)('0' + value % 10);
  while (value /= 10);
  return end;
}

NORETURN void fatal(const char *why) {
  static const char head[] = "rr-py core: ";
  u64 n = 0;
  while (why[n]) n++;
  SYS3(RR_NR_write, 2, head, sizeof head - 1);
  SYS3(RR_NR_write, 2, why, n);
  SYS3(RR_NR_write, 2, "\n", 1);
  for (;;) SYS1(RR_NR_exit_group, 125);
}

u64 now_precise(void) {
  struct timespec t;
  SYS2(RR_NR_clock_gettime, CLOCK_MONOTONIC, &t);
  return (u64)t.sec * 1000000000ul + (u64)t.nsec;
}

u64 now_coarse(void) {
  struct timespec t;
  if (space.vdso_clock)
    rr_vdso_call((void *)space.vdso_clock, CLOCK_MONOTONIC_COARSE, &t);
  else
    SYS2(RR_NR_clock_gettime, CLOCK_MONOTONIC_COARSE, &t);
  return (u64)t.sec * 1000000000ul + (u64)t.nsec;
}

s64 futex_wait(volatile u32 *word, u32 value, u64 timeout_ns) {
  struct timespec t = {(s64)(timeout_ns / 1000000000ul), (s64)(timeout_ns % 1000000000ul)};
  return SYS4(RR_NR_futex, word, FUTEX_WAIT, value, timeout_ns ? &t : NULL);
}

void futex_wake(volatile u32 *word, u32 count) { SYS3(RR_NR_futex, word, FUTEX_WAKE, count); }

/* A lock of the whole recording. It is taken away from a holder that keeps it for long: that one waits in its own call, is
 * stopped, or is dead. */
void shared_lock(struct thread *th, volatile u32 *word) {
  u32 holder = 0;
  u64 start = 0;
  while (!__atomic_compare_exchange_n(word, &holder, th->real_tid, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    u64 now = now_precise();
    if (!start) start = now;
    if (now - start < 20000000) holder = 0;
    SYS0(RR_NR_sched_yield);
  }
}

void shared_unlock(struct thread *th, volatile u32 *word) {
  u32 mine = th->real_tid;
  __atomic_compare_exchange_n(word, &mine, 0u, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}
