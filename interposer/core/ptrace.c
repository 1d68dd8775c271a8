/* ptrace.c - ptrace between tasks of one address space, as LeakSanitizer does it: attach to all others, read their
 * registers, detach. Done without the kernel's ptrace, in both modes from the same state.
 *
 * Guarantees: an attached task runs no code of the program until it is let go or its tracer has ended; its registers
 * are those at the call it is inside.
 */
#include "core.h"

#define EIO 5
enum { GETREGS = 12, CONT = 7, ATTACH = 16, DETACH = 17, GETREGSET = 0x4204 };
#define NT_PRSTATUS 1
#define STOPPED_BY_SIGSTOP (SIGSTOP << 8 | 0x7f)

static struct thread *target_of(struct thread *th, u64 tid) {
  struct thread *target = thread_find((u32)tid);
  return target && target->tracer == th->tid ? target : NULL;
}

/* The kernel's struct user_regs_struct. */
static void registers_of(const struct thread *target, u64 *to) {
  static const u8 order[] = {R_R15, R_R14, R_R13, R_R12, R_RBP, R_RBX, R_R11, R_R10, R_R9, R_R8, R_RAX, R_RCX, R_RDX, R_RSI, R_RDI, R_RAX, R_RIP};
  const u64 *regs = target->frame->uc.mc.regs;
  clear_bytes(to, 27 * 8);
  for (u32 i = 0; i < sizeof order; i++) to[i] = regs[order[i]];
  to[17] = 0x33;
  to[18] = regs[R_EFLAGS];
  to[19] = regs[R_RSP];
  to[20] = 0x2b;
}

static s64 read_set(const struct thread *target, u64 set, u64 vector) {
  struct iovec v;
  u64 regs[27];
  if (set != NT_PRSTATUS) return -EINVAL;
  if (rr_copy(&v, (void *)vector, sizeof v)) return -EFAULT;
  registers_of(target, regs);
  if (v.len > sizeof regs) v.len = sizeof regs;
  return rr_copy((void *)v.base, regs, v.len) || rr_copy((void *)vector, &v, sizeof v) ? -EFAULT : 0;
}

static void let_go(struct thread *target) {
  target->tracer = 0;
  if (space.recording) futex_wake(&target->tracer, 1);
}

s64 do_ptrace(struct thread *th, const u64 *args) {
  struct thread *target = (u32)args[0] == ATTACH ? thread_find((u32)args[1]) : target_of(th, args[1]);
  u64 regs[27];
  if (!target || target == th || !target->frame) {
    if (space.recording) report(RR_REP_PTRACE, 0, 0, 0);
    return (u32)args[0] == ATTACH || (u32)args[0] == 0 ? -EPERM : -ESRCH;
  }
  switch ((u32)args[0]) {
    case ATTACH: target->tracer = th->tid; return 0;
    case CONT: return 0;
    case DETACH: let_go(target); return 0;
    case GETREGS: registers_of(target, regs); return rr_copy((void *)args[3], regs, sizeof regs) ? -EFAULT : 0;
    case GETREGSET: return read_set(target, args[2], args[3]);
    default: return -EIO;
  }
}

int waits_for_traced(const u64 *args) { return (s32)args[0] > 0 && target_of(current(), args[0]) != NULL; }

s64 wait_for_traced(const u64 *args) {
  s32 status = STOPPED_BY_SIGSTOP;
  return args[1] && rr_copy((void *)args[1], &status, sizeof status) ? -EFAULT : (s64)(u32)args[0];
}

/* Recording, with the baton: sleeps without it as long as somebody holds this task. 1: the baton is to be taken again. */
int held_by_tracer(struct thread *th) {
  u32 tracer = th->tracer;
  if (!tracer) return 0;
  baton_give(th);
  futex_wait(&th->tracer, tracer, 100000000);
  if (!thread_find(tracer)) th->tracer = 0;
  return 1;
}
