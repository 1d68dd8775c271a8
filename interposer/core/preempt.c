/* preempt.c - stopping a task between calls, and finding the same state again.
 *
 * Guarantees: the state logged is complete (registers, vector state, every page that can have changed), so that
 * replay continues from it whatever the code did before: never wrong, never stuck.
 */
#include "core.h"

#define SPIN_BYTES 1024u
#define LONG_NS 250000000ul

/* Whether it seems to wait for somebody, rather than to compute: found in the same few instructions of the same
 * function three times, or at the very same place twice. What computes may go on for longer: a snapshot of a large
 * program costs much, and nobody may need what the others would do meanwhile. */
static int seems_to_spin(struct thread *th, u64 ip, u64 sp) {
  if (th->poke_events != RING->event_count || !th->pokes) {
    th->poke_events = RING->event_count;
    th->poke_since = now_coarse();
    th->pokes = 0;
  }
  u32 seen = th->pokes < POKES ? th->pokes : POKES, near = 0;
  int again = 0;
  for (u32 i = 0; i < seen; i++) {
    u32 at = (th->pokes - 1 - i) % POKES;
    again |= th->poke_ip[at] == ip && th->poke_sp[at] == sp;
    near += i < 2 && ip - th->poke_ip[at] + SPIN_BYTES < 2 * SPIN_BYTES && th->poke_sp[at] == sp;
  }
  th->poke_ip[th->pokes % POKES] = ip;
  th->poke_sp[th->pokes % POKES] = sp;
  th->pokes++;
  return again || near == 2 || now_coarse() - th->poke_since > LONG_NS;
}

/* Recording: the recorder asked the baton's holder to let others run, or to take a signal, and it is in the
 * program's code: `frame` is the kernel's. */
void preempt(struct thread *th, struct sigframe *frame) {
  struct sigframe *outer = th->frame;
  u64 *regs = frame->uc.mc.regs;
  if (!logging() || (RING->baton & 0x7fffffff) != th->real_tid) return;
  if (!RING->pending_signals && !seems_to_spin(th, regs[R_RIP], regs[R_RSP])) return;
  th->pokes = 0;
  th->frame = frame;
  th->time_in = now_coarse();
  log_begin(th, RR_K_PREEMPT, 0, regs[R_RIP], NULL);
  log_bytes(th, RR_R_REGS, 0, 0, regs, sizeof frame->uc.mc.regs);
  if (frame->uc.mc.fpstate) log_bytes(th, RR_R_REGS, 1, 0, (void *)frame->uc.mc.fpstate, fpstate_size((void *)frame->uc.mc.fpstate));
  save_memory(th);
  log_commit(th, 0);
  if (!alone()) {
    u32 grants = RING->grants;
    baton_give(th);
    for (u32 i = 0; i < 500 && RING->grants == grants; i++) SYS0(RR_NR_sched_yield);
    baton_take(th);
  }
  log_begin(th, RR_K_RESUME, 0, regs[R_RIP], NULL);
  log_commit(th, 0);
  RING->held_since = now_coarse();
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
