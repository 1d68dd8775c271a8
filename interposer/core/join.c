/* join.c - a process moves to the log of another domain, because it will share memory with it from now on.
 *
 * The last event of the process in its old log is RR_K_JOIN, its first in the new one RR_K_JOINED: replay follows, and
 * from there on both are in one order. Guarantees: the move happens before the shared memory is mapped; only a process
 * that is alone in its domain moves; who waits for the baton or for its turn in the old log is woken into the new.
 */
#include "core.h"

#define MREMAP_BOTH (MREMAP_MAYMOVE | MREMAP_FIXED)

/* Puts the ring behind `fd` in place of the present one, which stays in sight until its sleepers are awake. */
static void switch_ring(s32 fd) {
  s64 old = SYS5(RR_NR_mremap, RR_RING, 0, RR_RING_SIZE, MREMAP_BOTH, RR_BOOT);
  s64 got = SYS6(RR_NR_mmap, RR_RING, RR_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (got != (s64)RR_RING) fatal("the log of another domain cannot be mapped");
  if (old != (s64)RR_BOOT) return;
  volatile struct rr_ring *before = (volatile struct rr_ring *)RR_BOOT;
  futex_wake(&before->baton, 0x7fffffff);
  if (!space.recording)
    for (u32 i = 0; i < RR_TURN_WORDS; i++) {
      __atomic_fetch_add((u32 *)&before->turn[i], 1, __ATOMIC_RELEASE);
      futex_wake(&before->turn[i], 0x7fffffff);
    }
  SYS2(RR_NR_munmap, RR_BOOT, RR_RING_SIZE);
}

/* Recording: asks whether what is about to be shared is shared with another domain, and moves there if so. Returns the
 * number of a System V segment in the trace. */
u32 record_join(struct thread *th, u64 ip, u32 what, s32 fd, u64 id, u64 writable) {
  u32 before = space.domain, mine = th->process->nthreads;
  struct rr_msg msg = {.type = RR_M_SHARE, .a = what, .b = id, .c = writable, .d = RING->ntasks > mine};
  s32 ring = -1;
  if (!logging() || channel_send(CONTROL, &msg, &fd, fd >= 0 ? 1 : 0) < 0 ||
      channel_receive(CONTROL, &msg, NULL, 0, &ring, 1) < 0)
    return 0;
  u32 number = (u32)msg.b;
  if (ring < 0) return number;
  log_begin(th, RR_K_JOIN, 0, ip, (u64[6]){msg.a, th->pid, mine, 0, 0, 0});
  log_commit(th, 0);
  RING->ntasks = 0;
  switch_ring(ring);
  SYS1(RR_NR_close, ring);
  space.domain = (u32)msg.a;
  __atomic_fetch_add((u32 *)&RING->ntasks, mine, __ATOMIC_ACQ_REL);
  baton_take(th);
  log_begin(th, RR_K_JOINED, 0, ip, (u64[6]){before, th->pid, mine, 0, 0, 0});
  log_commit(th, 0);
  msg = (struct rr_msg){.type = RR_M_JOINED, .a = space.domain};
  channel_send(CONTROL, &msg, NULL, 0);
  return number;
}

/* Replaying: the next event is the move. */
void replay_join(struct thread *th) {
  struct rr_event *event = next_event(th);
  u32 domain = (u32)event->args[0];
  consume(th);
  switch_ring(ring_ask(domain, th->pid));
  space.domain = domain;
  wait_turn(th);
  replay_expect(th, RR_K_JOINED);
}
