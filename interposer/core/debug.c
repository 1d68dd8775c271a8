/* debug.c - a replay under a debugger: breakpoints, single steps, watchpoints, calls made by the debugger.
 *
 * Guarantees: where nothing is asked for, nothing happens. Hits are counted the same way in every run over the
 * same events with the same breakpoints, so that (event, breakpoints, hits, steps) names a place for good. The
 * program sees neither the trap flag nor the breakpoints in what it can look at, except in its own code.
 */
#include "core.h"
#include "debug.h"

#define TF 0x100ul
#define TRAP_TRACE 2
#define TRAP_HWBKPT 4
#define SI_KERNEL 0x80
#define BREAK_BYTE 0xcc
#define FEW_BREAKPOINTS 16

enum { NO_STEP = 0, USER_STEP = 1, OVER_STEP = 2 };
enum { PASS_BREAKPOINT = 1, PASS_SIGNAL = 2 }; /* of th->pass */

/* ---- breakpoints ---- */

static volatile struct rr_breakpoint *breakpoint_at(u64 address) {
  u32 low = 0, high = DEBUG->nbreak;
  while (low < high) {
    u32 middle = (low + high) / 2;
    if (DEBUG->breaks[middle].addr < address)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < DEBUG->nbreak && DEBUG->breaks[low].addr == address && DEBUG->breaks[low].inserted) return &DEBUG->breaks[low];
  return NULL;
}

/* Code cannot be written in place. The descriptor stays open: a copy of the process, or its child, needs another. */
static void put_byte(u64 address, u8 byte) {
  static s64 fd = -1;
  static s64 owner;
  s64 self = SYS0(RR_NR_getpid);
  if (owner != self) {
    if (owner) SYS1(RR_NR_close, fd);
    fd = SYS4(RR_NR_openat, -100, "/proc/thread-self/mem", 02000002, 0);
    owner = fd < 0 ? 0 : self;
  }
  if (owner) SYS4(RR_NR_pwrite64, fd, &byte, 1, address);
}

static void lift(struct thread *th, volatile struct rr_breakpoint *at) {
  th->lifted = at->addr;
  put_byte(at->addr, at->byte);
}

static void put_back(struct thread *th) {
  if (th->lifted && breakpoint_at(th->lifted)) put_byte(th->lifted, BREAK_BYTE);
  th->lifted = 0;
}

/* Breakpoints in what has been mapped since. */
void debug_mapped(void) {
  if (!debugging()) return;
  for (u32 i = 0; i < DEBUG->nbreak; i++) {
    volatile struct rr_breakpoint *at = &DEBUG->breaks[i];
    u8 byte;
    if (rr_copy(&byte, (void *)at->addr, 1)) {
      at->inserted = 0;
    } else if (byte != BREAK_BYTE) {
      at->byte = byte;
      at->inserted = 1;
      put_byte(at->addr, BREAK_BYTE);
    }
  }
}

/* And in code that the program has written since. Many breakpoints are the tool's own, in code that is there. */
void debug_event(void) {
  if (debugging() && DEBUG->nbreak && DEBUG->nbreak <= FEW_BREAKPOINTS) debug_mapped();
}

/* ---- hits and steps ---- */

/* The tool wanted to stop while the core was at work: where traps follow one another that is nearly always. */
static volatile u32 stop_wanted;

void debug_parked(void) { stop_wanted = 0; }

/* 1: the task was parked, and the tool has given new orders. */
static int hit(struct thread *th, u32 reason) {
  if (DEBUG->hits_event != RING->event_count) {
    DEBUG->hits_event = RING->event_count;
    DEBUG->hits_in_event = 0;
  }
  DEBUG->hits++;
  DEBUG->hits_in_event++;
  if (DEBUG->skip) {
    DEBUG->skip--;
    th->pass = 1;
    return 0;
  }
  park_for(th, reason);
  return 1;
}

static u64 load(u64 address, u32 len) {
  u64 value = 0;
  rr_copy(&value, (void *)address, len);
  return value;
}

/* Whether a watched place has changed; its new value is then the one to compare with. */
static int changed(void) {
  int any = 0;
  for (u32 i = 0; i < RR_WATCHES; i++) {
    volatile struct rr_watch *watch = &DEBUG->watches[i];
    if (!watch->len || !watch->kind) continue;
    u64 now = load(watch->addr, watch->len);
    if (now != watch->value) any = 1;
    watch->value = now;
  }
  return any;
}

/* Whether a place is watched for more than changes. */
static int watches_access(void) {
  for (u32 i = 0; i < RR_WATCHES; i++)
    if (DEBUG->watches[i].len && DEBUG->watches[i].kind != 1) return 1;
  return 0;
}

static int breakpoint_hit(struct thread *th, volatile struct rr_breakpoint *at) {
  if (!at->soft) return hit(th, RR_P_BREAK);
  DEBUG->soft_hits++;
  th->pass = 1;
  return 0;
}

/* `by_call`: what was stepped is an instruction that made events, which the step ends right behind. */
static void count_step(int by_call) {
  DEBUG->steps--;
  DEBUG->stepped++;
  if (DEBUG->stepped_event != RING->event_count) {
    DEBUG->stepped_event = RING->event_count;
    DEBUG->stepped_in_event = by_call ? 0 : 1;
  } else {
    DEBUG->stepped_in_event++;
  }
}

static int leaves_range(u64 pc) {
  return DEBUG->range_end && pc - DEBUG->range_start >= DEBUG->range_end - DEBUG->range_start;
}

static void step_done(struct thread *th, u64 *regs, int seen, int by_call) {
  int wanted = th->stepping == USER_STEP && DEBUG->steps;
  th->stepping = NO_STEP;
  if (wanted) count_step(by_call);
  if (seen && hit(th, RR_P_WATCH)) return;
  if (!wanted) return;
  volatile struct rr_breakpoint *at = breakpoint_at(regs[R_RIP]);
  if (at && breakpoint_hit(th, at)) return;
  if (DEBUG->steps && !leaves_range(regs[R_RIP])) return;
  DEBUG->steps = 0;
  park_for(th, RR_P_STEP);
}

/* The core is entered from the program by a call or a fault. */
u32 debug_enter(struct thread *th, u64 *regs) {
  if (!debugging()) return NO_STEP;
  u32 mode = th->stepping;
  if (mode) {
    put_back(th);
    regs[R_EFLAGS] &= ~TF;
  }
  th->stepping = NO_STEP;
  return mode;
}

void debug_leave(struct thread *th, u64 *regs, u32 stepped) {
  if (!debugging()) return;
  if (th->pass == PASS_SIGNAL) {
    stepped = DEBUG->step_tid == th->tid ? USER_STEP : NO_STEP;
    th->pass = 0;
  }
  if (stepped) {
    th->stepping = stepped;
    step_done(th, regs, 0, 1);
  }
  volatile struct rr_breakpoint *at = breakpoint_at(regs[R_RIP]);
  u32 pass = th->pass == PASS_BREAKPOINT;
  th->pass = 0;
  if (DEBUG->steps && DEBUG->step_tid == th->tid)
    th->stepping = USER_STEP;
  else if (at && pass)
    th->stepping = OVER_STEP;
  if (!th->stepping) return;
  if (at) lift(th, at);
  u8 byte = 0;
  rr_copy(&byte, (void *)regs[R_RIP], 1);
  th->pushes_flags = byte == 0x9c;
  regs[R_EFLAGS] |= TF;
}

static void end_of_step(struct thread *th, u64 *regs) {
  put_back(th);
  regs[R_EFLAGS] &= ~TF;
  if (th->pushes_flags) {
    u64 flags;
    if (!rr_load64(&flags, (void *)regs[R_RSP])) {
      flags &= ~TF;
      rr_copy((void *)regs[R_RSP], &flags, 8);
    }
  }
  step_done(th, regs, changed(), 0);
}

int debug_trap(struct thread *th, struct siginfo_k *info, struct ucontext_k *uc) {
  u64 *regs = uc->mc.regs;
  if (!debugging() || info->code <= 0) return 0;
  if (in_core(regs[R_RIP])) {
    if (info->code != TRAP_HWBKPT) return 0;
    DEBUG->core_watch = 1;
    return 1;
  }
  struct sigframe *outer = th->frame;
  th->frame = (struct sigframe *)((u8 *)uc - 8);
  int ours = 1;
  if (info->code == TRAP_TRACE && th->stepping) {
    end_of_step(th, regs);
  } else if (info->code == TRAP_HWBKPT) {
    if (changed() || watches_access()) hit(th, RR_P_WATCH);
  } else if (info->code == SI_KERNEL && breakpoint_at(regs[R_RIP] - 1)) {
    regs[R_RIP]--;
    breakpoint_hit(th, breakpoint_at(regs[R_RIP]));
  } else {
    ours = 0;
  }
  if (ours && stop_wanted) park_for(th, RR_P_POKED);
  if (ours) debug_leave(th, regs, NO_STEP);
  th->frame = outer;
  return ours;
}

void debug_core_watch(struct thread *th) {
  if (changed() || watches_access())
    park_for(th, RR_P_CALL_WATCH);
  else
    DEBUG->core_watch = 0;
}

/* Where a step goes on from here, the delivery is the step, however the task has come here. */
void debug_signal(struct thread *th, u32 sig) {
  if (!debugging() || !(DEBUG->stop_signals & BIT(sig))) return;
  u32 pass = th->pass;
  DEBUG->signal = sig;
  th->pass = hit(th, RR_P_SIGNAL) ? PASS_SIGNAL : pass;
}

/* The tool wants to stop, and no event comes along. */
void debug_poked(struct thread *th, struct ucontext_k *uc) {
  if (!debugging()) return;
  if (in_core(uc->mc.regs[R_RIP])) {
    stop_wanted = 1;
    return;
  }
  struct sigframe *outer = th->frame;
  th->frame = (struct sigframe *)((u8 *)uc - 8);
  u32 stepped = debug_enter(th, uc->mc.regs);
  park_for(th, RR_P_POKED);
  debug_leave(th, uc->mc.regs, stepped);
  th->frame = outer;
}

void debug_started(struct thread *th) {
  if (!debugging()) return;
  for (u32 i = 0; i < RR_WATCHES; i++)
    if (DEBUG->watches[i].len) {
      park_for(th, RR_P_TASK);
      return;
    }
}

/* ---- what the tool asks of a parked task ---- */

void debug_request(struct thread *th) {
  u32 request = DEBUG->request;
  s64 result = 0;
  if (request == RR_Q_CLONE) {
    DEBUG->request = RR_Q_NONE;
    clone_process(th);
    return;
  }
  if (request == RR_Q_MAP)
    result = SYS6(RR_NR_mmap, DEBUG->request_addr, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  else
    result = SYS2(RR_NR_munmap, DEBUG->request_addr, PAGE);
  DEBUG->reply = result < 0 && result > -4096 ? (s32)result : 0;
  __atomic_store_n(&((struct rr_debug *)(RR_RING + RR_DEBUG_OFF))->request, RR_Q_NONE, __ATOMIC_RELEASE);
  futex_wake(&((struct rr_debug *)(RR_RING + RR_DEBUG_OFF))->request, 1);
}

/* ---- calls that the debugger makes: in a copy of the process, which is thrown away ---- */

static s64 diverted_brk(u64 wanted) {
  u64 old = (space.brk + PAGE - 1) & ~(PAGE - 1), new = (wanted + PAGE - 1) & ~(PAGE - 1);
  if (wanted < space.brk) return (s64)space.brk;
  if (new > old && SYS6(RR_NR_mmap, old, new - old, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (s64)old)
    return (s64)space.brk;
  space.brk = wanted;
  return (s64)wanted;
}

static s64 diverted_call(struct thread *th, u64 nr, const u64 *args) {
  switch (nr) {
    case RR_NR_brk: return diverted_brk(args[0]);
    case RR_NR_mmap:
      if (!(args[3] & MAP_ANONYMOUS) || args[3] & MAP_FIXED) return -ENOMEM;
      return SYS6(nr, args[0], args[1], args[2], args[3], -1, 0);
    case RR_NR_munmap: case RR_NR_madvise: case RR_NR_mprotect:
      return in_core(args[0]) ? -EINVAL : SYS3(nr, args[0], args[1], args[2]);
    case RR_NR_mremap: return SYS4(nr, args[0], args[1], args[2], args[3] & MREMAP_MAYMOVE);
    case RR_NR_write: case RR_NR_writev: {
      if (args[0] != 1 && args[0] != 2) return -EBADF;
      return SYS3(nr, HIDDEN(args[0] == 1 ? RR_FD_OUT : RR_FD_ERR), args[1], args[2]);
    }
    case RR_NR_getpid: return (s64)th->pid;
    case RR_NR_gettid: return (s64)th->tid;
    case RR_NR_futex: return (args[1] & 127) == FUTEX_WAKE ? 0 : -EAGAIN;
    case RR_NR_clock_gettime: case RR_NR_gettimeofday: case RR_NR_time: case RR_NR_getuid: case RR_NR_geteuid:
    case RR_NR_getgid: case RR_NR_getegid: case RR_NR_sched_yield: return SYS3(nr, args[0], args[1], args[2]);
    case RR_NR_fstat: case RR_NR_newfstatat: case RR_NR_ioctl: case RR_NR_lseek: case RR_NR_close: return -EBADF;
    case RR_NR_rt_sigprocmask: return do_rt_sigprocmask(th, (u64 *)args);
    default: return -ENOSYS;
  }
}

int debug_diverted(struct thread *th, u64 nr, u64 *args) {
  if (!debugging() || !DEBUG->diverted) return 0;
  if (nr == RR_NR_exit || nr == RR_NR_exit_group || nr == RR_NR_clone || nr == RR_NR_execve || nr == RR_NR_rt_sigreturn) {
    DEBUG->signal = (u32)nr;
    park_for(th, RR_P_CALL);
  }
  th->frame->uc.mc.regs[R_RAX] = (u64)diverted_call(th, nr, args);
  return 1;
}

int debug_fault(struct thread *th, int sig) {
  if (!debugging() || !DEBUG->diverted) return 0;
  DEBUG->signal = (u32)sig;
  park_for(th, RR_P_FAULT);
  return 1;
}
