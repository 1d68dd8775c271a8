/* frame.c - signal frames on the program's stack, as the kernel builds them (arch/x86/kernel/signal_64.c).
 *
 * Guarantees: a handler finds siginfo, ucontext and floating-point state where the kernel would have put them;
 * what a frame that comes back says is taken over except for what belongs to the core.
 */
#include "core.h"

#define FP_XSTATE_MAGIC1 0x46505853u
#define FX_SW 464
#define FX_RESERVED 416 /* 48 bytes that nobody writes: what the core's stack had there */

u64 fpstate_size(const void *fpstate) {
  const u32 *sw = (const u32 *)((const u8 *)fpstate + FX_SW);
  return sw[0] == FP_XSTATE_MAGIC1 && sw[1] >= 512 && sw[1] < 0x8000 ? sw[1] : 512;
}

/* Which components the processor says are in use depends on what the kernel did, not only on the program. Those that
 * are not hold their initial values in the image: all are said to be in use, here and in every replay. */
static int all_in_use(u64 fp, u64 size) {
  static const u64 none[6];
  u64 features;
  if (rr_copy((void *)(fp + FX_RESERVED), none, sizeof none)) return 1;
  if (size < 576) return 0;
  return rr_copy(&features, (void *)(fp + FX_SW + 8), 8) || rr_copy((void *)(fp + 512), &features, 8);
}

/* A handler begins with the vector and floating-point state of a new program. x87 and SSE count as in use, as they do
 * after every signal: the dynamic linker stores what XSAVEC says of that, and it may not depend on when one came. */
#define X87_SSE 3
static void initial_state(u64 fp, u64 size) {
  u8 *image = (u8 *)fp;
  clear_bytes(image, 24);
  *(u16 *)image = 0x37f;
  *(u32 *)(image + 24) = 0x1f80;
  clear_bytes(image + 32, FX_RESERVED - 32);
  if (size >= 576) *(u64 *)(image + 512) = X87_SSE;
}

static int on_stack(const struct stack_k *stack, u64 sp) {
  return stack->size && !(stack->flags & SS_DISABLE) && sp > stack->sp && sp - stack->sp <= stack->size;
}

/* Builds a frame for `info` and points the interrupted context (in `frame`) at the handler. 0, or 1 where the
 * stack cannot take it. */
int frame_build(struct thread *th, struct sigframe *frame, const struct siginfo_k *info, const struct sigaction_k *action) {
  struct mcontext_k *mc = &frame->uc.mc;
  u64 sp = mc->regs[R_RSP] - 128;
  struct stack_k *alt = &th->altstack;
  if (action->flags & SA_ONSTACK && alt->size && !(alt->flags & SS_DISABLE) && !on_stack(alt, mc->regs[R_RSP]))
    sp = alt->sp + alt->size;
  u64 size = mc->fpstate ? fpstate_size((void *)mc->fpstate) : 0;
  u64 fp = (sp - size) & ~63ul;
  u64 at = ((fp - sizeof(struct sigframe)) & ~15ul) - 8;
  struct sigframe made;
  copy_bytes(&made.uc, &frame->uc, sizeof made.uc);
  clear_bytes(made.uc.mc.reserved, sizeof made.uc.mc.reserved);
  made.pretcode = action->restorer;
  made.uc.link = 0;
  made.uc.stack = *alt;
  made.uc.stack.flags = alt->size && !(alt->flags & SS_DISABLE)
                            ? (alt->flags & SS_AUTODISARM) | (on_stack(alt, mc->regs[R_RSP]) ? SS_ONSTACK : 0)
                            : SS_DISABLE;
  made.uc.mc.fpstate = size ? fp : 0;
  made.uc.mc.regs[R_OLDMASK] = th->mask & 0xffffffff;
  if (info->code <= 0 || (info->signo != SIGSEGV && info->signo != SIGBUS && info->signo != SIGFPE &&
                          info->signo != SIGILL && info->signo != SIGTRAP)) {
    made.uc.mc.regs[R_ERR] = 0;
    made.uc.mc.regs[R_TRAPNO] = 0;
    made.uc.mc.regs[R_CR2] = 0;
  }
  made.uc.sigmask = th->mask;
  copy_bytes(&made.info, info, sizeof made.info);
  if (size && (rr_copy((void *)fp, (void *)mc->fpstate, size) || all_in_use(fp, size))) return 1;
  if (rr_copy((void *)at, &made, sizeof made)) return 1;
  if (size) initial_state(mc->fpstate, size);
  if (alt->flags & SS_AUTODISARM && sp == alt->sp + alt->size) {
    alt->sp = 0;
    alt->size = 0;
    alt->flags = SS_DISABLE;
  }
  u64 mask = action->mask;
  if (th->suspended) th->mask = th->call_mask;
  th->suspended = 0;
  if (!(action->flags & SA_NODEFER)) mask |= BIT(info->signo);
  th->mask |= mask;
  th->mask &= ~(BIT(SIGKILL) | BIT(SIGSTOP));
  mc->regs[R_RDI] = (u64)info->signo;
  mc->regs[R_RSI] = at + offsetof(struct sigframe, info);
  mc->regs[R_RDX] = at + offsetof(struct sigframe, uc);
  mc->regs[R_RAX] = 0;
  mc->regs[R_RSP] = at;
  mc->regs[R_RIP] = action->handler;
  mc->regs[R_EFLAGS] &= ~(0x400ul | 0x100ul | 0x10000ul);
  mc->regs[R_RCX] = 0;
  mc->regs[R_R11] = 0;
  return 0;
}

/* rt_sigreturn: takes the context over from the program's frame. 0, or 1 where it cannot be read. */
int frame_restore(struct thread *th, struct sigframe *frame, u64 sp) {
  struct ucontext_k uc;
  struct mcontext_k *mc = &frame->uc.mc;
  if (rr_copy(&uc, (void *)sp, sizeof uc)) return 1;
  u64 ours = mc->fpstate, size = ours ? fpstate_size((void *)ours) : 0;
  if (uc.mc.fpstate && size) {
    u32 sw[4];
    if (rr_copy(sw, (u8 *)uc.mc.fpstate + FX_SW, sizeof sw)) return 1;
    u64 theirs = sw[0] == FP_XSTATE_MAGIC1 && sw[1] >= 512 && sw[1] <= size ? sw[1] : 512;
    if (theirs == size) {
      if (rr_copy((void *)ours, (void *)uc.mc.fpstate, size)) return 1;
    } else if (rr_copy((void *)ours, (void *)uc.mc.fpstate, FX_SW)) {
      return 1;
    }
  }
  u64 segments = mc->regs[R_CSGSFS], flags = mc->regs[R_EFLAGS];
  copy_bytes(mc->regs, uc.mc.regs, sizeof mc->regs);
  mc->regs[R_CSGSFS] = segments;
  u64 settable = 0x50dd5ul | 0x40000ul;
  mc->regs[R_EFLAGS] = (flags & ~settable) | (uc.mc.regs[R_EFLAGS] & settable);
  th->mask = uc.sigmask & ~(BIT(SIGKILL) | BIT(SIGSTOP));
  if (!on_stack(&th->altstack, uc.mc.regs[R_RSP])) {
    struct stack_k stack = uc.stack;
    if (!(stack.flags & SS_DISABLE)) {
      stack.flags &= SS_AUTODISARM;
      th->altstack = stack;
    } else {
      th->altstack = (struct stack_k){.flags = SS_DISABLE};
    }
  }
  return 0;
}
