/* futex.c - futexes whose words the kernel would write: priority-inheriting locks, and the robust lists of the dead.
 *
 * Guarantees: the words change only under the baton and the changes are in the log. A task that was killed cannot release
 * its locks: whoever waits for one finds that out by itself. A priority-inheriting lock is
 * kept by the core with ordinary waits: same words and results as the kernel's, no priorities.
 */
#include "core.h"

#define FUTEX_LOCK_PI 6u
#define FUTEX_UNLOCK_PI 7u
#define FUTEX_TRYLOCK_PI 8u
#define FUTEX_WAIT_BITSET 9u
#define FUTEX_WAIT_REQUEUE_PI 11u
#define FUTEX_CMP_REQUEUE_PI 12u
#define FUTEX_LOCK_PI2 13u
#define FUTEX_CLOCK_REALTIME 256u
#define ROBUST_MAX 2048u

#define OWNER_CHECK_NS 100000000ul

static u32 operation(const u64 *args) { return (u32)args[1] & 127; }

int is_pi_futex(const u64 *args) {
  u32 op = operation(args);
  return (op >= FUTEX_LOCK_PI && op <= FUTEX_TRYLOCK_PI) || (op >= FUTEX_WAIT_REQUEUE_PI && op <= FUTEX_LOCK_PI2);
}

static s64 finish(struct thread *th, u64 *args, u64 ip, s64 result, int waited, const u32 *word) {
  log_begin(th, RR_K_SYSCALL, RR_NR_futex, ip, args);
  if (waited) th->event.flags |= RR_EF_BLOCKED;
  if (word) {
    if (rr_copy((void *)args[0], word, 4))
      result = -EFAULT;
    else
      log_bytes(th, RR_R_OUT, 0, args[0], word, 4);
  }
  log_commit(th, result);
  return result;
}

/* Whether the task that a lock's word names was one of this domain and was killed: those that end in order are forgotten. */
static int owner_killed(u32 word) {
  u32 tid = word & FUTEX_TID_MASK;
  return tid && RING->turn[tid % RR_TURN_WORDS] == tid && task_gone(tid);
}

/* Gives up the baton and sleeps until the word is no longer `seen`. */
static s64 wait_word(struct thread *th, u64 *args, u64 ip, u32 seen) {
  u32 realtime = operation(args) == FUTEX_LOCK_PI ? FUTEX_CLOCK_REALTIME : (u32)args[1] & FUTEX_CLOCK_REALTIME;
  u64 call[6] = {args[0], FUTEX_WAIT_BITSET | realtime, seen, args[3], 0, ~0u};
  int killed;
  log_begin(th, RR_K_RELEASE, RR_NR_futex, ip, args);
  log_bytes(th, RR_R_OUT, 0, args[0], &seen, 4);
  log_commit(th, 0);
  baton_give(th);
  s64 result = wait_owned(th, call, &killed);
  if (result == -EINTR && th->poked && !th->pending) result = 0;
  baton_take(th);
  return result == -EINTR ? RR_RESTART : result;
}

static s64 lock(struct thread *th, u64 *args, u64 ip) {
  int waited = 0;
  for (;;) {
    u32 word;
    if (args[0] & 3) return finish(th, args, ip, -EINVAL, waited, NULL);
    if (rr_copy(&word, (void *)args[0], 4)) return finish(th, args, ip, -EFAULT, waited, NULL);
    u32 owner = word & FUTEX_TID_MASK;
    if (owner && owner_killed(word)) {
      word = (word & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
      owner = 0;
    }
    if (!owner) {
      word = th->tid | (word & FUTEX_OWNER_DIED) | (waited ? FUTEX_WAITERS : 0);
      return finish(th, args, ip, 0, waited, &word);
    }
    if (owner == th->tid) return finish(th, args, ip, -EDEADLK, waited, NULL);
    if (operation(args) == FUTEX_TRYLOCK_PI) return finish(th, args, ip, -EAGAIN, waited, NULL);
    if (!waited && SYS2(RR_NR_tkill, owner, 0) == -ESRCH) return finish(th, args, ip, -ESRCH, waited, NULL);
    word |= FUTEX_WAITERS;
    if (rr_copy((void *)args[0], &word, 4)) return finish(th, args, ip, -EFAULT, waited, NULL);
    s64 why = wait_word(th, args, ip, word);
    waited = 1;
    if (why != 0 && why != -EAGAIN) return finish(th, args, ip, why, waited, NULL);
  }
}

static s64 unlock(struct thread *th, u64 *args, u64 ip) {
  u32 word, none = 0;
  if (rr_copy(&word, (void *)args[0], 4)) return finish(th, args, ip, -EFAULT, 0, NULL);
  if ((word & FUTEX_TID_MASK) != th->tid) return finish(th, args, ip, -EPERM, 0, NULL);
  s64 result = finish(th, args, ip, 0, 0, &none);
  futex_wake((volatile u32 *)args[0], 1);
  return result;
}

/* Recording: FUTEX_LOCK_PI and its kin. Requeueing to such a lock is not offered; libraries do without. */
s64 record_pi_futex(struct thread *th, u64 *args, u64 ip) {
  switch (operation(args)) {
    case FUTEX_LOCK_PI: case FUTEX_LOCK_PI2: case FUTEX_TRYLOCK_PI: return lock(th, args, ip);
    case FUTEX_UNLOCK_PI: return unlock(th, args, ip);
    default: return finish(th, args, ip, -ENOSYS, 0, NULL);
  }
}

/* ---- locks of the killed ---- */

/* Whether this is a wait for a lock that processes share, whose word names its owner. */
int waits_for_owner(const u64 *args) {
  u32 op = (u32)args[1] & ~FUTEX_CLOCK_REALTIME;
  return (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET) && args[2] & FUTEX_WAITERS && args[2] & FUTEX_TID_MASK;
}

static u64 nanoseconds(const struct timespec *t) { return (u64)t->sec * 1000000000ul + (u64)t->nsec; }

/* Such a wait, without the baton, in pieces between which it looks whether the owner still lives; `killed`: it does not. */
s64 wait_owned(struct thread *th, const u64 *args, int *killed) {
  u32 op = operation(args), clock = (u32)args[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  u32 bits = op == FUTEX_WAIT ? ~0u : (u32)args[5];
  struct timespec now, until;
  u64 deadline = ~0ul;
  *killed = 0;
  th->poked = 0;
  if (args[3]) {
    if (rr_copy(&until, (void *)args[3], sizeof until)) return -EFAULT;
    if (until.sec < 0 || (u64)until.nsec > 999999999ul) return -EINVAL;
    SYS2(RR_NR_clock_gettime, clock, &now);
    if ((u64)until.sec < 1ul << 33) deadline = nanoseconds(&until) + (op == FUTEX_WAIT ? nanoseconds(&now) : 0);
  }
  for (;;) {
    if (owner_killed((u32)args[2])) {
      *killed = 1;
      return 0;
    }
    SYS2(RR_NR_clock_gettime, clock, &now);
    u64 next = nanoseconds(&now) + OWNER_CHECK_NS;
    int last = deadline <= next;
    if (last) next = deadline;
    until = (struct timespec){(s64)(next / 1000000000ul), (s64)(next % 1000000000ul)};
    u64 call[6] = {args[0], FUTEX_WAIT_BITSET | ((u32)args[1] & ~127u), args[2], (u64)&until, 0, bits};
    if (clock == CLOCK_REALTIME) call[1] |= FUTEX_CLOCK_REALTIME;
    s64 result = rr_call_interruptible(RR_NR_futex, call);
    if (result != -ETIMEDOUT || last) return result;
  }
}

/* With the baton again, and the wait's event begun: the dead owner's lock becomes one that is free. */
void take_from_killed(struct thread *th, const u64 *args) {
  u32 word, dead = FUTEX_WAITERS | FUTEX_OWNER_DIED;
  if (rr_copy(&word, (void *)args[0], 4) || word != (u32)args[2]) return;
  if (!rr_copy((void *)args[0], &dead, 4)) log_region(th, RR_R_OUT, 0, args[0], 4);
}

/* ---- robust lists ---- */

static void owner_died(struct thread *th, u64 word_at, u32 tid) {
  u32 word;
  if (rr_copy(&word, (void *)word_at, 4) || (word & FUTEX_TID_MASK) != tid) return;
  u32 dead = (word & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
  rr_copy((void *)word_at, &dead, 4);
  log_region(th, RR_R_OUT, 255, word_at, 4);
  if (word & FUTEX_WAITERS) futex_wake((volatile u32 *)word_at, 1);
}

/* What the kernel does at the end of a thread: locks that `of` holds get a dead owner. Into the event of `th`. */
void release_robust(struct thread *th, const struct thread *of) {
  u64 head[3], entry;
  RING->turn[of->tid % RR_TURN_WORDS] = 0;
  if (!of->robust_head || rr_copy(head, (void *)of->robust_head, sizeof head)) return;
  entry = head[0];
  for (u32 i = 0; i < ROBUST_MAX && (entry & ~1ul) != of->robust_head; i++) {
    u64 next;
    if (rr_load64(&next, (void *)(entry & ~1ul))) break;
    if ((entry & ~1ul) != (head[2] & ~1ul)) owner_died(th, (entry & ~1ul) + head[1], of->tid);
    entry = next;
  }
  if (head[2] & ~1ul) owner_died(th, (head[2] & ~1ul) + head[1], of->tid);
}
