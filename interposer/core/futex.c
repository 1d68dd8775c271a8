/* futex.c - futexes whose words the kernel would write: priority-inheriting locks, and the robust lists of the dead.
 *
 * Guarantees: the words change only under the baton and the changes are in the log. A priority-inheriting lock is
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

/* Gives up the baton and sleeps until the word is no longer `seen`. */
static s64 wait_word(struct thread *th, u64 *args, u64 ip, u32 seen) {
  u32 realtime = operation(args) == FUTEX_LOCK_PI ? FUTEX_CLOCK_REALTIME : (u32)args[1] & FUTEX_CLOCK_REALTIME;
  u64 call[6] = {args[0], FUTEX_WAIT_BITSET | realtime, seen, args[3], 0, ~0u};
  log_begin(th, RR_K_RELEASE, RR_NR_futex, ip, args);
  log_bytes(th, RR_R_OUT, 0, args[0], &seen, 4);
  log_commit(th, 0);
  baton_give(th);
  th->poked = 0;
  s64 result = rr_call_interruptible(RR_NR_futex, call);
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
