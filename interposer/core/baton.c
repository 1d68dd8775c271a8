/* baton.c - recording: one task of a domain at a time runs the program's code.
 *
 * Guarantees: the baton word holds the holder's tid or 0; a task that waits sleeps on it (bit 31 set); a holder
 * that died without giving it up loses it. Nothing here runs when the domain has one task only.
 */
#include "core.h"

#define WAITERS 0x80000000u
#define HOLDER_CHECK_NS 200000000ul
#define SPINS 100

static int try_take(u32 value) {
  u32 expected = 0;
  return __atomic_compare_exchange_n(&((struct rr_ring *)RR_RING)->baton, &expected, value, 0, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

/* Whether a task has ended, be it that nobody has reaped it yet (who would may be waiting for it here). */
static int ended(u32 tid) {
  char text[128], path[32] = "/proc/";
  u32 at = 6, digits = 0;
  char number[12];
  for (u32 n = tid; n; n /= 10) number[digits++] = (char)('0' + n % 10);
  while (digits) path[at++] = number[--digits];
  for (const char *rest = "/stat"; *rest; rest++) path[at++] = *rest;
  path[at] = 0;
  s64 fd = SYS4(RR_NR_openat, -100, path, 02000000, 0);
  if (fd < 0) return 0;
  s64 n = SYS3(RR_NR_read, fd, text, sizeof text);
  SYS1(RR_NR_close, fd);
  while (n > 1 && text[n - 1] != ')') n--;
  return n > 1 && n + 1 < (s64)sizeof text && (text[n + 1] == 'Z' || text[n + 1] == 'X');
}

int task_gone(u32 tid) { return tid && (SYS2(RR_NR_tkill, tid, 0) == -ESRCH || ended(tid)); }

static void exiting_waits(struct thread *th) {
  while (th->process->exiting) SYS0(RR_NR_pause);
}

static void take(struct thread *th) {
  u32 mine = th->real_tid;
  exiting_waits(th);
  if (unlikely(GLOBAL->seed)) chaos_hold_back(th);
  for (u32 i = spins(SPINS); i; i--) {
    if (!RING->baton && try_take(mine)) goto taken;
    __builtin_ia32_pause();
  }
  u32 want = mine;
  while (!try_take(want)) {
    u32 seen = RING->baton;
    if (!seen) continue;
    if (!(seen & WAITERS)) {
      if (!__atomic_compare_exchange_n(&((struct rr_ring *)RR_RING)->baton, &seen, seen | WAITERS, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED))
        continue;
      seen |= WAITERS;
    }
    s64 why = futex_wait(&RING->baton, seen, HOLDER_CHECK_NS);
    want = mine | WAITERS;
    exiting_waits(th);
    if (why == -ETIMEDOUT && RING->baton == seen && task_gone(seen & ~WAITERS)) {
      __atomic_compare_exchange_n(&((struct rr_ring *)RR_RING)->baton, &seen, 0u, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
    if (!logging()) break;
  }
taken:
  if (unlikely(GLOBAL->seed)) __atomic_fetch_sub(&((struct rr_ring *)RR_RING)->wanting, 1, __ATOMIC_ACQ_REL);
  if (RING->last_holder != mine) {
    RING->last_holder = RING->turn[mine % RR_TURN_WORDS] = mine;
    RING->grants++;
    RING->held_since = now_coarse();
    handed_over();
    late_fault_follow(th);
  }
  if (unlikely(RING->spin_patience)) spin_arm(th);
}

void baton_take(struct thread *th) {
  do take(th);
  while (unlikely(held_by_tracer(th)));
}

void baton_give(struct thread *th) {
  if (unlikely(th->timer_armed)) spin_disarm(th);
  u32 old = __atomic_exchange_n(&((struct rr_ring *)RR_RING)->baton, 0, __ATOMIC_RELEASE);
  if (old & WAITERS) futex_wake(&RING->baton, 1);
}

/* At a call: if others have waited for longer than a slice, let one of them run. */
void baton_fair(struct thread *th, u64 ip) {
  if (!(RING->baton & WAITERS) && !GLOBAL->seed) return;
  u64 now = now_coarse();
  if (GLOBAL->seed ? !chaos_hands_over() : now - RING->held_since < GLOBAL->slice_ns) return;
  u32 grants = RING->grants;
  log_begin(th, RR_K_YIELD, 0, ip, NULL);
  log_commit(th, 0);
  if (GLOBAL->seed) {
    chaos_give(th, grants);
  } else {
    baton_give(th);
    for (u32 i = 0; i < 200 && RING->grants == grants; i++) SYS0(RR_NR_sched_yield);
  }
  baton_take(th);
  log_begin(th, RR_K_RESUME, 0, ip, NULL);
  log_commit(th, 0);
  RING->held_since = now;
}
