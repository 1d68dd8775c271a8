/* chaos.c - record --chaos: hand-overs at random calls, and tasks that are slow for a while, to bring out races.
 *
 * Guarantees: only the order in which tasks get the baton changes, which is in the log as always; the same seed makes
 * the same choices as far as the tasks make the same calls.
 */
#include "core.h"

#define EPOCH 48u        /* hand-overs for which a task stays slow or not */
#define SLOW_NS 1000000u /* the longest a slow task holds back, */
#define LATE_NS 100000u  /* and another one, now and then */

#define NAP_ODDS 16u     /* one call in so many */
#define NAP_NS 150000u

static u64 state;
static u32 calls_left;

static u64 mix(u64 x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ul;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebul;
  return x ^ (x >> 31);
}

static u32 below(u32 bound) {
  if (!state) state = mix(GLOBAL->seed + RING->domain);
  state += 0x9e3779b97f4a7c15ul;
  return (u32)(mix(state) % bound);
}

/* Whether the task that has the baton is to hand it over at this call; now and then it is although nobody asks, to
 * let tasks that are only just beginning catch up. */
int chaos_hands_over(void) {
  if (!RING->wanting) return !below(NAP_ODDS);
  if (calls_left) {
    calls_left--;
    return 0;
  }
  u32 kind = below(8);
  calls_left = kind < 6 ? below(2) : kind < 7 ? below(16) : below(120);
  return 1;
}

/* A task that asks for the baton is counted, and may hold back first. */
void chaos_hold_back(struct thread *th) {
  __atomic_fetch_add(&((struct rr_ring *)RR_RING)->wanting, 1, __ATOMIC_ACQ_REL);
  if (alone()) return;
  u64 luck = mix(GLOBAL->seed ^ mix(((u64)th->tid << 32) | RING->grants / EPOCH));
  if (luck & 3 && below(16)) return;
  struct timespec t = {0, (s64)below(luck & 3 ? LATE_NS : SLOW_NS)};
  SYS2(RR_NR_nanosleep, &t, NULL);
}

/* Gives the baton to one of the tasks that ask for it, some of which hold back: the giver waits until one has it. It
 * counts as asking for it meanwhile, so that the other may hand over again at its first call. */
void chaos_give(struct thread *th, u32 grants) {
  volatile u64 *wanting = &RING->wanting;
  struct timespec t = {0, 20000}, nap = {0, (s64)below(NAP_NS)};
  __atomic_fetch_add((u64 *)wanting, 1, __ATOMIC_ACQ_REL);
  baton_give(th);
  if (*wanting == 1) SYS2(RR_NR_nanosleep, &nap, NULL);
  for (u32 i = 0; i < 200 + SLOW_NS / 10000 && RING->grants == grants && *wanting > 1; i++) {
    if (i < 200)
      SYS0(RR_NR_sched_yield);
    else
      SYS2(RR_NR_nanosleep, &t, NULL);
  }
  __atomic_fetch_sub((u64 *)wanting, 1, __ATOMIC_ACQ_REL);
}
