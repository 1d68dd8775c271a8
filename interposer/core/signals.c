/* signals.c - the program's signals: virtual dispositions, masks and stacks; delivery at system calls.
 *
 * Guarantees: an asynchronous signal never runs program code at a place replay cannot find: it is queued and
 * delivered before or after a system call (or at a preemption). Faults of the program's own instructions are
 * delivered where they happen. Faults in the core's guarded copies become an error result.
 */
#include "core.h"
#include "debug.h"

#define CORE_SIGNALS (BIT(SIGSYS) | BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGFPE) | BIT(SIGSTKFLT))
#define SYNCHRONOUS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGFPE))
#define SA_KNOWN (1ul | 2ul | SA_SIGINFO | 0x800ul | SA_RESTORER | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_RESETHAND)

/* What the kernel's mask is while the program runs: its own, but the core's signals always get through. In a
 * replay nothing asynchronous may come at all. */
u64 real_mask(u64 mask) { return (space.recording ? mask : ~0ul) & ~CORE_SIGNALS; }

void set_real_mask(u64 mask) { SYS4(RR_NR_rt_sigprocmask, 2, &mask, NULL, 8); }

int default_is_fatal(u32 sig) {
  return !(sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH || sig == SIGSTOP || sig == SIGTSTP ||
           sig == SIGTTIN || sig == SIGTTOU);
}

static void set_action(u32 sig, void *handler, u64 flags, u64 mask, void *restorer) {
  struct sigaction_k action = {(u64)handler, flags | SA_RESTORER, (u64)restorer, mask};
  SYS4(RR_NR_rt_sigaction, sig, &action, NULL, 8);
}

/* The kernel's disposition that goes with the program's (recording). */
void install_one(struct process *process, u32 sig) {
  const struct sigaction_k *action = &process->actions[sig];
  if (CORE_SIGNALS & BIT(sig) || sig == SIGKILL || sig == SIGSTOP) return;
  if (action->handler == SIG_IGN || (action->handler == SIG_DFL && !default_is_fatal(sig)))
    set_action(sig, (void *)action->handler, action->flags & 3, 0, rr_restorer);
  else
    set_action(sig, on_signal, SA_SIGINFO | SA_ONSTACK | (action->flags & (SA_RESTART | 3)), ~CORE_SIGNALS, rr_restorer);
}

void signals_install(struct process *process) {
  u64 faults = space.recording ? 0 : ~CORE_SIGNALS;
  for (u32 sig = 1; sig <= 64; sig++) {
    struct sigaction_k old = {0};
    clear_bytes(&process->actions[sig], sizeof process->actions[sig]);
    SYS4(RR_NR_rt_sigaction, sig, NULL, &old, 8);
    if (old.handler == SIG_IGN) process->actions[sig].handler = SIG_IGN;
    if (space.recording && !(old.handler == SIG_IGN)) install_one(process, sig);
  }
  set_action(SIGSYS, on_sigsys, SA_SIGINFO | SA_ONSTACK, faults, rr_restorer_app);
  static const u8 sync[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};
  for (u32 i = 0; i < sizeof sync; i++)
    set_action(sync[i], on_fault, SA_SIGINFO | SA_ONSTACK | SA_NODEFER, faults, rr_restorer_app);
  set_action(SIGSTKFLT, on_signal, SA_SIGINFO | SA_ONSTACK | SA_RESTART, ~CORE_SIGNALS, rr_restorer);
}

/* The mask that a call has the kernel use for its own time only. 0: it has none. */
int mask_of_call(u64 nr, const u64 *args, u64 *mask) {
  u64 at, pointer;
  switch (nr) {
    case RR_NR_rt_sigsuspend: at = args[0]; break;
    case RR_NR_ppoll: at = args[3]; break;
    case RR_NR_epoll_pwait: case RR_NR_epoll_pwait2: at = args[4]; break;
    case RR_NR_pselect6:
      if (!args[5] || rr_load64(&pointer, (void *)args[5])) return 0;
      at = pointer;
      break;
    default: return 0;
  }
  return at && !rr_load64(mask, (void *)at);
}

/* ---- arrival ---- */

static void enqueue(struct thread *th, const struct siginfo_k *info) {
  if (info->signo < 32)
    for (u64 i = 0; i < th->pending; i++)
      if (th->queue[i].signo == info->signo) return;
  if (th->pending >= SIG_QUEUE) return;
  copy_bytes(&th->queue[th->pending], info, sizeof *info);
  __atomic_store_n(&th->pending, th->pending + 1, __ATOMIC_RELEASE);
}

static void dequeue(struct thread *th, struct siginfo_k *info) {
  copy_bytes(info, &th->queue[0], sizeof *info);
  for (u64 i = 1; i < th->pending; i++) copy_bytes(&th->queue[i - 1], &th->queue[i], sizeof *info);
  th->pending--;
}

/* ---- signals that the core needs and that the program blocks: sent ones are kept here until it wants them ---- */

static struct siginfo_k *held_place(struct thread *th, u32 sig) {
  u32 index = 0;
  for (u32 other = 1; other < sig; other++) index += (CORE_SIGNALS & BIT(other)) != 0;
  return &th->held_info[index];
}

static void hold(struct thread *th, const struct siginfo_k *info) {
  if (th->held & BIT(info->signo)) return;
  th->held |= BIT(info->signo);
  copy_bytes(held_place(th, (u32)info->signo), info, sizeof *info);
}

/* Those that `mask` lets through come at the end of the present call. */
static void let_held_go(struct thread *th, u64 mask) {
  for (u64 ready = th->held & ~mask; ready; ready &= ready - 1) {
    u32 sig = (u32)__builtin_ctzl(ready) + 1;
    enqueue(th, held_place(th, sig));
    th->held &= ~BIT(sig);
  }
}

s64 held_take(struct thread *th, const u64 *args) {
  u64 set;
  if (!th->held || rr_load64(&set, (void *)args[0]) || !(th->held & set)) return 0;
  u32 sig = (u32)__builtin_ctzl(th->held & set) + 1;
  if (args[1] && rr_copy((void *)args[1], held_place(th, sig), sizeof(struct siginfo_k))) return -EFAULT;
  th->held &= ~BIT(sig);
  return sig;
}

static int between(u64 ip, const char *first, const char *last) { return ip >= (u64)first && ip <= (u64)last; }

void on_signal(int sig, struct siginfo_k *info, struct ucontext_k *uc) {
  struct thread *th = current();
  no_alignment_check(uc);
  u64 *regs = uc->mc.regs, ip = regs[R_RIP];
  u64 ran;
  if (sig == SIGSTKFLT && spin_asked(th, info, &ran)) {
    th->poked = 1;
    if (!space.recording) debug_poked(th, uc);
    if (between(ip, rr_int_begin, rr_int_syscall) && !alone() && (RING->baton & 0x7fffffff) == th->real_tid)
      regs[R_RIP] = (u64)rr_int_pending;
    if (!in_core(ip)) preempt(th, (struct sigframe *)((u8 *)uc - 8), ran);
    if ((RING->baton & 0x7fffffff) == th->real_tid) spin_found_nothing(th);
    return;
  }
  enqueue(th, info);
  if (th->pending >= SIG_QUEUE) uc->sigmask |= ~CORE_SIGNALS; /* the kernel keeps what comes until these are delivered */
  if (between(ip, rr_int_begin, rr_int_syscall)) regs[R_RIP] = (u64)rr_int_pending;
  if (between(ip, rr_exit_begin, rr_exit_syscall)) regs[R_RIP] = (u64)rr_exit_pending;
  if (in_core(ip)) return;
  const struct sigaction_k *action = &th->process->actions[sig];
  if (!logging() || (action->handler == SIG_DFL && default_is_fatal((u32)sig))) {
    th->frame = (struct sigframe *)((u8 *)uc - 8);
    th->time_in = now_coarse();
    deliver_pending(th, RR_SIG_EXIT);
    return;
  }
  if (!RING->pending_signals) {
    RING->pending_since = now_coarse();
    RING->pending_signals = th->tid;
  }
}

/* ---- faults ---- */

static u64 guarded(u64 ip) {
  if (ip == (u64)rr_copy_load || ip == (u64)rr_copy_store) return (u64)rr_copy_bytes;
  if (ip == (u64)rr_equal_first || ip == (u64)rr_equal_second) return (u64)rr_equal_bytes;
  if (ip == (u64)rr_copy_at || ip == (u64)rr_fill_at) return (u64)rr_copy_fail;
  if (ip == (u64)rr_load64_at) return (u64)rr_load64_fail;
  if (ip == (u64)rr_touch_at) return (u64)rr_touch_fail;
  if (ip == (u64)rr_equal_at) return (u64)rr_equal_fail;
  if (between(ip, rr_strcopy_at, rr_strcopy_at + 8)) return (u64)rr_strcopy_fail;
  return 0;
}

static void replay_fault(struct thread *th, int sig, struct siginfo_k *info) {
  struct rr_event *event = next_event(th);
  struct rr_event found = {.task = th->tid, .kind = RR_K_SIGNAL, .nr = (u16)sig, .ip = th->frame->uc.mc.regs[R_RIP]};
  if (!event) park(th, RR_DIV_END, NULL);
  if (event->kind == RR_K_DEATH && event->nr == sig) {
    apply_outputs(th, event);
    consume(th);
    die_of_signal(th, (u32)sig);
  }
  if (event->kind != RR_K_SIGNAL || event->nr != sig || event->args[0] != RR_SIG_FAULT || event->ip != found.ip)
    park(th, RR_DIV_FAULT, &found);
  const struct rr_region *region = find_region(event, RR_R_INFO);
  if (region) copy_bytes(info, region + 1, sizeof *info);
  debug_signal(th, (u32)sig);
  advance();
}

/* A handler runs in its thread's block, which the GS base is the address of, unless the program has written GS itself. */
static NORETURN void core_fault(void) {
  u64 base = 0, here = (u64)__builtin_frame_address(0) & ~(RR_THREAD_STRIDE - 1);
  if (SYS2(RR_NR_arch_prctl, ARCH_GET_GS, &base) >= 0 && base != here)
    fatal("the program has written the GS register, which is the recorder's while recording");
  fatal("a fault in the core");
}

void on_fault(int sig, struct siginfo_k *info, struct ucontext_k *uc) {
  no_alignment_check(uc);
  u64 *regs = uc->mc.regs;
  if (info->code <= 0) {
    on_signal(sig, info, uc);
    return;
  }
  if (sig == SIGTRAP && debug_trap(current(), info, uc)) return;
  if (in_core(regs[R_RIP])) {
    u64 fix = guarded(regs[R_RIP]);
    if (!fix) core_fault();
    regs[R_RIP] = fix;
    return;
  }
  struct thread *th = current();
  if (unlikely(space.ncode) && jit_fault(regs, sig)) return;
  struct sigframe *outer = th->frame;
  th->frame = (struct sigframe *)((u8 *)uc - 8);
  u32 stepped = debug_enter(th, regs);
  if (space.recording) th->time_in = now_coarse();
  if (debug_fault(th, sig) || emulate_instruction(th, uc, sig)) {
    if (!space.recording) replay_after(th);
    debug_leave(th, regs, stepped);
    th->frame = outer;
    return;
  }
  const struct sigaction_k *action = &th->process->actions[sig];
  int fatal_now = action->handler <= SIG_IGN || th->mask & BIT(sig);
  if (!space.recording) {
    replay_fault(th, sig, info);
  } else if (!fatal_now) {
    log_begin(th, RR_K_SIGNAL, (u32)sig, regs[R_RIP], (u64[6]){RR_SIG_FAULT, action->handler, regs[R_RSP], regs[R_RAX], 0, 0});
    log_bytes(th, RR_R_INFO, 255, 0, info, sizeof *info);
    log_commit(th, 0);
  }
  if (fatal_now) die_of_signal(th, (u32)sig);
  deliver(th, info, RR_SIG_FAULT);
  if (!space.recording) {
    consumed(th);
    replay_after(th);
  }
  debug_leave(th, regs, stepped);
  th->frame = outer;
}

/* ---- delivery ---- */

NORETURN void die_of_signal(struct thread *th, u32 sig) {
  if (space.recording && logging()) {
    log_begin(th, RR_K_DEATH, sig, th->frame ? th->frame->uc.mc.regs[R_RIP] : 0, NULL);
    threads_release_robust(th);
    log_commit(th, 0);
    RING->death_signal = sig;
  }
  struct rr_msg msg = {.type = RR_M_DEATH, .a = sig};
  if (!space.recording || logging()) channel_send(CONTROL, &msg, NULL, 0);
  if (space.recording) {
    th->process->exiting = th->tid;
    __atomic_fetch_sub((u32 *)&RING->ntasks, th->process->nthreads, __ATOMIC_ACQ_REL);
    if ((RING->baton & 0x7fffffff) == th->real_tid) baton_give(th);
  } else {
    struct rr_event *event = next_event(th); /* a frame that could not be built */
    if (event && event->kind == RR_K_DEATH && event->task == th->tid) {
      apply_outputs(th, event);
      consume(th);
    }
    pass_turn(th);
  }
  struct sigaction_k action = {SIG_DFL, SA_RESTORER, (u64)rr_restorer, 0};
  u64 only = ~BIT(sig);
  SYS4(RR_NR_rt_sigaction, sig, &action, NULL, 8);
  SYS4(RR_NR_rt_sigprocmask, 2, &only, NULL, 8);
  SYS3(RR_NR_tgkill, SYS0(RR_NR_getpid), SYS0(RR_NR_gettid), sig);
  for (;;) SYS1(RR_NR_exit_group, 128 + sig);
}

/* Builds the frame for a signal that has a handler, in th->frame. */
void deliver(struct thread *th, const struct siginfo_k *info, u32 place) {
  u32 sig = (u32)info->signo;
  struct sigaction_k *slot = &th->process->actions[sig];
  struct sigaction_k action = *slot;
  (void)place;
  if (frame_build(th, th->frame, info, &action)) {
    th->process->actions[SIGSEGV].handler = SIG_DFL;
    die_of_signal(th, SIGSEGV);
  }
  if (action.flags & SA_RESETHAND) {
    slot->handler = SIG_DFL;
    slot->flags &= ~SA_SIGINFO;
    if (space.recording) install_one(th->process, sig);
  }
  th->frame->uc.sigmask = real_mask(th->mask);
}

/* Recording: delivers what is queued into th->frame. Returns 1 if a frame was built. */
int deliver_pending(struct thread *th, u32 place) {
  int built = 0;
  struct siginfo_k info;
  while (th->pending) {
    dequeue(th, &info);
    u32 sig = (u32)info.signo;
    const struct sigaction_k *action = &th->process->actions[sig];
    if (action->handler == SIG_IGN || (action->handler == SIG_DFL && !default_is_fatal(sig))) continue;
    if ((th->suspended ? th->call_mask : th->mask) & BIT(sig)) {
      u64 block = real_mask(th->mask);
      SYS4(RR_NR_rt_sigprocmask, 0, &block, NULL, 8);
      if (CORE_SIGNALS & BIT(sig))
        hold(th, &info);
      else
        SYS4(RR_NR_rt_tgsigqueueinfo, SYS0(RR_NR_getpid), SYS0(RR_NR_gettid), sig, &info);
      continue;
    }
    if (action->handler == SIG_DFL) die_of_signal(th, sig);
    u64 *regs = th->frame->uc.mc.regs;
    log_begin(th, RR_K_SIGNAL, sig, regs[R_RIP], (u64[6]){place, action->handler, regs[R_RSP], regs[R_RAX], 0, 0});
    log_bytes(th, RR_R_INFO, 255, 0, &info, sizeof info);
    log_commit(th, 0);
    deliver(th, &info, place);
    place = RR_SIG_EXIT;
    built = 1;
  }
  th->suspended = 0;
  if (th->frame) th->frame->uc.sigmask = real_mask(th->mask);
  if (RING->pending_signals == th->tid) RING->pending_signals = 0;
  return built;
}

/* A signal came between the last look at the queue and the return to the program. */
void rr_late_signals(struct ucontext_k *uc) {
  struct thread *th = current();
  u64 *regs = uc->mc.regs;
  regs[R_RIP] = patch_canonical(regs[R_RIP]);
  if (!in_core(regs[R_RIP])) {
    th->frame = (struct sigframe *)((u8 *)uc - 8);
    deliver_pending(th, RR_SIG_EXIT);
  }
  regs[R_RIP] = patch_resume(regs[R_RIP]);
}

/* ---- the program's own calls about signals; the same code records and replays ---- */

static int get(void *to, u64 from, u64 bytes) { return rr_copy(to, (void *)from, bytes); }
static int put(u64 to, const void *from, u64 bytes) { return rr_copy((void *)to, from, bytes); }

s64 do_rt_sigaction(struct thread *th, u64 *args) {
  u32 sig = (u32)args[0];
  struct sigaction_k action, old;
  if (args[3] != 8) return -EINVAL;
  if (args[1] && get(&action, args[1], sizeof action)) return -EFAULT;
  if (sig < 1 || sig > 64 || (args[1] && (sig == SIGKILL || sig == SIGSTOP))) return -EINVAL;
  old = th->process->actions[sig];
  if (args[1]) {
    action.flags &= SA_KNOWN;
    action.mask &= ~(BIT(SIGKILL) | BIT(SIGSTOP));
    th->process->actions[sig] = action;
    if (space.recording) {
      if (action.handler == SIG_IGN) th->held &= ~BIT(sig);
      if (action.handler == SIG_IGN && !(CORE_SIGNALS & BIT(sig)))
        for (u64 i = 0; i < th->pending; i++)
          if ((u32)th->queue[i].signo == sig) th->queue[i].signo = SIGCHLD;
      install_one(th->process, sig);
    }
  }
  if (args[2] && put(args[2], &old, sizeof old)) return -EFAULT;
  return 0;
}

s64 do_rt_sigprocmask(struct thread *th, u64 *args) {
  u64 set, old = th->mask;
  if (args[3] != 8) return -EINVAL;
  if (args[1]) {
    if (get(&set, args[1], 8)) return -EFAULT;
    if ((u32)args[0] == 0)
      set = old | set;
    else if ((u32)args[0] == 1)
      set = old & ~set;
    else if ((u32)args[0] != 2)
      return -EINVAL;
    th->mask = set & ~(BIT(SIGKILL) | BIT(SIGSTOP));
    if (space.recording) {
      set_real_mask(real_mask(th->mask));
      th->frame->uc.sigmask = real_mask(th->mask);
      let_held_go(th, th->mask);
    }
  }
  if (args[2] && put(args[2], &old, 8)) return -EFAULT;
  return 0;
}

s64 do_sigaltstack(struct thread *th, u64 *args) {
  struct stack_k want, old = th->altstack;
  u64 sp = th->frame->uc.mc.regs[R_RSP];
  int inside = old.size && !(old.flags & SS_AUTODISARM) && sp > old.sp && sp - old.sp <= old.size;
  old.flags = !old.size ? SS_DISABLE : (old.flags & SS_AUTODISARM) | (inside ? SS_ONSTACK : 0);
  old.pad = 0;
  if (args[0]) {
    if (get(&want, args[0], sizeof want)) return -EFAULT;
    if (inside) return -EPERM;
    s32 mode = want.flags & ~SS_AUTODISARM;
    if (mode != 0 && mode != SS_DISABLE && mode != SS_ONSTACK) return -EINVAL;
    if (mode == SS_DISABLE) {
      want.sp = 0;
      want.size = 0;
    } else if (want.size < 2048) {
      return -ENOMEM;
    }
    want.pad = 0;
    th->altstack = want;
  }
  if (args[1] && put(args[1], &old, sizeof old)) return -EFAULT;
  return 0;
}

/* The context comes back from the program's frame. Returns what RAX is then. */
s64 do_rt_sigreturn(struct thread *th) {
  struct sigframe *frame = th->frame;
  if (frame_restore(th, frame, frame->uc.mc.regs[R_RSP])) {
    th->process->actions[SIGSEGV].handler = SIG_DFL;
    die_of_signal(th, SIGSEGV);
  }
  frame->uc.sigmask = real_mask(th->mask);
  if (space.recording) {
    set_real_mask(real_mask(th->mask));
    let_held_go(th, th->mask);
  }
  return (s64)frame->uc.mc.regs[R_RAX];
}
