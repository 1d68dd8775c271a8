/* dispatch.c - a system call of the program has trapped: it is recorded or replayed here.
 *
 * Guarantees: when the handler returns the program finds in RAX, RCX and R11 what the kernel would have left, in
 * both modes; calls of other architectures (int 0x80) are refused, not made.
 */
#include "core.h"
#include "debug.h"

#define AUDIT_ARCH_X86_64 0xc000003eu

/* A patched call has been made and logged; it traps for what comes behind it. */
static void finish_late(struct thread *th, u64 ip) {
  u64 *regs = th->frame->uc.mc.regs;
  if ((s64)th->late == RR_RESTART)
    regs[R_RIP] = ip - 2;
  else
    set_result(regs, (s64)th->late);
  if (!space.recording) {
    replay_after(th);
  } else if (th->pending) {
    deliver_pending(th, RR_SIG_EXIT);
  }
}

void on_sigsys(int sig, struct siginfo_k *info, struct ucontext_k *uc) {
  struct thread *th = current();
  no_alignment_check(uc);
  if (info->code != SYS_USER_DISPATCH) {
    on_signal(sig, info, uc);
    return;
  }
  u64 *regs = uc->mc.regs;
  u64 args[6] = {regs[R_RDI], regs[R_RSI], regs[R_RDX], regs[R_R10], regs[R_R8], regs[R_R9]};
  u64 ip = regs[R_RIP], nr = (u64)(s64)info->sys.syscall;
  struct sigframe *outer = th->frame;
  int late = ip == gate_late + 2, gate = late || ip == gate_trap + 2;
  th->frame = (struct sigframe *)((u8 *)uc - 8);
  u32 stepped = debug_enter(th, regs);
  if (stepped) regs[R_R11] &= ~0x100ul;
  if (gate) regs[R_RIP] = regs[R_RCX] = ip = th->gate_ip;
  if (info->sys.arch != AUDIT_ARCH_X86_64) {
    if (space.recording) report(RR_REP_COMPAT, nr, 0, 0);
    regs[R_RAX] = (u64)-ENOSYS;
  } else if (late) {
    finish_late(th, ip);
  } else if (space.recording) {
    th->time_in = now_coarse();
    record_call(th, nr, args, ip);
    if (th->pending) deliver_pending(th, RR_SIG_EXIT);
  } else if (!debug_diverted(th, nr, args)) {
    replay_call_all(th, nr, args, ip);
  }
  if (!gate) patch_consider(ip);
  regs[R_RIP] = patch_resume(regs[R_RIP]);
  debug_leave(th, regs, stepped);
  th->frame = outer;
}
