/* preempt.c - stopping a task between calls, and finding the same state again.
 *
 * Guarantees: the state logged is complete (registers, vector state, every page that can have changed), so that
 * replay continues from it whatever the code did before: never wrong, never stuck.
 */
#include "core.h"

/* Recording: the baton's holder, which has made no call for `ran` nanoseconds, is asked to let others run, or to take a
 * signal, and it is in the program's code: `frame` is the kernel's. */
void preempt(struct thread *th, struct sigframe *frame, u64 ran) {
  struct sigframe *outer = th->frame;
  u64 *regs = frame->uc.mc.regs;
  if (!logging() || (RING->baton & 0x7fffffff) != th->real_tid) return;
  if (!RING->pending_signals && !(RING->baton & 0x80000000) && !RING->stopped_tasks) return;
  int spinning = seems_to_spin(th, regs, ran);
  if (!RING->pending_signals && !spinning) return;
  th->frame = frame;
  th->time_in = now_coarse();
  u64 before = RING->event_count;
  log_begin(th, RR_K_PREEMPT, 0, regs[R_RIP], NULL);
  log_bytes(th, RR_R_REGS, 0, 0, regs, sizeof frame->uc.mc.regs);
  if (frame->uc.mc.fpstate) log_bytes(th, RR_R_REGS, 1, 0, (void *)frame->uc.mc.fpstate, fpstate_size((void *)frame->uc.mc.fpstate));
  u64 began = now_precise(), bytes = save_memory(th);
  log_commit(th, 0);
  RING->stops += RING->event_count - before;
  u64 others = RING->event_count - RING->stops;
  u64 took = now_precise() - began;
  if (!alone()) {
    u32 grants = RING->grants;
    __atomic_fetch_add(&((struct rr_ring *)RR_RING)->stopped_tasks, 1, __ATOMIC_ACQ_REL);
    baton_give(th);
    for (u32 i = 0; i < 500 && RING->grants == grants; i++) SYS0(RR_NR_sched_yield);
    baton_take(th);
    __atomic_fetch_sub(&((struct rr_ring *)RR_RING)->stopped_tasks, 1, __ATOMIC_ACQ_REL);
  }
  others = RING->event_count - RING->stops - others;
  log_begin(th, RR_K_RESUME, 0, regs[R_RIP], NULL);
  log_commit(th, 0);
  RING->stops++;
  RING->held_since = now_coarse();
  spin_stopped(th, took, bytes, others);
  deliver_pending(th, RR_SIG_PREEMPT);
  th->frame = outer;
}

void replay_state(struct thread *th, const struct rr_event *event) {
  struct mcontext_k *mc = &th->frame->uc.mc;
  const u8 *at = event_payload(event), *end = at + event->payload_len;
  while (at < end) {
    const struct rr_region *region = (const struct rr_region *)at;
    if (region->kind == RR_R_REGS && region->arg == 0) {
      u64 segments = mc->regs[R_CSGSFS];
      copy_bytes(mc->regs, region + 1, region->len < sizeof mc->regs ? region->len : sizeof mc->regs);
      mc->regs[R_CSGSFS] = segments;
    } else if (region->kind == RR_R_REGS && mc->fpstate && region->len <= fpstate_size((void *)mc->fpstate)) {
      copy_bytes((void *)mc->fpstate, region + 1, region->len);
    }
    at += sizeof *region + ((region->len + 7ul) & ~7ul);
  }
  apply_outputs(th, event);
  consume(th);
}

void replay_preempt(struct thread *th, const struct rr_event *event) {
  replay_state(th, event);
  pass_turn(th);
  wait_turn(th);
  replay_expect(th, RR_K_RESUME);
}
